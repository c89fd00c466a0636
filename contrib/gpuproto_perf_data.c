/*
 * gpuproto_perf_data.c - generator and checker, see gpuproto_perf_data.h.
 *
 * Works in blocks: the loops over a block have no branch on type or operation, so that filling and
 * checking 1 GiB takes seconds. An element is re * 2^exp (+ im * 2^exp for complex types).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "contrib/gpuproto_perf_data.h"

#include <string.h>

/* Vectorised whatever the level the rest is built with: checking 1 GiB is all arithmetic. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#define BLOCK 1024

/* Ranks (counted from an index-dependent one) whose factor of a product is not just a sign. */
#define PROD_POWERS 4

enum shape {
    SHAPE_BITS,     /* any bit pattern: integers that wrap, bitwise XOR, integer MIN and MAX */
    SHAPE_DENSE,    /* mostly ones: an AND over all ranks keeps some bits */
    SHAPE_THIN,     /* mostly zeros, for OR */
    SHAPE_BOUND,    /* integers of at most limit: sums and comparisons are exact */
    SHAPE_FACTOR,   /* one value of at most limit, signs and powers of two from the others */
    SHAPE_TRUTHS,   /* logical values: mostly true for AND, mostly false for OR, half for XOR */
};

typedef struct block {
    int64_t re[BLOCK];
    int64_t im[BLOCK];
    int32_t exp[BLOCK];
} block_t;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Independent streams: salt 0 for values, 1.. for whatever else an element needs. */
static uint64_t stream_key(const perf_data_t *data, uint32_t rank, uint32_t salt)
{
    return mix(data->seed + 0x632be59bd9b4e019u * ((uint64_t) rank * 8 + salt + 1));
}

/* One multiplication less than mix(): this is where filling and checking spend their time. */
static uint64_t draw(uint64_t key, uint64_t index)
{
    uint64_t x = key + (index + 1) * 0x9e3779b97f4a7c15u;

    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 31);
}

/* A uniform integer in 0 .. n - 1. */
static uint64_t scale(uint64_t hash, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) hash * n) >> 64);
}

static int is_complex(gp_type_t type)
{
    return GP_TYPE_C32 == type || GP_TYPE_C64 == type;
}

static int is_integer(gp_type_t type)
{
    return type <= GP_TYPE_U64 || GP_TYPE_BOOL == type || GP_TYPE_LOGICAL == type;
}

static int is_unsigned(gp_type_t type)
{
    return type >= GP_TYPE_U8 && type <= GP_TYPE_U64;
}

/* Integers up to 2^bits are exact in the type (for integers: positive values fit). */
static uint32_t exact_bits(gp_type_t type)
{
    switch (type) {
    case GP_TYPE_F16:
        return 11;
    case GP_TYPE_BF16:
        return 8;
    case GP_TYPE_F32:
    case GP_TYPE_C32:
        return 24;
    case GP_TYPE_F64:
    case GP_TYPE_C64:
        return 53;
    default:
        return 8 * gp_type_bytes(type) - 1;
    }
}

void perf_data_init(perf_data_t *data, gp_type_t type, gp_op_t op, uint32_t n_ranks, uint32_t wrap,
                    uint64_t seed)
{
    uint64_t exact = (uint64_t) 1 << exact_bits(type);

    memset(data, 0, sizeof(*data));
    data->type = type;
    data->op = op;
    data->n_ranks = n_ranks;
    data->wrap = wrap;
    data->seed = seed;
    data->sparse = 1;
    switch (op) {
    case GP_OP_SUM:
        if (is_integer(type) && wrap) {
            data->shape = SHAPE_BITS;
            break;
        }
        data->shape = SHAPE_BOUND;
        data->limit = (exact - 1) / n_ranks;
        if (0 == data->limit) {
            data->limit = 1;
            data->sparse = (uint32_t) ((n_ranks + exact - 1) / (exact - 1)) + 1;
        }
        break;
    case GP_OP_PROD:
        if (is_integer(type) && wrap) {
            data->shape = SHAPE_BITS;
            break;
        }
        /* Room for the powers of two; a complex product adds two terms. */
        data->shape = SHAPE_FACTOR;
        data->limit = is_integer(type) ? (exact - 1) >> PROD_POWERS : (exact - 1) >> 1;
        break;
    case GP_OP_MIN:
    case GP_OP_MAX:
        data->shape = is_integer(type) ? SHAPE_BITS : SHAPE_BOUND;
        data->limit = exact - 1;
        break;
    case GP_OP_BAND:
        data->shape = SHAPE_DENSE;
        break;
    case GP_OP_BOR:
        data->shape = SHAPE_THIN;
        break;
    case GP_OP_BXOR:
        data->shape = SHAPE_BITS;
        break;
    default:
        data->shape = SHAPE_TRUTHS;
        break;
    }
}

/* Keep what the element type can hold, with its sign. */
static void narrow(gp_type_t type, block_t *b, uint32_t n)
{
    uint32_t i;

#define NARROW(ctype)                                  \
    for (i = 0; i < n; i++) {                          \
        b->re[i] = (int64_t) (ctype) b->re[i];         \
    }                                                  \
    break
    switch (type) {
    case GP_TYPE_I8: NARROW(int8_t);
    case GP_TYPE_I16: NARROW(int16_t);
    case GP_TYPE_I32: NARROW(int32_t);
    case GP_TYPE_U8: NARROW(uint8_t);
    case GP_TYPE_U16: NARROW(uint16_t);
    case GP_TYPE_U32: NARROW(uint32_t);
    default: break;
    }
#undef NARROW
}

static void gen_bits(const perf_data_t *d, uint32_t rank, uint64_t first, uint32_t n, block_t *b)
{
    uint32_t words = 0;
    uint32_t w, i;

    while (SHAPE_BITS != d->shape && ((uint32_t) 1 << words) < d->n_ranks && words < 6) {
        words++;
    }
    for (w = 0; w <= words; w++) {
        uint64_t key = stream_key(d, rank, w);

        for (i = 0; i < n; i++) {
            int64_t v = (int64_t) draw(key, first + i);

            if (0 == w) {
                b->re[i] = v;
            } else if (SHAPE_DENSE == d->shape) {
                b->re[i] |= v;
            } else {
                b->re[i] &= v;
            }
        }
    }
    for (i = 0; GP_OP_PROD == d->op && i < n; i++) {
        b->re[i] |= 1; /* a product of many even numbers is 0 */
    }
    narrow(d->type, b, n);
}

static void gen_bound(const perf_data_t *d, uint32_t rank, uint64_t first, uint32_t n, block_t *b)
{
    uint64_t key = stream_key(d, rank, 0);
    uint64_t key_im = stream_key(d, rank, 1);
    uint64_t range = is_unsigned(d->type) ? d->limit + 1 : 2 * d->limit + 1;
    int64_t low = is_unsigned(d->type) ? 0 : -(int64_t) d->limit;
    uint32_t i;

    for (i = 0; i < n; i++) {
        b->re[i] = (int64_t) scale(draw(key, first + i), range) + low;
    }
    if (is_complex(d->type)) {
        for (i = 0; i < n; i++) {
            b->im[i] = (int64_t) scale(draw(key_im, first + i), range) + low;
        }
    }
    for (i = 0; d->sparse > 1 && i < n; i++) {
        if (0 != (rank + first + i) % d->sparse) {
            b->re[i] = 0;
            b->im[i] = 0;
        }
    }
}

/*
 * One rank per index has a value, the next PROD_POWERS - 1 a power of two, all a sign (complex: a power
 * of i). So every partial product is exact, whatever the order.
 */
static void gen_factor(const perf_data_t *d, uint32_t rank, uint64_t first, uint32_t n, block_t *b)
{
    uint64_t key = stream_key(d, rank, 0);
    uint64_t key_im = stream_key(d, rank, 1);
    uint64_t key_unit = stream_key(d, rank, 2);
    uint32_t i;

    for (i = 0; i < n; i++) {
        uint64_t index = first + i;
        uint64_t turn = (rank + index) % d->n_ranks;
        uint64_t unit = draw(key_unit, index);
        int64_t re = 1;
        int64_t im = 0;

        if (0 == turn) {
            re = 1 + (int64_t) scale(draw(key, index), d->limit);
            im = is_complex(d->type) ? (int64_t) scale(draw(key_im, index), d->limit) : 0;
        }
        if ((unit & 1) && !is_unsigned(d->type)) {
            re = -re;
            im = -im;
        }
        if ((unit & 2) && is_complex(d->type)) {
            int64_t old = re;

            re = -im;
            im = old;
        }
        b->re[i] = re;
        b->im[i] = im;
        b->exp[i] = 0;
        if (turn > 0 && turn < PROD_POWERS) {
            b->exp[i] = (int32_t) (unit >> 8 & 1);
            b->exp[i] -= is_integer(d->type) ? 0 : 2 * (int32_t) (unit >> 16 & 1);
        }
    }
    for (i = 0; is_integer(d->type) && i < n; i++) {
        b->re[i] = b->re[i] * ((int64_t) 1 << b->exp[i]);
        b->exp[i] = 0;
    }
}

static void gen_truths(const perf_data_t *d, uint32_t rank, uint64_t first, uint32_t n, block_t *b)
{
    uint64_t key = stream_key(d, rank, 0);
    uint64_t key_value = stream_key(d, rank, 1);
    int only_one = GP_TYPE_BOOL == d->type || GP_TYPE_LOGICAL == d->type;
    uint32_t i;

    for (i = 0; i < n; i++) {
        int rare = 0 == scale(draw(key, first + i), 2 * (uint64_t) d->n_ranks);
        int half = (int) (draw(key, first + i) & 1);
        int truth = GP_OP_LAND == d->op ? !rare : GP_OP_LOR == d->op ? rare : half;

        /* Any value but zero is true: 1 .. 127. */
        b->re[i] = !truth ? 0 : only_one ? 1 : 1 + (int64_t) (draw(key_value, first + i) % 127);
    }
}

static void generate(const perf_data_t *d, uint32_t rank, uint64_t first, uint32_t n, block_t *b)
{
    switch (d->shape) {
    case SHAPE_BOUND:
        gen_bound(d, rank, first, n, b);
        break;
    case SHAPE_FACTOR:
        gen_factor(d, rank, first, n, b);
        break;
    case SHAPE_TRUTHS:
        gen_truths(d, rank, first, n, b);
        break;
    default:
        gen_bits(d, rank, first, n, b);
        break;
    }
}

/* a = a (op) b, in integers. */
static void combine(const perf_data_t *d, block_t *a, const block_t *b, uint32_t n)
{
    uint32_t i;

#define EACH(statement)       \
    for (i = 0; i < n; i++) { \
        statement;            \
    }                         \
    break
    switch (d->op) {
    case GP_OP_SUM:
        for (i = 0; i < n; i++) {
            a->re[i] = (int64_t) ((uint64_t) a->re[i] + (uint64_t) b->re[i]);
        }
        EACH(a->im[i] += b->im[i]);
    case GP_OP_PROD:
        for (i = 0; i < n; i++) {
            uint64_t re = (uint64_t) a->re[i] * (uint64_t) b->re[i];

            if (is_complex(d->type)) {
                re -= (uint64_t) a->im[i] * (uint64_t) b->im[i];
                a->im[i] = a->re[i] * b->im[i] + a->im[i] * b->re[i];
            }
            a->re[i] = (int64_t) re;
            a->exp[i] += b->exp[i];
        }
        break;
    case GP_OP_MIN:
        if (is_unsigned(d->type)) {
            EACH(a->re[i] = (uint64_t) b->re[i] < (uint64_t) a->re[i] ? b->re[i] : a->re[i]);
        }
        EACH(a->re[i] = b->re[i] < a->re[i] ? b->re[i] : a->re[i]);
    case GP_OP_MAX:
        if (is_unsigned(d->type)) {
            EACH(a->re[i] = (uint64_t) b->re[i] > (uint64_t) a->re[i] ? b->re[i] : a->re[i]);
        }
        EACH(a->re[i] = b->re[i] > a->re[i] ? b->re[i] : a->re[i]);
    case GP_OP_BAND:
        EACH(a->re[i] &= b->re[i]);
    case GP_OP_BOR:
        EACH(a->re[i] |= b->re[i]);
    case GP_OP_BXOR:
        EACH(a->re[i] ^= b->re[i]);
    case GP_OP_LAND:
        EACH(a->re[i] = a->re[i] && b->re[i]);
    case GP_OP_LOR:
        EACH(a->re[i] = a->re[i] || b->re[i]);
    default:
        EACH(a->re[i] = !a->re[i] != !b->re[i]);
    }
#undef EACH
    narrow(d->type, a, n);
}

static void clear_parts(block_t *b)
{
    memset(b->im, 0, sizeof(b->im));
    memset(b->exp, 0, sizeof(b->exp));
}

/* What all ranks must get. A single rank's input is copied as it is. */
static void want(const perf_data_t *d, uint64_t first, uint32_t n, block_t *a)
{
    static block_t b;
    uint32_t r;

    clear_parts(a);
    generate(d, 0, first, n, a);
    clear_parts(&b);
    for (r = 1; r < d->n_ranks; r++) {
        generate(d, r, first, n, &b);
        combine(d, a, &b, n);
    }
}

static double power_of_two(int32_t exp)
{
    double v = 1.0;

    for (; exp > 0; exp--) {
        v *= 2.0;
    }
    for (; exp < 0; exp++) {
        v *= 0.5;
    }
    return v;
}

static double real_part(const block_t *b, uint32_t i)
{
    return 0 == b->exp[i] ? (double) b->re[i] : (double) b->re[i] * power_of_two(b->exp[i]);
}

static double imag_part(const block_t *b, uint32_t i)
{
    return 0 == b->exp[i] ? (double) b->im[i] : (double) b->im[i] * power_of_two(b->exp[i]);
}

/* v must be exact in binary16, and normal or zero. */
static uint16_t half_bits(double v)
{
    uint64_t u;

    memcpy(&u, &v, sizeof(u));
    if (0 == (u << 1)) {
        return (uint16_t) (u >> 48);
    }
    return (uint16_t) ((u >> 48 & 0x8000) | (((u >> 52 & 0x7ff) - 1023 + 15) << 10)
                       | (u >> 42 & 0x3ff));
}

static double half_value(uint16_t h)
{
    int32_t exp = h >> 10 & 31;
    double v = h & 0x3ff;

    if (31 == exp) {
        v = 0.0 == v ? __builtin_inf() : __builtin_nan("");
        return h >> 15 ? -v : v;
    }
    v = 0 == exp ? v * power_of_two(-24) : (v + 1024.0) * power_of_two(exp - 25);
    return h >> 15 ? -v : v;
}

/* v must be exact in bfloat16. */
static uint16_t brain_bits(double v)
{
    float f = (float) v;
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return (uint16_t) (u >> 16);
}

static double brain_value(uint16_t h)
{
    uint32_t u = (uint32_t) h << 16;
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static void store(gp_type_t type, const block_t *b, uint32_t n, void *elems)
{
    uint32_t i;

#define STORE(ctype, value)               \
    for (i = 0; i < n; i++) {             \
        ((ctype *) elems)[i] = (value);   \
    }                                     \
    break
    switch (type) {
    case GP_TYPE_I8: case GP_TYPE_U8: case GP_TYPE_BOOL:
        STORE(uint8_t, (uint8_t) b->re[i]);
    case GP_TYPE_I16: case GP_TYPE_U16:
        STORE(uint16_t, (uint16_t) b->re[i]);
    case GP_TYPE_I32: case GP_TYPE_U32: case GP_TYPE_LOGICAL:
        STORE(uint32_t, (uint32_t) b->re[i]);
    case GP_TYPE_I64: case GP_TYPE_U64:
        STORE(uint64_t, (uint64_t) b->re[i]);
    case GP_TYPE_F16:
        STORE(uint16_t, half_bits(real_part(b, i)));
    case GP_TYPE_BF16:
        STORE(uint16_t, brain_bits(real_part(b, i)));
    case GP_TYPE_F32:
        STORE(float, (float) real_part(b, i));
    case GP_TYPE_F64:
        STORE(double, real_part(b, i));
    case GP_TYPE_C32:
        for (i = 0; i < n; i++) {
            ((float *) elems)[2 * i] = (float) real_part(b, i);
            ((float *) elems)[2 * i + 1] = (float) imag_part(b, i);
        }
        break;
    default:
        for (i = 0; i < n; i++) {
            ((double *) elems)[2 * i] = real_part(b, i);
            ((double *) elems)[2 * i + 1] = imag_part(b, i);
        }
        break;
    }
#undef STORE
}

/* Number of elements that differ. Numbers are compared, not bits: -0 is 0. */
static uint32_t compare(gp_type_t type, const block_t *b, uint32_t n, const void *elems)
{
    uint32_t wrong = 0;
    uint32_t i;

#define COMPARE(condition)        \
    for (i = 0; i < n; i++) {     \
        wrong += !(condition);    \
    }                             \
    break
#define AT(ctype) (((const ctype *) elems)[i])
    switch (type) {
    case GP_TYPE_I8: case GP_TYPE_U8: case GP_TYPE_BOOL:
        COMPARE(AT(uint8_t) == (uint8_t) b->re[i]);
    case GP_TYPE_I16: case GP_TYPE_U16:
        COMPARE(AT(uint16_t) == (uint16_t) b->re[i]);
    case GP_TYPE_I32: case GP_TYPE_U32: case GP_TYPE_LOGICAL:
        COMPARE(AT(uint32_t) == (uint32_t) b->re[i]);
    case GP_TYPE_I64: case GP_TYPE_U64:
        COMPARE(AT(uint64_t) == (uint64_t) b->re[i]);
    case GP_TYPE_F16:
        COMPARE(half_value(AT(uint16_t)) == real_part(b, i));
    case GP_TYPE_BF16:
        COMPARE(brain_value(AT(uint16_t)) == real_part(b, i));
    case GP_TYPE_F32:
        COMPARE((double) AT(float) == real_part(b, i));
    case GP_TYPE_F64:
        COMPARE(AT(double) == real_part(b, i));
    case GP_TYPE_C32:
        COMPARE((double) ((const float *) elems)[2 * i] == real_part(b, i)
                && (double) ((const float *) elems)[2 * i + 1] == imag_part(b, i));
    default:
        COMPARE(((const double *) elems)[2 * i] == real_part(b, i)
                && ((const double *) elems)[2 * i + 1] == imag_part(b, i));
    }
#undef AT
#undef COMPARE
    return wrong;
}

void perf_data_fill(const perf_data_t *data, uint32_t rank, uint64_t first, uint64_t count,
                    void *elems)
{
    static block_t b;
    char *to = elems;

    clear_parts(&b);
    while (count > 0) {
        uint32_t n = count < BLOCK ? (uint32_t) count : BLOCK;

        generate(data, rank, first, n, &b);
        store(data->type, &b, n, to);
        to += (size_t) n * gp_type_bytes(data->type);
        first += n;
        count -= n;
    }
}

uint64_t perf_data_check(const perf_data_t *data, uint64_t first, uint64_t count, const void *elems,
                         uint64_t *bad_p)
{
    static block_t b;
    const char *from = elems;
    size_t elem_bytes = gp_type_bytes(data->type);
    uint64_t wrong = 0;

    while (count > 0) {
        uint32_t n = count < BLOCK ? (uint32_t) count : BLOCK;
        uint32_t here, i;

        want(data, first, n, &b);
        here = compare(data->type, &b, n, from);
        for (i = 0; 0 != here && 0 == wrong && NULL != bad_p; i++) {
            block_t one = {{b.re[i]}, {b.im[i]}, {b.exp[i]}};

            if (0 != compare(data->type, &one, 1, from + i * elem_bytes)) {
                *bad_p = first + i;
                break;
            }
        }
        wrong += here;
        from += n * elem_bytes;
        first += n;
        count -= n;
    }
    return wrong;
}
