/*
 * mpi_types.c - every predefined type and operation, and those that are not ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "planner/gp_plan.h"
#include "tests/mpi/mpi_cases.h"

#define MAX_TYPES 64

const mc_type_t *mc_types(size_t *n)
{
    static mc_type_t t[MAX_TYPES];
    static size_t count;
    const gp_type_t s[] = {
        [1] = GP_TYPE_I8, [2] = GP_TYPE_I16, [4] = GP_TYPE_I32, [8] = GP_TYPE_I64};
    const gp_type_t u[] = {
        [1] = GP_TYPE_U8, [2] = GP_TYPE_U16, [4] = GP_TYPE_U32, [8] = GP_TYPE_U64};

#define ADD(mpi_type, gp)                                                                          \
    t[count].mpi = mpi_type;                                                                       \
    t[count].type = gp;                                                                            \
    t[count++].name = #mpi_type
    if (0 == count) {
        ADD(MPI_INT8_T, GP_TYPE_I8);
        ADD(MPI_INT16_T, GP_TYPE_I16);
        ADD(MPI_INT32_T, GP_TYPE_I32);
        ADD(MPI_INT64_T, GP_TYPE_I64);
        ADD(MPI_UINT8_T, GP_TYPE_U8);
        ADD(MPI_UINT16_T, GP_TYPE_U16);
        ADD(MPI_UINT32_T, GP_TYPE_U32);
        ADD(MPI_UINT64_T, GP_TYPE_U64);
        ADD(MPI_SIGNED_CHAR, GP_TYPE_I8);
        ADD(MPI_UNSIGNED_CHAR, GP_TYPE_U8);
        ADD(MPI_SHORT, s[sizeof(short)]);
        ADD(MPI_UNSIGNED_SHORT, u[sizeof(short)]);
        ADD(MPI_INT, s[sizeof(int)]);
        ADD(MPI_UNSIGNED, u[sizeof(int)]);
        ADD(MPI_LONG, s[sizeof(long)]);
        ADD(MPI_UNSIGNED_LONG, u[sizeof(long)]);
        ADD(MPI_LONG_LONG, s[sizeof(long long)]);
        ADD(MPI_UNSIGNED_LONG_LONG, u[sizeof(long long)]);
        ADD(MPI_AINT, s[sizeof(MPI_Aint)]);
        ADD(MPI_OFFSET, s[sizeof(MPI_Offset)]);
        ADD(MPI_COUNT, s[sizeof(MPI_Count)]);
        ADD(MPI_FLOAT, GP_TYPE_F32);
        ADD(MPI_DOUBLE, GP_TYPE_F64);
        ADD(MPI_C_FLOAT_COMPLEX, GP_TYPE_C32);
        ADD(MPI_C_DOUBLE_COMPLEX, GP_TYPE_C64);
        ADD(MPI_C_BOOL, GP_TYPE_BOOL);
        ADD(MPI_BYTE, GP_TYPE_U8);
        ADD(MPI_INTEGER, GP_TYPE_I32);
        ADD(MPI_REAL, GP_TYPE_F32);
        ADD(MPI_DOUBLE_PRECISION, GP_TYPE_F64);
        ADD(MPI_LOGICAL, GP_TYPE_LOGICAL);
    }
#undef ADD
    *n = count;
    return t;
}

const mc_op_t *mc_ops(size_t *n)
{
    static mc_op_t o[GP_OP_COUNT];

#define SET(gp, mpi_op)                                                                            \
    o[gp].mpi = mpi_op;                                                                            \
    o[gp].op = gp;                                                                                 \
    o[gp].name = #mpi_op
    SET(GP_OP_SUM, MPI_SUM);
    SET(GP_OP_PROD, MPI_PROD);
    SET(GP_OP_MIN, MPI_MIN);
    SET(GP_OP_MAX, MPI_MAX);
    SET(GP_OP_BAND, MPI_BAND);
    SET(GP_OP_BOR, MPI_BOR);
    SET(GP_OP_BXOR, MPI_BXOR);
    SET(GP_OP_LAND, MPI_LAND);
    SET(GP_OP_LOR, MPI_LOR);
    SET(GP_OP_LXOR, MPI_LXOR);
#undef SET
    *n = GP_OP_COUNT;
    return o;
}

/* MPI allows fewer pairs than we have arithmetic for: bytes have no sums. */
static int allowed(const mc_type_t *t, const mc_op_t *o)
{
    if (MPI_BYTE == t->mpi) {
        return o->op >= GP_OP_BAND && o->op <= GP_OP_BXOR;
    }
    if (MPI_INTEGER == t->mpi && o->op >= GP_OP_LAND) {
        return 0; /* logical operations on Fortran's integers are not defined */
    }
    return gp_red_of(t->type, o->op).valid;
}

void mc_matrix(void)
{
    static const size_t counts[] = {1, 2, 3, 5, 31, 257, 4099, 70001};
    size_t n_types, n_ops, size;
    const mc_type_t *types = mc_types(&n_types);
    const mc_op_t *ops = mc_ops(&n_ops);
    uint64_t seed = 1;

    for (size_t i = 0; i < n_types; i++) {
        int bytes;

        MPI_Type_size(types[i].mpi, &bytes);
        if ((uint32_t) bytes != gp_type_bytes(types[i].type)) {
            mc_fail("%s has %d bytes, want %u", types[i].name, bytes, gp_type_bytes(types[i].type));
            continue;
        }
        for (size_t k = 0; k < n_ops; k++) {
            if (!allowed(&types[i], &ops[k])) {
                continue;
            }
            for (size_t c = 0; c < 3; c++) { /* three sizes each, all sizes over the table */
                perf_mpit_values_t before = mc_stats();

                size = counts[(i + 3 * k + c * 3) % (sizeof(counts) / sizeof(counts[0]))];
                mc_call(MPI_COMM_WORLD, &types[i], &ops[k], size, (int) ((i + k + c) % 2),
                        (i + c) % 4, seed++);
                mc_expect(&before, mc_ranks > 1 ? MC_OURS : MC_DECLINED, 1, types[i].name);
            }
        }
    }
}

/* 2 x 2 matrices: a product that does not commute. */
static void matrix_product(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int *a = in, *b = inout;

    (void) type;
    for (int i = 0; i < *len; i++, a += 4, b += 4) {
        int r[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                    a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};

        memcpy(b, r, sizeof(r));
    }
}

static void user_op(void)
{
    enum { COUNT = 100 };
    int in[COUNT][4], out[COUNT][4], want[COUNT][4];
    perf_mpit_values_t before = mc_stats();
    MPI_Datatype type;
    void *send = perf_mem_alloc(sizeof(in)), *recv = perf_mem_alloc(sizeof(out));
    MPI_Op op;
    int len = COUNT;

    for (int r = mc_ranks - 1; r >= 0; r--) {
        for (int i = 0; i < COUNT; i++) {
            int m[4] = {1, (r + i) % 3, (r * i) % 2, 1};

            memcpy(r == mc_ranks - 1 ? want[i] : in[i], m, sizeof(m));
        }
        if (r < mc_ranks - 1) {
            matrix_product(in, want, &len, NULL);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        int m[4] = {1, (mc_rank + i) % 3, (mc_rank * i) % 2, 1};

        memcpy(in[i], m, sizeof(m));
    }
    MPI_Type_contiguous(4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(matrix_product, 0, &op);
    perf_mem_put(send, in, sizeof(in));
    MPI_Allreduce(send, recv, COUNT, type, op, MPI_COMM_WORLD);
    perf_mem_get(out, recv, sizeof(out));
    if (0 != memcmp(out, want, sizeof(out))) {
        mc_fail("user operation on a derived type: wrong product");
    }
    mc_expect(&before, MC_DECLINED, 1, "user operation");
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    perf_mem_free(send);
    perf_mem_free(recv);
}

/* Every second int of a vector: the holes must come back as they were. */
static void sum_every_second(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int *a = in, *b = inout;

    (void) type;
    for (int i = 0; i < *len; i++, a += 5, b += 5) {
        b[1] += a[1];
        b[3] += a[3];
    }
}

static void holes(void)
{
    enum { COUNT = 50, STRIDE = 5 };
    int host[COUNT * STRIDE];
    perf_mpit_values_t before = mc_stats();
    int lengths[2] = {1, 1};
    int at[2] = {1, 3};
    MPI_Datatype indexed, type;
    void *buf = perf_mem_alloc(sizeof(host));
    MPI_Op op;

    for (int i = 0; i < COUNT * STRIDE; i++) {
        host[i] = 1000 * mc_rank + i;
    }
    MPI_Type_indexed(2, lengths, at, MPI_INT, &indexed);
    MPI_Type_create_resized(indexed, 0, STRIDE * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(sum_every_second, 1, &op);
    perf_mem_put(buf, host, sizeof(host));
    MPI_Allreduce(MPI_IN_PLACE, buf, COUNT, type, op, MPI_COMM_WORLD);
    perf_mem_get(host, buf, sizeof(host));
    for (int i = 0; i < COUNT * STRIDE; i++) {
        int part = 1 == i % STRIDE || 3 == i % STRIDE;
        int want = part ? mc_ranks * i + 1000 * (mc_ranks * (mc_ranks - 1) / 2)
                        : 1000 * mc_rank + i;

        if (want != host[i]) {
            mc_fail("type with holes: element %d is %d, want %d", i, host[i], want);
            break;
        }
    }
    mc_expect(&before, MC_DECLINED, 1, "type with holes");
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Type_free(&indexed);
    perf_mem_free(buf);
}

/* Pairs and long doubles belong to the previous component. */
static void not_ours(void)
{
    struct {
        float value;
        int index;
    } in = {(float) ((mc_rank * 7) % 5), mc_rank}, out = {0, 0}, want = {-1, 0};
    long double ld = 1.5L + mc_rank, ld_out = 0;
    perf_mpit_values_t before = mc_stats();
    void *send = perf_mem_alloc(64), *recv = perf_mem_alloc(64);

    for (int r = 0; r < mc_ranks; r++) {
        if ((float) ((r * 7) % 5) > want.value) {
            want.value = (float) ((r * 7) % 5);
            want.index = r;
        }
    }
    perf_mem_put(send, &in, sizeof(in));
    MPI_Allreduce(send, recv, 1, MPI_FLOAT_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    perf_mem_get(&out, recv, sizeof(out));
    if (out.value != want.value || out.index != want.index) {
        mc_fail("MAXLOC: %f at %d, want %f at %d", (double) out.value, out.index,
                (double) want.value, want.index);
    }
    perf_mem_put(send, &ld, sizeof(ld));
    MPI_Allreduce(send, recv, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    perf_mem_get(&ld_out, recv, sizeof(ld_out));
    if (ld_out != 1.5L * mc_ranks + mc_ranks * (mc_ranks - 1) / 2) {
        mc_fail("long double sum: %Lf", ld_out);
    }
    mc_expect(&before, MC_DECLINED, 2, "MAXLOC and long double");
    perf_mem_free(send);
    perf_mem_free(recv);
}

void mc_other(void)
{
    user_op();
    holes();
    not_ours();
}

/* GP_EXPECT: "declined", or "algorithm/protocol" that must have run. GP_COUNT: floats. */
void mc_expected(void)
{
    const char *expect = getenv("GP_EXPECT");
    const char *count = getenv("GP_COUNT");
    perf_mpit_values_t before = mc_stats();
    size_t n, m;
    const mc_type_t *types = mc_types(&n);
    const mc_op_t *ops = mc_ops(&m);
    int declined = NULL != expect && 0 == strcmp(expect, "declined");
    char ran[64];

    for (size_t i = 0; i < n; i++) {
        if (MPI_FLOAT == types[i].mpi) {
            mc_call(MPI_COMM_WORLD, &types[i], &ops[0],
                    NULL != count ? strtoull(count, NULL, 10) : 1000, 0, 0, 42);
        }
    }
    if (NULL == expect) {
        mc_fail("GP_EXPECT is not set");
        return;
    }
    if (0 == strcmp(expect, "anything")) {
        return;
    }
    mc_expect(&before, declined ? MC_DECLINED : MC_OURS, 1, expect);
    if (!declined && 0 != strcmp(expect, "ours")) {
        perf_mpit_values_t v = mc_stats();

        snprintf(ran, sizeof(ran), "%s/%s", gp_algorithm_name((uint32_t) v.algorithm),
                 gp_protocol_name((uint32_t) v.protocol));
        if (0 != strcmp(ran, expect)) {
            mc_fail("%s ran, want %s", ran, expect);
        }
    }
}
