/*
 * test_perf_data.c - the data of gpuproto_perf: reduced with plain C arithmetic, in any order of ranks, it
 * gives exactly what the checker expects; and the checker sees every changed element.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/gpuproto_perf_data.h"
#include "device/proto/gp_half.h"
#include "tests/lib/gp_tap.h"

#define COUNT 1500      /* several blocks of the generator, the last one partial */
#define FIRST 1000003ull
#define ELEM_BYTES 16

#define OP_SUM(a, b) ((a) + (b))
#define OP_PROD(a, b) ((a) * (b))
#define OP_MIN(a, b) ((b) < (a) ? (b) : (a))
#define OP_MAX(a, b) ((b) > (a) ? (b) : (a))
#define OP_BAND(a, b) ((a) & (b))
#define OP_BOR(a, b) ((a) | (b))
#define OP_BXOR(a, b) ((a) ^ (b))
#define OP_LAND(a, b) ((a) && (b))
#define OP_LOR(a, b) ((a) || (b))
#define OP_LXOR(a, b) (!(a) != !(b))

#define EACH(ctype, wide, OP)                                        \
    for (i = 0; i < COUNT; i++) {                                    \
        wide x = (wide) ((ctype *) acc)[i];                          \
        wide y = (wide) ((const ctype *) in)[i];                     \
        ((ctype *) acc)[i] = (ctype) OP(x, y);                       \
    }                                                                \
    break

/* wide: the type the arithmetic is done in, so that overflow is defined. */
#define INTEGER(ctype, wide, cmp)                                    \
    switch (op) {                                                    \
    case GP_OP_SUM: EACH(ctype, wide, OP_SUM);                       \
    case GP_OP_PROD: EACH(ctype, wide, OP_PROD);                     \
    case GP_OP_MIN: EACH(ctype, cmp, OP_MIN);                        \
    case GP_OP_MAX: EACH(ctype, cmp, OP_MAX);                        \
    case GP_OP_BAND: EACH(ctype, wide, OP_BAND);                     \
    case GP_OP_BOR: EACH(ctype, wide, OP_BOR);                       \
    case GP_OP_BXOR: EACH(ctype, wide, OP_BXOR);                     \
    case GP_OP_LAND: EACH(ctype, wide, OP_LAND);                     \
    case GP_OP_LOR: EACH(ctype, wide, OP_LOR);                       \
    default: EACH(ctype, wide, OP_LXOR);                             \
    }                                                                \
    break

#define REAL(ctype)                                                  \
    switch (op) {                                                    \
    case GP_OP_SUM: EACH(ctype, ctype, OP_SUM);                      \
    case GP_OP_PROD: EACH(ctype, ctype, OP_PROD);                    \
    case GP_OP_MIN: EACH(ctype, ctype, OP_MIN);                      \
    default: EACH(ctype, ctype, OP_MAX);                             \
    }                                                                \
    break

#define COMPLEX(ctype)                                               \
    switch (op) {                                                    \
    case GP_OP_SUM: EACH(ctype, ctype, OP_SUM);                      \
    default: EACH(ctype, ctype, OP_PROD);                            \
    }                                                                \
    break

static float real_op(gp_op_t op, float x, float y)
{
    switch (op) {
    case GP_OP_SUM: return OP_SUM(x, y);
    case GP_OP_PROD: return OP_PROD(x, y);
    case GP_OP_MIN: return OP_MIN(x, y);
    default: return OP_MAX(x, y);
    }
}

/* acc = acc (op) in, rounded to the type after every operation, as an allreduce does. */
static void reduce(gp_type_t type, gp_op_t op, void *acc, const void *in)
{
    uint16_t *acc16 = acc;
    const uint16_t *in16 = in;
    int i;

    switch (type) {
    case GP_TYPE_I8: INTEGER(int8_t, uint64_t, int8_t);
    case GP_TYPE_I16: INTEGER(int16_t, uint64_t, int16_t);
    case GP_TYPE_I32: INTEGER(int32_t, uint64_t, int32_t);
    case GP_TYPE_I64: INTEGER(int64_t, uint64_t, int64_t);
    case GP_TYPE_U8: INTEGER(uint8_t, uint64_t, uint8_t);
    case GP_TYPE_U16: INTEGER(uint16_t, uint64_t, uint16_t);
    case GP_TYPE_U32: INTEGER(uint32_t, uint64_t, uint32_t);
    case GP_TYPE_U64: INTEGER(uint64_t, uint64_t, uint64_t);
    case GP_TYPE_BOOL: INTEGER(uint8_t, uint64_t, uint8_t);
    case GP_TYPE_LOGICAL: INTEGER(int32_t, uint64_t, int32_t);
    case GP_TYPE_F32: REAL(float);
    case GP_TYPE_F64: REAL(double);
    case GP_TYPE_C32: COMPLEX(float complex);
    case GP_TYPE_C64: COMPLEX(double complex);
    case GP_TYPE_F16:
        for (i = 0; i < COUNT; i++) {
            acc16[i] = gp_f16_from_f32(
                real_op(op, gp_f32_from_f16(acc16[i]), gp_f32_from_f16(in16[i])));
        }
        break;
    default:
        for (i = 0; i < COUNT; i++) {
            acc16[i] = gp_bf16_from_f32(
                real_op(op, gp_f32_from_bf16(acc16[i]), gp_f32_from_bf16(in16[i])));
        }
        break;
    }
}

/* Reduce in two orders: a ring that starts anywhere, and pairs of pairs. */
static void in_some_order(const perf_data_t *d, char *bufs, uint32_t start, int pairs)
{
    size_t stride = (size_t) COUNT * ELEM_BYTES;
    uint32_t r, step;

    for (r = 0; r < d->n_ranks; r++) {
        perf_data_fill(d, (start + r) % d->n_ranks, FIRST, COUNT, bufs + r * stride);
    }
    if (pairs) {
        for (step = 1; step < d->n_ranks; step *= 2) {
            for (r = 0; r + step < d->n_ranks; r += 2 * step) {
                reduce(d->type, d->op, bufs + r * stride, bufs + (r + step) * stride);
            }
        }
    } else {
        for (r = 1; r < d->n_ranks; r++) {
            reduce(d->type, d->op, bufs, bufs + r * stride);
        }
    }
}

/* How many results differ from the first: if hardly any did, a misplaced element would not show. */
static int varies(gp_type_t type, const char *elems)
{
    uint32_t bytes = gp_type_bytes(type);
    int i, changes = 0;

    for (i = 1; i < COUNT; i++) {
        changes += 0 != memcmp(elems, elems + (size_t) i * bytes, bytes);
    }
    return changes;
}

static void one_pair(gp_type_t type, gp_op_t op, uint32_t n_ranks, uint32_t wrap, char *bufs)
{
    uint32_t bytes = gp_type_bytes(type);
    uint64_t wrong, bad = 0;
    perf_data_t d;
    uint32_t spot;
    int pairs;

    perf_data_init(&d, type, op, n_ranks, wrap, 42 + n_ranks);
    for (pairs = 0; pairs < 2; pairs++) {
        in_some_order(&d, bufs, n_ranks / 2, pairs);
        wrong = perf_data_check(&d, FIRST, COUNT, bufs, &bad);
        gp_check(0 == wrong,
                 "type %d op %d ranks %u wrap %u pairs %d: %llu of %d wrong, first at %llu", type,
                 op, n_ranks, wrap, pairs, (unsigned long long) wrong, COUNT,
                 (unsigned long long) bad);
    }
    gp_check(varies(type, bufs) > COUNT / 8, "type %d op %d ranks %u: the result hardly varies",
             type, op, n_ranks);
    /* Any one element, its lowest bit. */
    for (spot = 0; spot < COUNT; spot += 197) {
        char *at = bufs + (size_t) spot * bytes;

        at[0] = (char) (at[0] ^ 1);
        bad = 0;
        wrong = perf_data_check(&d, FIRST, COUNT, bufs, &bad);
        gp_check(1 == wrong && FIRST + spot == bad,
                 "type %d op %d ranks %u: changed element %u, found %llu wrong, first at %llu",
                 type, op, n_ranks, spot, (unsigned long long) wrong, (unsigned long long) bad);
        at[0] = (char) (at[0] ^ 1);
    }
}

int main(void)
{
    static const uint32_t rank_counts[] = {1, 2, 3, 4, 8, 64, 300};
    char *bufs = malloc((size_t) 300 * COUNT * ELEM_BYTES);
    unsigned type, op, n, wrap;

    gp_tap_begin();
    if (NULL == bufs) {
        gp_bail_out("no memory");
    }
    for (type = 0; type < GP_TYPE_COUNT; type++) {
        for (wrap = 0; wrap < 2; wrap++) {
            gp_group_begin("type %u, all operations, 1-300 ranks, %s", type,
                           wrap ? "sums may wrap" : "sums fit");
            for (op = 0; op < GP_OP_COUNT; op++) {
                for (n = 0; n < sizeof(rank_counts) / sizeof(rank_counts[0]); n++) {
                    if (gp_red_of((gp_type_t) type, (gp_op_t) op).valid) {
                        one_pair((gp_type_t) type, (gp_op_t) op, rank_counts[n], wrap, bufs);
                    }
                }
            }
            gp_group_end();
        }
    }
    free(bufs);
    return gp_tap_end();
}
