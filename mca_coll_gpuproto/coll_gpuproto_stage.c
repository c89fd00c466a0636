/*
 * coll_gpuproto_stage.c - declined calls with device buffers: device -> pinned host -> previous -> device.
 *
 * The previous component reads host memory only. One pair of pinned buffers per process is kept and
 * grown; when another thread is using it, a call allocates its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <pthread.h>

#include "opal/datatype/opal_datatype.h"

typedef struct pinned {
    void *ptr;
    size_t bytes;
} pinned_t;

static pinned_t kept[2];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* Make buffer `p` hold at least `bytes`. */
static int grow(pinned_t *p, size_t bytes)
{
    if (p->bytes >= bytes) {
        return OMPI_SUCCESS;
    }
    gp_cuda_host_free(p->ptr);
    p->ptr = NULL;
    p->bytes = 0;
    bytes = bytes < 65536 ? 65536 : bytes;
    if (GP_OK != gp_cuda_host_alloc(bytes, &p->ptr)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    p->bytes = bytes;
    return OMPI_SUCCESS;
}

int mca_coll_gpuproto_stage(mca_coll_gpuproto_module_t *m, const void *sbuf, bool sbuf_device,
                            void *rbuf, bool rbuf_device, int count,
                            struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                            struct ompi_communicator_t *comm)
{
    pinned_t own[2] = {{NULL, 0}, {NULL, 0}};
    bool shared = 0 == pthread_mutex_trylock(&kept_lock);
    pinned_t *bufs = shared ? kept : own;
    bool in_place = MPI_IN_PLACE == sbuf;
    ptrdiff_t gap = 0;
    size_t span = (size_t) opal_datatype_span(&dtype->super, (size_t) count, &gap);
    /* Holes of a derived type must come back as they were: then the output is copied in as well. */
    bool holes = span != (size_t) count * dtype->super.size;
    const void *s = sbuf;
    void *r = rbuf;
    int rc = OMPI_SUCCESS;

    mca_coll_gpuproto_count(&mca_coll_gpuproto_stats.staged);
    if (sbuf_device && !in_place) {
        rc = grow(&bufs[0], span + 1);
        if (OMPI_SUCCESS == rc
            && GP_OK != gp_cuda_copy(bufs[0].ptr, (const char *) sbuf + gap, span)) {
            rc = OMPI_ERROR;
        }
        s = (const char *) bufs[0].ptr - gap;
    }
    if (OMPI_SUCCESS == rc && rbuf_device) {
        rc = grow(&bufs[1], span + 1);
        if (OMPI_SUCCESS == rc && (in_place || holes)
            && GP_OK != gp_cuda_copy(bufs[1].ptr, (const char *) rbuf + gap, span)) {
            rc = OMPI_ERROR;
        }
        r = (char *) bufs[1].ptr - gap;
    }
    if (!in_place && sbuf == rbuf) {
        s = r; /* came without MPI_IN_PLACE, is one buffer all the same */
        if (OMPI_SUCCESS == rc && rbuf_device && !holes
            && GP_OK != gp_cuda_copy(bufs[1].ptr, (const char *) rbuf + gap, span)) {
            rc = OMPI_ERROR;
        }
    }
    if (OMPI_SUCCESS == rc) {
        rc = m->prev_allreduce(s, r, count, dtype, op, comm, m->prev_allreduce_module);
    }
    if (OMPI_SUCCESS == rc && rbuf_device
        && GP_OK != gp_cuda_copy((char *) rbuf + gap, bufs[1].ptr, span)) {
        rc = OMPI_ERROR;
    }
    if (shared) {
        pthread_mutex_unlock(&kept_lock);
    } else {
        gp_cuda_host_free(own[0].ptr);
        gp_cuda_host_free(own[1].ptr);
    }
    return rc;
}

void mca_coll_gpuproto_stage_finalize(void)
{
    for (int i = 0; i < 2; i++) {
        gp_cuda_host_free(kept[i].ptr);
        kept[i].ptr = NULL;
        kept[i].bytes = 0;
    }
}
