/*
 * gp_types.h - element types, operations, and the arithmetic a pair of them means.
 *
 * Owns the table of what gpuproto reduces itself. A (type, op) pair of the MPI level is mapped to a
 * *reduction*: a family (width and kind of arithmetic, one set of kernels each) and an operation of
 * that family. Signed and unsigned share what is the same arithmetic.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_TYPES_H
#define GP_TYPES_H

#include "device/proto/gp_port.h"

typedef enum gp_type {
    GP_TYPE_I8, GP_TYPE_I16, GP_TYPE_I32, GP_TYPE_I64,
    GP_TYPE_U8, GP_TYPE_U16, GP_TYPE_U32, GP_TYPE_U64,
    GP_TYPE_F16, GP_TYPE_BF16, GP_TYPE_F32, GP_TYPE_F64,
    GP_TYPE_C32,     /* complex float: 8 bytes */
    GP_TYPE_C64,     /* complex double: 16 bytes */
    GP_TYPE_BOOL,    /* C _Bool, 1 byte; logical operations only */
    GP_TYPE_LOGICAL, /* Fortran LOGICAL, 4 bytes; logical operations only */
    GP_TYPE_COUNT
} gp_type_t;

typedef enum gp_op {
    GP_OP_SUM, GP_OP_PROD, GP_OP_MIN, GP_OP_MAX,
    GP_OP_BAND, GP_OP_BOR, GP_OP_BXOR,
    GP_OP_LAND, GP_OP_LOR, GP_OP_LXOR,
    GP_OP_COUNT
} gp_op_t;

/* One set of kernels each. Integer families are unsigned; signedness only matters to MIN and MAX. */
typedef enum gp_family {
    GP_FAMILY_U8, GP_FAMILY_U16, GP_FAMILY_U32, GP_FAMILY_U64,
    GP_FAMILY_F16, GP_FAMILY_BF16, GP_FAMILY_F32, GP_FAMILY_F64,
    GP_FAMILY_C32, GP_FAMILY_C64,
    GP_FAMILY_COUNT
} gp_family_t;

/* Operations of a family. MIN and MAX compare unsigned integers or floats; _S compares signed. */
typedef enum gp_rop {
    GP_ROP_SUM, GP_ROP_PROD, GP_ROP_MIN, GP_ROP_MAX, GP_ROP_MIN_S, GP_ROP_MAX_S,
    GP_ROP_BAND, GP_ROP_BOR, GP_ROP_BXOR,
    GP_ROP_LAND, GP_ROP_LOR, GP_ROP_LXOR,
    GP_ROP_COUNT
} gp_rop_t;

typedef struct gp_red {
    uint8_t family;      /* gp_family_t */
    uint8_t rop;         /* gp_rop_t */
    uint8_t elem_bytes;  /* 1, 2, 4, 8 or 16 */
    uint8_t valid;       /* 0: this pair is not ours */
} gp_red_t;

/* Bytes of one element; 0 for a type outside the table. */
GP_FN uint32_t gp_type_bytes(gp_type_t type)
{
    switch (type) {
    case GP_TYPE_I8: case GP_TYPE_U8: case GP_TYPE_BOOL:
        return 1;
    case GP_TYPE_I16: case GP_TYPE_U16: case GP_TYPE_F16: case GP_TYPE_BF16:
        return 2;
    case GP_TYPE_I32: case GP_TYPE_U32: case GP_TYPE_F32: case GP_TYPE_LOGICAL:
        return 4;
    case GP_TYPE_I64: case GP_TYPE_U64: case GP_TYPE_F64: case GP_TYPE_C32:
        return 8;
    case GP_TYPE_C64:
        return 16;
    default:
        return 0;
    }
}

/*
 * What (type, op) means. Never fails: .valid tells whether the pair is in the table.
 */
GP_FN gp_red_t gp_red_of(gp_type_t type, gp_op_t op)
{
    gp_red_t r;
    int is_signed = type <= GP_TYPE_I64;
    int is_int = type <= GP_TYPE_U64;
    int is_logical = GP_TYPE_BOOL == type || GP_TYPE_LOGICAL == type;
    int is_complex = GP_TYPE_C32 == type || GP_TYPE_C64 == type;

    r.family = 0;
    r.rop = 0;
    r.elem_bytes = (uint8_t) gp_type_bytes(type);
    r.valid = 0;
    if (0 == r.elem_bytes || op >= GP_OP_COUNT) {
        return r;
    }
    if (is_int) {
        r.family = (uint8_t) ((uint32_t) type & 3u);
        r.valid = 1;
    } else if (is_logical) {
        r.family = GP_TYPE_BOOL == type ? GP_FAMILY_U8 : GP_FAMILY_U32;
        r.valid = op >= GP_OP_LAND;
    } else if (is_complex) {
        r.family = GP_TYPE_C32 == type ? GP_FAMILY_C32 : GP_FAMILY_C64;
        r.valid = GP_OP_SUM == op || GP_OP_PROD == op;
    } else {
        r.family = (uint8_t) (GP_FAMILY_F16 + (type - GP_TYPE_F16));
        r.valid = op <= GP_OP_MAX;
    }
    switch (op) {
    case GP_OP_SUM: r.rop = GP_ROP_SUM; break;
    case GP_OP_PROD: r.rop = GP_ROP_PROD; break;
    case GP_OP_MIN: r.rop = is_signed ? GP_ROP_MIN_S : GP_ROP_MIN; break;
    case GP_OP_MAX: r.rop = is_signed ? GP_ROP_MAX_S : GP_ROP_MAX; break;
    case GP_OP_BAND: r.rop = GP_ROP_BAND; break;
    case GP_OP_BOR: r.rop = GP_ROP_BOR; break;
    case GP_OP_BXOR: r.rop = GP_ROP_BXOR; break;
    case GP_OP_LAND: r.rop = GP_ROP_LAND; break;
    case GP_OP_LOR: r.rop = GP_ROP_LOR; break;
    default: r.rop = GP_ROP_LXOR; break;
    }
    return r;
}

#endif /* GP_TYPES_H */
