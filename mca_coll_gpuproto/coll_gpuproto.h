/*
 * coll_gpuproto.h - the component: its parameters, its state per communicator, its files' functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MCA_COLL_GPUPROTO_H
#define MCA_COLL_GPUPROTO_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

#include "mca_coll_gpuproto/coll_gpuproto_compat.h"

#include "device/cuda/gp_cuda.h"
#include "device/host/gp_host.h"
#include "device/proto/gp_log.h"
#include "planner/gp_plan.h"
#include "planner/gp_tune.h"
#include "transport/gp_gate.h"
#include "transport/gp_net.h"
#include "transport/gp_ucx.h"

#define MCA_COLL_GPUPROTO_HELP "help-coll-gpuproto.txt"
/* Plans remembered per communicator and class: a power of two of places for each of as many hashes. */
#define MCA_COLL_GPUPROTO_CACHE_WAYS 4
#define MCA_COLL_GPUPROTO_CACHE_HASHES 32

enum { MCA_COLL_GPUPROTO_HOST_AUTO = -1 };

/* Parameters as read; bad values were reported and replaced by defaults. */
typedef struct mca_coll_gpuproto_component {
    mca_coll_gpuproto_base_component_t super;
    int priority;
    bool complete_selection;
    bool enabled;           /* false: wrong release or switched off; then we never take a slot */
    bool named;             /* the user named gpuproto in an include list */
    char *algorithm;        /* texts as given; values below */
    char *protocol;
    char *executor;
    char *host_buffers;
    char *host_id;
    char *transports;
    int transports_value;   /* 0: UCX between all ranks; GP_AUTO: between hosts */
    char *tune_file;
    int algorithm_value;    /* gp_algorithm_t or GP_AUTO */
    int protocol_value;
    int executor_value;     /* gp_executor_t or GP_AUTO */
    int host_buffers_value; /* 0, 1 or GP_AUTO */
    int min_channels;
    int max_channels;
    int threads;
    int ll128_unsafe;
    unsigned long long buffsize;
    unsigned long long ll_buffsize;
    unsigned long long ll128_buffsize;
    int max_fifo_mib;
    int other_jobs;         /* 1: take turns with other jobs on the GPUs */
    int trace;
    int timeout;            /* seconds; 0: never abort */
    int warn_after;         /* seconds; 0: never warn */
    char *compiled_cuda;    /* what was compiled in; read only */
    char *compiled_ucx;
    gp_tune_t *tune;        /* the tuning file from open to close; NULL: none */
    unsigned long long params_hash; /* of everything that must be equal on all ranks */
} mca_coll_gpuproto_component_t;

OMPI_DECLSPEC extern mca_coll_gpuproto_component_t mca_coll_gpuproto_component;

/*
 * Counters and the last call, read through MPI_T. Written by the thread that makes the call; with
 * MPI_THREAD_MULTIPLE counters are added to atomically, and "the last call" is one of the last.
 */
typedef struct mca_coll_gpuproto_stats {
    unsigned long long calls;      /* run by gpuproto */
    unsigned long long host_calls; /* of these by the host executor */
    unsigned long long cuda_calls; /* of these by the CUDA executor */
    unsigned long long declined;   /* passed to the previous component, staged ones included */
    unsigned long long staged;     /* of these with device buffers */
    int last_algorithm;            /* of the last call, from the executor's record; -1: none */
    int last_protocol;
    int last_channels;
    int last_executor;
    int last_loops;
} mca_coll_gpuproto_stats_t;

extern mca_coll_gpuproto_stats_t mca_coll_gpuproto_stats;

/* Atomic only where a second thread may be counting. */
static inline void mca_coll_gpuproto_count(unsigned long long *counter)
{
    (void) OPAL_THREAD_ADD_FETCH64((void *) counter, 1);
}

/* All connections of one (class, algorithm, protocol) of one communicator, and who runs them. */
typedef struct mca_coll_gpuproto_set {
    gp_conn_geom_t geom;
    gp_connset_t *conns;
    gp_program_t **programs;    /* [channels] of this rank */
    uint64_t *loops;            /* [channels] loops run so far: what the heads must reach */
    gp_host_exec_t *host;       /* one of the two */
    gp_cuda_exec_t *cuda;
} mca_coll_gpuproto_set_t;

typedef enum mca_coll_gpuproto_state {
    MCA_COLL_GPUPROTO_UNKNOWN,  /* not agreed yet */
    MCA_COLL_GPUPROTO_OURS,
    MCA_COLL_GPUPROTO_DECLINED, /* by agreement, for the life of the communicator */
    MCA_COLL_GPUPROTO_FAILED    /* a wait was given up: FIFOs are in an unknown state */
} mca_coll_gpuproto_state_t;

/* A planned call. */
typedef struct mca_coll_gpuproto_entry {
    struct ompi_datatype_t *dtype;
    struct ompi_op_t *op;
    size_t count;
    mca_coll_gpuproto_set_t *set; /* NULL: this call is declined, `declined` says why */
    const char *declined;
    gp_plan_t plan;
    gp_type_t type;
    gp_op_t gp_op;
} mca_coll_gpuproto_entry_t;

typedef enum mca_coll_gpuproto_class_id {
    MCA_COLL_GPUPROTO_CLASS_HOST,
    MCA_COLL_GPUPROTO_CLASS_DEVICE,
    MCA_COLL_GPUPROTO_CLASSES
} mca_coll_gpuproto_class_id_t;

/* Ranks of a communicator over several hosts, and the ways between them. */
typedef struct mca_coll_gpuproto_nodes {
    uint32_t n_nodes;
    uint32_t *node_of;  /* [n_ranks] */
    uint32_t *order;    /* [n_ranks], of the layout */
    uint32_t *first;    /* [n_nodes + 1], of the layout */
    uint32_t *numbers;  /* the memory of all three */
    gp_layout_t layout;
    gp_net_t *net;
    void **eps;         /* [n_ranks]; NULL for ranks of this host */
} mca_coll_gpuproto_nodes_t;

/* One buffer class of a communicator. */
typedef struct mca_coll_gpuproto_class {
    mca_coll_gpuproto_state_t state;
    mca_coll_gpuproto_class_id_t id;
    gp_comm_desc_t desc;
    gp_arena_t *arena;
    gp_cuda_dev_t *dev;         /* device class */
    bool yield;                 /* more ranks than cores: give the core away while waiting */
    bool gated;                 /* ranks share GPUs: wide launches pass the gate */
    bool turns;                 /* and take turns, as calls of other communicators may be in flight */
    gp_gate_t *gate;
    mca_coll_gpuproto_nodes_t *nodes; /* several hosts; NULL: one */
    mca_coll_gpuproto_set_t *sets[GP_ALGO_CUSTOM][GP_PROTO_COUNT];
    gp_sets_t plan_sets;        /* once ours */
    mca_coll_gpuproto_entry_t cache[MCA_COLL_GPUPROTO_CACHE_HASHES][MCA_COLL_GPUPROTO_CACHE_WAYS];
    uint32_t cache_next;        /* place to be given to the next new plan */
    void *bounce[2];            /* device memory for send and receive buffers we cannot reach */
    size_t bounce_bytes[2];
    bool told_failed;           /* the user knows that calls cannot run any more */
    char reason[160];           /* of DECLINED or FAILED */
} mca_coll_gpuproto_class_t;

typedef struct mca_coll_gpuproto_module {
    mca_coll_base_module_t super;
    struct ompi_communicator_t *comm;
    mca_coll_base_module_allreduce_fn_t prev_allreduce;
    mca_coll_base_module_t *prev_allreduce_module; /* retained */
    gp_params_t params;
    bool eligible;              /* more than one rank, intra-communicator, all ranks have gpuproto */
    bool checked;               /* presence of all ranks was looked up */
    char reason[160];           /* why not eligible */
    unsigned long long seq;     /* calls on this communicator */
    mca_coll_gpuproto_class_t classes[MCA_COLL_GPUPROTO_CLASSES];
} mca_coll_gpuproto_module_t;

OBJ_CLASS_DECLARATION(mca_coll_gpuproto_module_t);

/* coll_gpuproto_module.c */
int mca_coll_gpuproto_init_query(bool progress_threads, bool mpi_threads);
mca_coll_base_module_t *mca_coll_gpuproto_comm_query(struct ompi_communicator_t *comm,
                                                     int *priority);

/* coll_gpuproto_allreduce.c */
int mca_coll_gpuproto_allreduce(const void *sbuf, void *rbuf, int count,
                                struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *module);

/* coll_gpuproto_select.c: make `--mca coll gpuproto` alone a working selection. */
void mca_coll_gpuproto_complete_selection(void);
bool mca_coll_gpuproto_is_named(void);

/* coll_gpuproto_presence.c: who has gpuproto with the same parameters. */
void mca_coll_gpuproto_publish(void);
/* If false: *absent is the rank that is not like us, equal on all ranks that are alike. */
bool mca_coll_gpuproto_all_present(struct ompi_communicator_t *comm, char *reason, size_t bytes,
                                   int *absent);

/* coll_gpuproto_agree.c: collective; sets cls->state to OURS or DECLINED, equally on all ranks. */
int mca_coll_gpuproto_agree(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                            int device);
/* A bootstrap over the communicator's own nonblocking allgather. */
void mca_coll_gpuproto_boot(mca_coll_gpuproto_module_t *m, gp_boot_t *boot);

/*
 * coll_gpuproto_sets.c: collective at first use of (algorithm, protocol). OMPI_ERR_NOT_SUPPORTED on all
 * ranks when it cannot be made; OMPI_ERR_TIMEOUT when this rank gave up waiting for the others.
 */
int mca_coll_gpuproto_set_get(mca_coll_gpuproto_module_t *m, mca_coll_gpuproto_class_t *cls,
                              uint32_t algorithm, uint32_t protocol,
                              mca_coll_gpuproto_set_t **set_p, const char **reason);
void mca_coll_gpuproto_class_destroy(mca_coll_gpuproto_class_t *cls);

/* coll_gpuproto_types.c: false when the pair has no meaning in our table. */
bool mca_coll_gpuproto_map(const struct ompi_datatype_t *dtype, const struct ompi_op_t *op,
                           gp_type_t *type, gp_op_t *gp_op);

/* coll_gpuproto_stage.c: through pinned host memory to the previous component. */
int mca_coll_gpuproto_stage(mca_coll_gpuproto_module_t *m, const void *sbuf, bool sbuf_device,
                            void *rbuf, bool rbuf_device, int count,
                            struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                            struct ompi_communicator_t *comm);
void mca_coll_gpuproto_stage_finalize(void);

/* coll_gpuproto_watch.c */
typedef struct mca_coll_gpuproto_watch {
    double start_s;      /* when waiting began; 0: the clock was not read yet */
    double next_warn_s;
} mca_coll_gpuproto_watch_t;

/* Rarely, while waiting: 1 when the time-out says to give up. info: what is waited for. */
int mca_coll_gpuproto_watch(mca_coll_gpuproto_watch_t *watch, struct ompi_communicator_t *comm,
                            const char *what, const gp_wait_info_t *info);
/* Will the next look warn? Then what is waited for is worth finding out. */
bool mca_coll_gpuproto_watch_due(const mca_coll_gpuproto_watch_t *watch);
void mca_coll_gpuproto_describe_wait(const gp_wait_info_t *info, char *text, size_t bytes);

/* coll_gpuproto_nodes.c */
/*
 * Collective: number the nodes and exchange addresses. hosts: [n_ranks], equal where memory is shared.
 * False with a reason, on all ranks, when some rank cannot. The caller owns *nodes_p.
 */
bool mca_coll_gpuproto_nodes_make(const uint64_t *hosts, const gp_boot_t *boot,
                                  mca_coll_gpuproto_nodes_t **nodes_p, char *reason, size_t bytes);
void mca_coll_gpuproto_nodes_free(mca_coll_gpuproto_nodes_t *nodes);

/* coll_gpuproto_gate.c */
bool mca_coll_gpuproto_is_wide(const mca_coll_gpuproto_class_t *cls, const gp_work_t *work);
/*
 * Wait until a wide launch may start: GP_OK, and gp_gate_leave() is due when it has ended. Else an error;
 * info: what was waited for.
 */
gp_status_t mca_coll_gpuproto_gate_pass(mca_coll_gpuproto_module_t *m,
                                        mca_coll_gpuproto_class_t *cls, gp_wait_info_t *info);

/* coll_gpuproto_trace.c */
/* record NULL (and cls, plan): the call was declined, `reason` says why. */
void mca_coll_gpuproto_trace(const mca_coll_gpuproto_module_t *m,
                             const mca_coll_gpuproto_class_t *cls, const gp_exec_record_t *record,
                             const gp_plan_t *plan, const struct ompi_datatype_t *dtype,
                             const struct ompi_op_t *op, size_t count, const char *reason);
/* A help text for the user, on stderr. The caller sees to it that not every rank says the same. */
void mca_coll_gpuproto_say(const char *topic, ...);
void mca_coll_gpuproto_log_sink(gp_log_level_t level, const char *text);

/* coll_gpuproto_pvar.c */
void mca_coll_gpuproto_register_pvars(void);

#endif /* MCA_COLL_GPUPROTO_H */
