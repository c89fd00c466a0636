/*
 * test_types.c - which (type, operation) pairs are reduced and as what, against a table written from the
 * MPI standard's classes: C integer and byte types (arithmetic, bitwise, logical), floating point
 * (arithmetic, extrema), complex (sum, product), logical types (logical operations).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/lib/gp_tap.h"

#include "device/proto/gp_types.h"

/* One letter per operation in the order sum prod min max band bor bxor land lor lxor; '-': not ours. */
typedef struct row {
    gp_type_t type;
    uint32_t bytes;
    gp_family_t family;
    /* s sum, p product, n/x unsigned or float extrema, N/X signed, bits, a o e logical */
    const char *ops;
} row_t;

static const row_t rows[] = {
    {GP_TYPE_I8, 1, GP_FAMILY_U8, "spNX&|^aoe"},
    {GP_TYPE_I16, 2, GP_FAMILY_U16, "spNX&|^aoe"},
    {GP_TYPE_I32, 4, GP_FAMILY_U32, "spNX&|^aoe"},
    {GP_TYPE_I64, 8, GP_FAMILY_U64, "spNX&|^aoe"},
    {GP_TYPE_U8, 1, GP_FAMILY_U8, "spnx&|^aoe"},
    {GP_TYPE_U16, 2, GP_FAMILY_U16, "spnx&|^aoe"},
    {GP_TYPE_U32, 4, GP_FAMILY_U32, "spnx&|^aoe"},
    {GP_TYPE_U64, 8, GP_FAMILY_U64, "spnx&|^aoe"},
    {GP_TYPE_F16, 2, GP_FAMILY_F16, "spnx------"},
    {GP_TYPE_BF16, 2, GP_FAMILY_BF16, "spnx------"},
    {GP_TYPE_F32, 4, GP_FAMILY_F32, "spnx------"},
    {GP_TYPE_F64, 8, GP_FAMILY_F64, "spnx------"},
    {GP_TYPE_C32, 8, GP_FAMILY_C32, "sp--------"},
    {GP_TYPE_C64, 16, GP_FAMILY_C64, "sp--------"},
    {GP_TYPE_BOOL, 1, GP_FAMILY_U8, "-------aoe"},
    {GP_TYPE_LOGICAL, 4, GP_FAMILY_U32, "-------aoe"},
};

static const gp_op_t ops[] = {GP_OP_SUM, GP_OP_PROD, GP_OP_MIN, GP_OP_MAX, GP_OP_BAND,
                              GP_OP_BOR, GP_OP_BXOR, GP_OP_LAND, GP_OP_LOR, GP_OP_LXOR};

static gp_rop_t rop_of(char letter)
{
    switch (letter) {
    case 's': return GP_ROP_SUM;
    case 'p': return GP_ROP_PROD;
    case 'n': return GP_ROP_MIN;
    case 'x': return GP_ROP_MAX;
    case 'N': return GP_ROP_MIN_S;
    case 'X': return GP_ROP_MAX_S;
    case '&': return GP_ROP_BAND;
    case '|': return GP_ROP_BOR;
    case '^': return GP_ROP_BXOR;
    case 'a': return GP_ROP_LAND;
    case 'o': return GP_ROP_LOR;
    case 'e': return GP_ROP_LXOR;
    default: return GP_ROP_COUNT;
    }
}

int main(void)
{
    const size_t n_rows = sizeof(rows) / sizeof(rows[0]), n_ops = sizeof(ops) / sizeof(ops[0]);
    unsigned seen[GP_TYPE_COUNT] = {0};
    int all = 1;

    gp_tap_begin();
    gp_group_begin("every type with every operation");
    for (size_t i = 0; i < n_rows; i++) {
        seen[rows[i].type]++;
        gp_check(gp_type_bytes(rows[i].type) == rows[i].bytes, "type %d: %u bytes", rows[i].type,
                 gp_type_bytes(rows[i].type));
        for (size_t k = 0; k < n_ops; k++) {
            gp_red_t red = gp_red_of(rows[i].type, ops[k]);
            int ours = '-' != rows[i].ops[k];

            gp_check(ours == red.valid, "type %d op %d: valid %d", rows[i].type, ops[k], red.valid);
            gp_check(!ours || (red.family == rows[i].family && red.rop == rop_of(rows[i].ops[k])
                               && red.elem_bytes == rows[i].bytes),
                     "type %d op %d: family %d rop %d bytes %d", rows[i].type, ops[k], red.family,
                     red.rop, red.elem_bytes);
        }
    }
    gp_group_end();
    for (int t = 0; t < GP_TYPE_COUNT; t++) {
        all = all && 1 == seen[t];
    }
    gp_ok(all && n_ops == GP_OP_COUNT, "the table here names each type once and all operations");
    gp_ok(!gp_red_of(GP_TYPE_COUNT, GP_OP_SUM).valid && !gp_red_of((gp_type_t) 99, GP_OP_MAX).valid
              && 0 == gp_type_bytes(GP_TYPE_COUNT),
          "types outside the table: not ours");
    gp_ok(!gp_red_of(GP_TYPE_I32, GP_OP_COUNT).valid && !gp_red_of(GP_TYPE_F64, (gp_op_t) 77).valid,
          "operations outside the table: not ours");
    return gp_tap_end();
}
