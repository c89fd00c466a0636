/*
 * test_reduce.c - the arithmetic of gp_reduce.h and gp_half.h against arithmetic done another way.
 *
 * Integers are computed in 128 bits and cut; 16-bit floats are rounded by searching a table of all their
 * values; float is computed in double and double in 113 bits, wide enough that rounding twice is rounding
 * once. Extrema are compared by an integer key of the total order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include <math.h>

#include "device/proto/gp_reduce.h"

#if defined(__SIZEOF_FLOAT128__)
typedef __float128 wide_t;
#else
typedef long double wide_t;
#endif
GP_STATIC_ASSERT(sizeof(wide_t) == 16, "a type of 113 bits");

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* ---- integers ------------------------------------------------------------------------------- */

static int64_t sign_extend(uint64_t v, uint32_t bits)
{
    return (int64_t) (v << (64 - bits)) >> (64 - bits);
}

static uint64_t expected_int(uint32_t rop, uint64_t a, uint64_t b, uint32_t bits)
{
    unsigned __int128 wide_a = a, wide_b = b, r = 0;

    switch (rop) {
    case GP_ROP_SUM: r = wide_a + wide_b; break;
    case GP_ROP_PROD: r = wide_a * wide_b; break;
    case GP_ROP_MIN: r = a <= b ? a : b; break;
    case GP_ROP_MAX: r = a >= b ? a : b; break;
    case GP_ROP_MIN_S: r = sign_extend(a, bits) <= sign_extend(b, bits) ? a : b; break;
    case GP_ROP_MAX_S: r = sign_extend(a, bits) >= sign_extend(b, bits) ? a : b; break;
    case GP_ROP_BAND: r = ~(~wide_a | ~wide_b); break;
    case GP_ROP_BOR: r = ~(~wide_a & ~wide_b); break;
    case GP_ROP_BXOR: r = (wide_a | wide_b) - ~(~wide_a | ~wide_b); break;
    case GP_ROP_LAND: r = 0 == a || 0 == b ? 0 : 1; break;
    case GP_ROP_LOR: r = 0 == a && 0 == b ? 0 : 1; break;
    default: r = (0 == a) == (0 == b) ? 0 : 1; break;
    }
    return (uint64_t) r & (64 == bits ? ~0ull : (1ull << bits) - 1);
}

static uint64_t reduced_int(uint32_t rop, uint64_t a, uint64_t b, uint32_t bits)
{
    switch (bits) {
    case 8: return gp_reduce_u8(rop, (uint8_t) a, (uint8_t) b);
    case 16: return gp_reduce_u16(rop, (uint16_t) a, (uint16_t) b);
    case 32: return gp_reduce_u32(rop, (uint32_t) a, (uint32_t) b);
    default: return gp_reduce_u64(rop, a, b);
    }
}

static void check_int(uint32_t rop, uint64_t a, uint64_t b, uint32_t bits)
{
    uint64_t got = reduced_int(rop, a, b, bits), want = expected_int(rop, a, b, bits);

    gp_check(got == want, "%u bits, rop %u: 0x%llx with 0x%llx gives 0x%llx, want 0x%llx", bits,
             rop, (unsigned long long) a, (unsigned long long) b, (unsigned long long) got,
             (unsigned long long) want);
}

static void test_integers(void)
{
    gp_group_begin("8-bit integers, all operands, 12 operations");
    for (uint32_t rop = 0; rop < GP_ROP_COUNT; rop++) {
        for (uint64_t a = 0; a < 256; a++) {
            for (uint64_t b = 0; b < 256; b++) {
                check_int(rop, a, b, 8);
            }
        }
    }
    gp_group_end();
    for (uint32_t bits = 16; bits <= 64; bits *= 2) {
        uint64_t mask = 64 == bits ? ~0ull : (1ull << bits) - 1;
        uint64_t edges[] = {0, 1, 2, mask, mask - 1, mask >> 1, (mask >> 1) + 1, (mask >> 1) - 1};

        gp_group_begin("%u-bit integers, edges and random operands, 12 operations", bits);
        for (uint32_t rop = 0; rop < GP_ROP_COUNT; rop++) {
            for (size_t i = 0; i < 8; i++) {
                for (size_t k = 0; k < 8; k++) {
                    check_int(rop, edges[i], edges[k], bits);
                }
                check_int(rop, edges[i], random_bits() & mask, bits);
                check_int(rop, random_bits() & mask, edges[i], bits);
            }
            for (int i = 0; i < 20000; i++) {
                check_int(rop, random_bits() & mask, random_bits() & mask, bits);
            }
        }
        gp_group_end();
    }
}

/* ---- 16-bit floats -------------------------------------------------------------------------- */

/* A 16-bit format: 1 sign bit, exp_bits, the rest mantissa. */
typedef struct half {
    const char *name;
    int exp_bits;
    uint16_t nan;
    float (*widen)(uint16_t h);
    uint16_t (*narrow)(float f);
    uint16_t (*reduce)(uint32_t rop, uint16_t a, uint16_t b);
    double values[32769]; /* of 0 .. infinity, infinity as the next power of two; then unused */
    uint16_t infinity;
} half_t;

static float widen_f16(uint16_t h) { return gp_f32_from_f16(h); }
static float widen_bf16(uint16_t h) { return gp_f32_from_bf16(h); }
static uint16_t narrow_f16(float f) { return gp_f16_from_f32(f); }
static uint16_t narrow_bf16(float f) { return gp_bf16_from_f32(f); }
static uint16_t reduce_f16(uint32_t r, uint16_t a, uint16_t b) { return gp_reduce_f16(r, a, b); }
static uint16_t reduce_bf16(uint32_t r, uint16_t a, uint16_t b) { return gp_reduce_bf16(r, a, b); }

static half_t halves[] = {
    {.name = "f16", .exp_bits = 5, .nan = 0x7e00, .widen = widen_f16, .narrow = narrow_f16,
     .reduce = reduce_f16},
    {.name = "bf16", .exp_bits = 8, .nan = 0x7fc0, .widen = widen_bf16, .narrow = narrow_bf16,
     .reduce = reduce_bf16},
};

/* From the definition of the format. */
static void fill_values(half_t *h)
{
    int mantissa_bits = 15 - h->exp_bits, bias = (1 << (h->exp_bits - 1)) - 1;

    h->infinity = (uint16_t) (((1u << h->exp_bits) - 1) << mantissa_bits);
    for (uint32_t bits = 0; bits <= h->infinity; bits++) {
        int exponent = (int) (bits >> mantissa_bits);
        int mantissa = (int) (bits & ((1u << mantissa_bits) - 1));

        h->values[bits] = 0 == exponent
            ? ldexp(mantissa, 1 - bias - mantissa_bits)
            : ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    }
}

/* Nearest value, ties to even, by search. */
static uint16_t expected_narrow(const half_t *h, float f)
{
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    double x = fabs((double) f);
    uint32_t low = 0, high = h->infinity;

    if (isnan(f)) {
        return h->nan;
    }
    if (x >= h->values[h->infinity]) {
        return sign | h->infinity;
    }
    while (high - low > 1) { /* values[low] <= x < values[high] */
        uint32_t middle = (low + high) / 2;

        if (h->values[middle] <= x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (x - h->values[low] > h->values[high] - x
        || (x - h->values[low] == h->values[high] - x && 0 != low % 2)) {
        low = high;
    }
    return (uint16_t) (sign | low);
}

static void check_narrow(const half_t *h, float f)
{
    uint16_t got = h->narrow(f), want = expected_narrow(h, f);

    gp_check(got == want, "%s of %a (0x%08x): 0x%04x, want 0x%04x", h->name, (double) f,
             gp_f32_bits(f), got, want);
}

static void test_conversions(const half_t *h)
{
    uint64_t stride = NULL != getenv("GP_CHECK_QUICK") ? 65537 : 1021;

    gp_group_begin("%s to float, all 65,536", h->name);
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint32_t magnitude = bits & 0x7fffu;
        float f = h->widen((uint16_t) bits);

        if (magnitude > h->infinity) {
            gp_check(isnan(f), "%s 0x%04x is a NaN", h->name, bits);
        } else {
            double want = magnitude == h->infinity ? INFINITY : h->values[magnitude];

            gp_check(fabs((double) f) == want && (0 != signbit(f)) == (0 != (bits & 0x8000u)),
                     "%s 0x%04x: %a, want %a", h->name, bits, (double) f, want);
        }
    }
    gp_group_end();
    gp_group_begin("float to %s: around every value and every tie, both signs", h->name);
    for (uint32_t bits = 0; bits < h->infinity; bits++) {
        float value = (float) h->values[bits];
        float tie = (float) ((h->values[bits] + h->values[bits + 1]) / 2);
        float at[] = {value, nextafterf(value, INFINITY), nextafterf(value, -INFINITY),
                      tie,   nextafterf(tie, INFINITY),   nextafterf(tie, -INFINITY)};

        for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
            check_narrow(h, at[i]);
            check_narrow(h, -at[i]);
        }
    }
    check_narrow(h, INFINITY);
    check_narrow(h, -INFINITY);
    check_narrow(h, gp_bits_f32(0x7fc00001u));
    check_narrow(h, gp_bits_f32(0xff800001u));
    gp_group_end();
    gp_group_begin("float to %s: every %lluth of all floats", h->name, (unsigned long long) stride);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride) {
        check_narrow(h, gp_bits_f32((uint32_t) bits));
    }
    gp_group_end();
}

/* ---- total order of floats ------------------------------------------------------------------ */

/* Ascending with the value, -0 below +0; bits of a float that is no NaN, left-aligned in 64. */
static int64_t order_key(uint64_t bits, uint32_t width)
{
    int64_t v = sign_extend(bits, width);

    return v < 0 ? (int64_t) (~(uint64_t) v | 1ull << 63) : v;
}

static uint64_t expected_extremum(uint32_t rop, uint64_t a, uint64_t b, int nan_a, int nan_b,
                                  uint64_t nan, uint32_t width)
{
    if (nan_a || nan_b) {
        return nan;
    }
    if (GP_ROP_MIN == rop) {
        return order_key(a, width) <= order_key(b, width) ? a : b;
    }
    return order_key(a, width) >= order_key(b, width) ? a : b;
}

/* The stated rule: widen, compute in float, round once. */
static uint16_t expected_half(const half_t *h, uint32_t rop, uint16_t a, uint16_t b)
{
    int nan_a = (a & 0x7fff) > h->infinity, nan_b = (b & 0x7fff) > h->infinity;
    double x = (a & 0x7fff) == h->infinity ? INFINITY : h->values[(a & 0x7fff) % 32769];
    double y = (b & 0x7fff) == h->infinity ? INFINITY : h->values[(b & 0x7fff) % 32769];

    if (GP_ROP_MIN == rop || GP_ROP_MAX == rop) {
        return (uint16_t) expected_extremum(rop, a, b, nan_a, nan_b, h->nan, 16);
    }
    if (nan_a || nan_b) {
        return h->nan;
    }
    x = a & 0x8000 ? -x : x;
    y = b & 0x8000 ? -y : y;
    return expected_narrow(h, (float) (GP_ROP_SUM == rop ? x + y : x * y));
}

static void check_half(const half_t *h, uint32_t rop, uint16_t a, uint16_t b)
{
    uint16_t got = h->reduce(rop, a, b), want = expected_half(h, rop, a, b);

    gp_check(got == want, "%s rop %u: 0x%04x with 0x%04x gives 0x%04x, want 0x%04x", h->name, rop,
             a, b, got, want);
}

static void test_half_arithmetic(const half_t *h)
{
    const uint16_t edges[] = {0, 1, 2, 0x3ff, 0x400, 0x7f, 0x80, 0x3c00, 0x3f80, h->infinity,
                              (uint16_t) (h->infinity - 1), (uint16_t) (h->infinity + 1), 0x7fff};

    gp_group_begin("%s sum, product, minimum, maximum: all values with edges, random pairs",
                   h->name);
    for (uint32_t rop = GP_ROP_SUM; rop <= GP_ROP_MAX; rop++) {
        for (uint32_t a = 0; a < 65536; a++) {
            for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++) {
                check_half(h, rop, (uint16_t) a, edges[e]);
                check_half(h, rop, edges[e] | 0x8000, (uint16_t) a);
            }
        }
        for (int i = 0; i < 300000; i++) {
            uint64_t r = random_bits();

            check_half(h, rop, (uint16_t) r, (uint16_t) (r >> 16));
            /* Close exponents: cancellation and ties. */
            check_half(h, rop, (uint16_t) r, (uint16_t) ((r ^ ((r >> 20) & 0x1ff)) ^ 0x8000));
        }
    }
    gp_group_end();
}

/* ---- float and double ----------------------------------------------------------------------- */

#define F32_NAN 0x7fc00000u
#define F64_NAN 0x7ff8000000000000ull

static const uint32_t edges_f32[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000,
    0x3f800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
    0xffffffff, 0x33800000, 0x5f800000, 0x20000000};
#define N_EDGES (sizeof(edges_f32) / sizeof(edges_f32[0]))

/* The edges of double in the same places. */
static uint64_t edge_f64(size_t i)
{
    double d = (double) gp_bits_f32(edges_f32[i]);
    uint64_t bits = (uint64_t) edges_f32[i] << 32;

    if (isnan(d) || isinf(d) || 0 == d) {
        return isnan(d) ? bits | F64_NAN | (uint64_t) i : gp_f64_bits(d);
    }
    switch (edges_f32[i] & 0x7fffffffu) {
    case 1: return bits & 1ull << 63 ? 0x8000000000000001ull : 1;
    case 0x007fffff: return 0x000fffffffffffffull;
    case 0x00800000: return 0x0010000000000000ull;
    case 0x7f7fffff: return (bits & 1ull << 63) | 0x7fefffffffffffffull;
    case 0x3f800001: return 0x3ff0000000000001ull;
    case 0x5f800000: return 0x5ff0000000000000ull;
    case 0x20000000: return 0x2000000000000000ull;
    default: return gp_f64_bits(d);
    }
}

static uint32_t sum_or_product_f32(uint32_t rop, uint32_t a, uint32_t b)
{
    double x = (double) gp_bits_f32(a), y = (double) gp_bits_f32(b);
    float r = (float) (GP_ROP_SUM == rop ? x + y : x * y);

    return isnan(r) ? F32_NAN : gp_f32_bits(r);
}

static uint64_t sum_or_product_f64(uint32_t rop, uint64_t a, uint64_t b)
{
    wide_t x = (wide_t) gp_bits_f64(a), y = (wide_t) gp_bits_f64(b);
    double r = (double) (GP_ROP_SUM == rop ? x + y : x * y);

    return isnan(r) ? F64_NAN : gp_f64_bits(r);
}

static void check_f32(uint32_t rop, uint32_t a, uint32_t b)
{
    float x = gp_bits_f32(a), y = gp_bits_f32(b);
    uint32_t got = gp_f32_bits(gp_reduce_f32(rop, x, y));
    uint32_t want = rop <= GP_ROP_PROD
        ? sum_or_product_f32(rop, a, b)
        : (uint32_t) expected_extremum(rop, a, b, isnan(x), isnan(y), F32_NAN, 32);

    gp_check(got == want, "f32 rop %u: 0x%08x with 0x%08x gives 0x%08x, want 0x%08x", rop, a, b,
             got, want);
}

static void check_f64(uint32_t rop, uint64_t a, uint64_t b)
{
    double x = gp_bits_f64(a), y = gp_bits_f64(b);
    uint64_t got = gp_f64_bits(gp_reduce_f64(rop, x, y));
    uint64_t want = rop <= GP_ROP_PROD
        ? sum_or_product_f64(rop, a, b)
        : expected_extremum(rop, a, b, isnan(x), isnan(y), F64_NAN, 64);

    gp_check(got == want, "f64 rop %u: 0x%016llx with 0x%016llx gives 0x%016llx, want 0x%016llx",
             rop, (unsigned long long) a, (unsigned long long) b, (unsigned long long) got,
             (unsigned long long) want);
}

static void test_floats(void)
{
    gp_group_begin("float and double: edges, random bits, close exponents");
    for (uint32_t rop = GP_ROP_SUM; rop <= GP_ROP_MAX; rop++) {
        for (size_t i = 0; i < N_EDGES; i++) {
            for (size_t k = 0; k < N_EDGES; k++) {
                check_f32(rop, edges_f32[i], edges_f32[k]);
                check_f64(rop, edge_f64(i), edge_f64(k));
            }
        }
        for (int i = 0; i < 200000; i++) {
            uint64_t a = random_bits(), b = random_bits();

            check_f32(rop, (uint32_t) a, (uint32_t) b);
            check_f64(rop, a, b);
            /* Same sign and exponent or opposite: carries, ties, cancellation. */
            b = (b & 0x000fffffffffffffull)
              | ((a ^ (b >> 1 & 1ull << 63)) & ~0x000fffffffffffffull);
            check_f64(rop, a, b);
            check_f32(rop, (uint32_t) (a >> 32),
                      (uint32_t) (b >> 32) ^ ((uint32_t) b & 0x1ffffffu));
        }
    }
    gp_group_end();
}

/* ---- complex -------------------------------------------------------------------------------- */

static uint32_t negate_f32(uint32_t bits)
{
    return bits ^ 0x80000000u;
}

static void check_c32(const uint32_t *v)
{
    gp_c32_t a = {gp_bits_f32(v[0]), gp_bits_f32(v[1])}, b = {gp_bits_f32(v[2]), gp_bits_f32(v[3])};
    gp_c32_t sum = gp_reduce_c32(GP_ROP_SUM, a, b), product = gp_reduce_c32(GP_ROP_PROD, a, b);
    /* Each product rounded before they meet: a fused multiply-add would differ. */
    uint32_t re = sum_or_product_f32(GP_ROP_SUM, sum_or_product_f32(GP_ROP_PROD, v[0], v[2]),
                                     negate_f32(sum_or_product_f32(GP_ROP_PROD, v[1], v[3])));
    uint32_t im = sum_or_product_f32(GP_ROP_SUM, sum_or_product_f32(GP_ROP_PROD, v[0], v[3]),
                                     sum_or_product_f32(GP_ROP_PROD, v[1], v[2]));

    gp_check(gp_f32_bits(product.re) == re && gp_f32_bits(product.im) == im,
             "c32 (%a, %a) x (%a, %a): (%a, %a)", (double) a.re, (double) a.im, (double) b.re,
             (double) b.im, (double) product.re, (double) product.im);
    gp_check(gp_f32_bits(sum.re) == sum_or_product_f32(GP_ROP_SUM, v[0], v[2])
                 && gp_f32_bits(sum.im) == sum_or_product_f32(GP_ROP_SUM, v[1], v[3]),
             "c32 sum");
}

static void check_c64(const uint64_t *v)
{
    gp_c64_t a = {gp_bits_f64(v[0]), gp_bits_f64(v[1])}, b = {gp_bits_f64(v[2]), gp_bits_f64(v[3])};
    gp_c64_t sum = gp_reduce_c64(GP_ROP_SUM, a, b), product = gp_reduce_c64(GP_ROP_PROD, a, b);
    uint64_t re = sum_or_product_f64(GP_ROP_SUM, sum_or_product_f64(GP_ROP_PROD, v[0], v[2]),
                                     sum_or_product_f64(GP_ROP_PROD, v[1], v[3]) ^ 1ull << 63);
    uint64_t im = sum_or_product_f64(GP_ROP_SUM, sum_or_product_f64(GP_ROP_PROD, v[0], v[3]),
                                     sum_or_product_f64(GP_ROP_PROD, v[1], v[2]));

    gp_check(gp_f64_bits(product.re) == re && gp_f64_bits(product.im) == im,
             "c64 (%a, %a) x (%a, %a): (%a, %a)", a.re, a.im, b.re, b.im, product.re, product.im);
    gp_check(gp_f64_bits(sum.re) == sum_or_product_f64(GP_ROP_SUM, v[0], v[2])
                 && gp_f64_bits(sum.im) == sum_or_product_f64(GP_ROP_SUM, v[1], v[3]),
             "c64 sum");
}

static void test_complex(void)
{
    gp_group_begin("complex sum and product: edges, random values of moderate size");
    for (int i = 0; i < 100000; i++) {
        uint32_t narrow[4];
        uint64_t wide[4];

        for (int k = 0; k < 4; k++) {
            uint64_t r = random_bits();

            if (0 == i % 4) {
                narrow[k] = edges_f32[r % N_EDGES];
                wide[k] = edge_f64(r % N_EDGES);
            } else { /* around one, so that the two products nearly cancel now and then */
                narrow[k] = (uint32_t) (r & 0x80ffffffu) | 0x3f000000u;
                wide[k] = (r & 0x801fffffffffffffull) | 0x3fe0000000000000ull;
            }
        }
        check_c32(narrow);
        check_c64(wide);
    }
    gp_group_end();
}

static void test_outside(void)
{
    gp_c32_t c = {1, 2}, d = {3, 4}, r = gp_reduce_c32(GP_ROP_MIN, c, d);

    gp_ok(5 == gp_reduce_u32(GP_ROP_COUNT, 5, 7) && 2.0f == gp_reduce_f32(GP_ROP_BAND, 2.0f, 3.0f)
              && 1 == r.re && 2 == r.im,
          "an operation outside the family gives the first operand");
}

int main(void)
{
    gp_tap_begin();
    test_integers();
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        fill_values(&halves[i]);
        test_conversions(&halves[i]);
        test_half_arithmetic(&halves[i]);
    }
    test_floats();
    test_complex();
    test_outside();
    return gp_tap_end();
}
