/*
 * gp_shm.c - the arena of shared host memory.
 *
 * Owns one segment per piece: memory without a name (memfd), which peers open through the owner's file
 * descriptor (/proc/PID/fd) that the handle tells them; it is closed when all have it. Nothing is left
 * behind whenever and however a process ends, and a container's small /dev/shm is no limit. Where the
 * kernel refuses that, a segment in /dev/shm: created exclusively with mode 0600 under a name nobody can
 * guess and unlinked as soon as all have it. A segment is a whole piece because a later peer could no
 * longer open one whose descriptor is closed.
 *
 * Memory is reserved when the piece is allocated: too little is an error here, not a bus error in the
 * middle of a call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "transport/gp_transport.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/proto/gp_log.h"

#define SHM_NAME_BYTES 64
#define SHM_ALIGN 4096u

/* Our own segment. */
typedef struct segment {
    struct segment *next;
    void *ptr;
    uint64_t bytes;
    uint64_t id;
    int fd;                /* of memory without a name, until all peers have it; else -1 */
    int named;             /* the name still exists */
    char name[SHM_NAME_BYTES];
} segment_t;

/* A peer's segment, mapped here. */
typedef struct mapping {
    struct mapping *next;
    uint64_t process;
    uint64_t extent;
    void *ptr;
    uint64_t bytes;
    uint32_t uses;
} mapping_t;

/* What a handle's opaque bytes hold. */
typedef struct shm_handle {
    uint64_t bytes;
    int32_t pid;           /* whose descriptor, where name is empty */
    int32_t fd;
    char name[SHM_NAME_BYTES];
} shm_handle_t;

GP_STATIC_ASSERT(sizeof(shm_handle_t) <= GP_HANDLE_BYTES, "shm handle fits");

typedef struct shm_arena {
    gp_arena_t base;
    pthread_mutex_t lock;  /* segments, mappings, next_id */
    pid_t pid;             /* of the process that made it: a fork makes a new one */
    uint64_t process;
    uint64_t next_id;
    segment_t *segments;
    mapping_t *mappings;
} shm_arena_t;

static shm_arena_t *process_arena;
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

static void random_bytes(void *p, size_t bytes)
{
    if ((ssize_t) bytes != getrandom(p, bytes, 0)) {
        struct timespec now;

        /* Before the kernel's pool is ready; O_EXCL still keeps two apart. */
        clock_gettime(CLOCK_REALTIME, &now);
        memset(p, 0, bytes);
        memcpy(p, &now.tv_nsec, bytes < sizeof(now.tv_nsec) ? bytes : sizeof(now.tv_nsec));
    }
}

/* Peers cannot open it any more. */
static void segment_drop_name(segment_t *s)
{
    if (s->named) {
        shm_unlink(s->name);
        s->named = 0;
    }
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

/* Memory that can be had without swapping; UINT64_MAX where the system does not tell. */
static uint64_t available_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    unsigned long long kib = 0;
    char line[128];

    while (NULL != f && NULL != fgets(line, sizeof(line), f)) {
        if (1 == sscanf(line, "MemAvailable: %llu kB", &kib)) {
            break;
        }
    }
    if (NULL != f) {
        fclose(f);
    }
    return kib > 0 ? 1024 * (uint64_t) kib : UINT64_MAX;
}

/* A new segment of no size: its descriptor, or -1 with errno. */
static int segment_open(segment_t *s)
{
    uint64_t secret[2];
    int fd = memfd_create("gpuproto", MFD_CLOEXEC);

    s->fd = fd;
    if (fd >= 0) {
        return fd;
    }
    random_bytes(secret, sizeof(secret));
    snprintf(s->name, sizeof(s->name), "/gpuproto-%u-%016llx%016llx", (unsigned) getuid(),
             (unsigned long long) secret[0], (unsigned long long) secret[1]);
    fd = shm_open(s->name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    s->named = fd >= 0;
    return fd;
}

static gp_status_t shm_alloc(gp_arena_t *base, uint64_t bytes, gp_mem_t *mem)
{
    shm_arena_t *a = (shm_arena_t *) base;
    segment_t *s = calloc(1, sizeof(*s));
    int fd, rc;

    bytes = (bytes + SHM_ALIGN - 1) / SHM_ALIGN * SHM_ALIGN;
    if (NULL == s) {
        gp_log(GP_LOG_ERROR, "shared memory: out of host memory");
        return GP_ERR_NO_MEMORY;
    }
    s->fd = -1;
    if (bytes > available_bytes() / 2) {
        gp_log(GP_LOG_ERROR, "shared memory: %llu bytes are more than half of what this host has "
               "left (lower coll_gpuproto_max_fifo_mib)", (unsigned long long) bytes);
        free(s);
        return GP_ERR_NO_MEMORY;
    }
    fd = segment_open(s);
    if (fd < 0) {
        gp_log(GP_LOG_ERROR, "shared memory: cannot create a segment: %s", strerror(errno));
        goto err_segment;
    }
    /* New memory is zero, as the arena promises. */
    rc = 0 != ftruncate(fd, (off_t) bytes) ? errno : posix_fallocate(fd, 0, (off_t) bytes);
    if (0 != rc) {
        gp_log(GP_LOG_ERROR, "shared memory: cannot reserve %llu bytes: %s (lower "
               "coll_gpuproto_max_fifo_mib%s)", (unsigned long long) bytes, strerror(rc),
               s->named ? ", or enlarge /dev/shm" : "");
        goto err_fd;
    }
    s->ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (MAP_FAILED == s->ptr) {
        gp_log(GP_LOG_ERROR, "shared memory: cannot map %llu bytes: %s", (unsigned long long) bytes,
               strerror(errno));
        goto err_fd;
    }
    if (s->named) {
        close(fd);
    }
    s->bytes = bytes;
    pthread_mutex_lock(&a->lock);
    s->id = a->next_id++;
    s->next = a->segments;
    a->segments = s;
    pthread_mutex_unlock(&a->lock);
    mem->ptr = s->ptr;
    mem->offset = 0;
    mem->bytes = bytes;
    mem->extent = s;
    return GP_OK;

err_fd:
    if (s->named) {
        close(fd);
    }
    segment_drop_name(s);
err_segment:
    free(s);
    return GP_ERR_SYSTEM;
}

static void shm_free(gp_arena_t *base, gp_mem_t *mem)
{
    shm_arena_t *a = (shm_arena_t *) base;
    segment_t *s = mem->extent;

    pthread_mutex_lock(&a->lock);
    for (segment_t **at = &a->segments; NULL != *at; at = &(*at)->next) {
        if (s == *at) {
            *at = s->next;
            break;
        }
    }
    pthread_mutex_unlock(&a->lock);
    segment_drop_name(s);
    munmap(s->ptr, s->bytes);
    free(s);
    memset(mem, 0, sizeof(*mem));
}

static gp_status_t shm_export(gp_arena_t *base, const gp_mem_t *mem, gp_handle_t *handle)
{
    shm_arena_t *a = (shm_arena_t *) base;
    const segment_t *s = mem->extent;
    shm_handle_t h;

    memset(handle, 0, sizeof(*handle));
    memset(&h, 0, sizeof(h));
    h.bytes = s->bytes;
    h.pid = (int32_t) getpid();
    h.fd = s->fd;
    memcpy(h.name, s->name, sizeof(h.name));
    handle->process = a->process;
    handle->extent = s->id;
    memcpy(handle->bytes, &h, sizeof(h));
    return GP_OK;
}

/* With the lock held. */
static gp_status_t map_peer(shm_arena_t *a, const gp_handle_t *handle, void **base_p)
{
    mapping_t *m = calloc(1, sizeof(*m));
    shm_handle_t h;
    struct stat st;
    int fd;

    if (NULL == m) {
        gp_log(GP_LOG_ERROR, "shared memory: out of host memory");
        return GP_ERR_NO_MEMORY;
    }
    memcpy(&h, handle->bytes, sizeof(h));
    h.name[sizeof(h.name) - 1] = '\0';
    if ('\0' == h.name[0]) {
        snprintf(h.name, sizeof(h.name), "/proc/%d/fd/%d", (int) h.pid, (int) h.fd);
        fd = open(h.name, O_RDWR | O_CLOEXEC);
    } else {
        fd = shm_open(h.name, O_RDWR | O_CLOEXEC, 0);
    }
    if (fd < 0) {
        gp_log(GP_LOG_ERROR, "shared memory: cannot open a peer's segment %s: %s (do all ranks see "
               "the same processes and /dev/shm, as the same user? If not: coll_gpuproto_host_id)",
               h.name, strerror(errno));
        goto err_mapping;
    }
    if (0 != fstat(fd, &st) || (uint64_t) st.st_size != h.bytes) {
        gp_log(GP_LOG_ERROR, "shared memory: a peer's segment %s has not the size it should have",
               h.name);
        goto err_fd;
    }
    m->ptr = mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (MAP_FAILED == m->ptr) {
        gp_log(GP_LOG_ERROR, "shared memory: cannot map a peer's %llu bytes: %s",
               (unsigned long long) h.bytes, strerror(errno));
        goto err_fd;
    }
    close(fd);
    m->process = handle->process;
    m->extent = handle->extent;
    m->bytes = h.bytes;
    m->uses = 1;
    m->next = a->mappings;
    a->mappings = m;
    *base_p = m->ptr;
    return GP_OK;

err_fd:
    close(fd);
err_mapping:
    free(m);
    return GP_ERR_SYSTEM;
}

static gp_status_t shm_map(gp_arena_t *base, const gp_handle_t *handle, void **base_p)
{
    shm_arena_t *a = (shm_arena_t *) base;
    gp_status_t status = GP_ERR_INVALID;

    pthread_mutex_lock(&a->lock);
    if (handle->process == a->process) {
        for (segment_t *s = a->segments; NULL != s; s = s->next) {
            if (s->id == handle->extent) {
                *base_p = s->ptr;
                status = GP_OK;
            }
        }
        goto out;
    }
    for (mapping_t *m = a->mappings; NULL != m; m = m->next) {
        if (m->process == handle->process && m->extent == handle->extent) {
            m->uses++;
            *base_p = m->ptr;
            status = GP_OK;
            goto out;
        }
    }
    status = map_peer(a, handle, base_p);
out:
    pthread_mutex_unlock(&a->lock);
    return status;
}

static void shm_unmap(gp_arena_t *base, const gp_handle_t *handle)
{
    shm_arena_t *a = (shm_arena_t *) base;

    pthread_mutex_lock(&a->lock);
    for (mapping_t **at = &a->mappings; NULL != *at; at = &(*at)->next) {
        mapping_t *m = *at;

        if (m->process == handle->process && m->extent == handle->extent) {
            if (0 == --m->uses) {
                *at = m->next;
                munmap(m->ptr, m->bytes);
                free(m);
            }
            break;
        }
    }
    pthread_mutex_unlock(&a->lock);
}

static void shm_attached(gp_arena_t *base, const gp_mem_t *mem)
{
    (void) base;
    if (NULL != mem->extent) {
        segment_drop_name(mem->extent);
    }
}

static gp_status_t shm_poke(gp_arena_t *base, void *ptr, uint64_t value)
{
    (void) base;
    gp_store_release_u64(ptr, value); /* read by peers after the second exchange */
    return GP_OK;
}

gp_status_t gp_shm_arena(gp_arena_t **arena_p)
{
    shm_arena_t *a;
    gp_status_t status = GP_OK;

    pthread_mutex_lock(&process_lock);
    if (NULL == process_arena || process_arena->pid != getpid()) {
        a = calloc(1, sizeof(*a));
        if (NULL == a) {
            gp_log(GP_LOG_ERROR, "shared memory: out of host memory");
            status = GP_ERR_NO_MEMORY;
            goto out;
        }
        a->base.name = "shm";
        a->base.path = GP_PATH_HOST;
        a->base.alloc = shm_alloc;
        a->base.free = shm_free;
        a->base.export_mem = shm_export;
        a->base.map = shm_map;
        a->base.unmap = shm_unmap;
        a->base.attached = shm_attached;
        a->base.poke = shm_poke;
        pthread_mutex_init(&a->lock, NULL);
        a->pid = getpid();
        random_bytes(&a->process, sizeof(a->process));
        process_arena = a; /* a child's copy of its parent's arena is left alone */
    }
    *arena_p = &process_arena->base;
out:
    pthread_mutex_unlock(&process_lock);
    return status;
}

void gp_shm_arena_finalize(void)
{
    shm_arena_t *a;

    pthread_mutex_lock(&process_lock);
    a = process_arena;
    process_arena = NULL;
    pthread_mutex_unlock(&process_lock);
    if (NULL == a || a->pid != getpid()) {
        return;
    }
    while (NULL != a->segments) { /* quarantined pieces */
        segment_t *s = a->segments;

        a->segments = s->next;
        segment_drop_name(s);
        munmap(s->ptr, s->bytes);
        free(s);
    }
    while (NULL != a->mappings) {
        mapping_t *m = a->mappings;

        a->mappings = m->next;
        munmap(m->ptr, m->bytes);
        free(m);
    }
    pthread_mutex_destroy(&a->lock);
    free(a);
}
