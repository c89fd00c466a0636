/*
 * coll_gpuproto_types.c - MPI's predefined types and operations in gpuproto's terms.
 *
 * Types mean what the MPI standard says, whatever an Open MPI release's own table says: MPI_OFFSET,
 * MPI_AINT and MPI_COUNT are signed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

static const gp_type_t signed_of[9] = {[1] = GP_TYPE_I8, [2] = GP_TYPE_I16, [4] = GP_TYPE_I32,
                                       [8] = GP_TYPE_I64};
static const gp_type_t unsigned_of[9] = {[1] = GP_TYPE_U8, [2] = GP_TYPE_U16, [4] = GP_TYPE_U32,
                                         [8] = GP_TYPE_U64};

static bool sized(const gp_type_t table[9], size_t bytes, gp_type_t *type)
{
    if (1 == bytes || 2 == bytes || 4 == bytes || 8 == bytes) {
        *type = table[bytes];
        return true;
    }
    return false;
}

static bool real_of(size_t bytes, gp_type_t *type)
{
    switch (bytes) {
    case 2:
        *type = GP_TYPE_F16;
        return true;
    case 4:
        *type = GP_TYPE_F32;
        return true;
    case 8:
        *type = GP_TYPE_F64;
        return true;
    default:
        return false;
    }
}

static bool map_type(const struct ompi_datatype_t *dtype, gp_type_t *type)
{
    size_t bytes = dtype->super.size;

    /* Types that Open MPI's table files under another signedness, by identity. */
    if (dtype == &ompi_mpi_offset.dt || dtype == &ompi_mpi_aint.dt || dtype == &ompi_mpi_count.dt) {
        return sized(signed_of, bytes, type);
    }
    switch (ompi_op_ddt_map[dtype->id]) {
    case OMPI_OP_BASE_TYPE_INT8_T:
    case OMPI_OP_BASE_TYPE_INT16_T:
    case OMPI_OP_BASE_TYPE_INT32_T:
    case OMPI_OP_BASE_TYPE_INT64_T:
    case OMPI_OP_BASE_TYPE_LONG:
    case OMPI_OP_BASE_TYPE_INTEGER:
    case OMPI_OP_BASE_TYPE_INTEGER1:
    case OMPI_OP_BASE_TYPE_INTEGER2:
    case OMPI_OP_BASE_TYPE_INTEGER4:
    case OMPI_OP_BASE_TYPE_INTEGER8:
        return sized(signed_of, bytes, type);
    case OMPI_OP_BASE_TYPE_UINT8_T:
    case OMPI_OP_BASE_TYPE_UINT16_T:
    case OMPI_OP_BASE_TYPE_UINT32_T:
    case OMPI_OP_BASE_TYPE_UINT64_T:
    case OMPI_OP_BASE_TYPE_UNSIGNED_LONG:
    case OMPI_OP_BASE_TYPE_BYTE:
        return sized(unsigned_of, bytes, type);
    case OMPI_OP_BASE_TYPE_FLOAT:
    case OMPI_OP_BASE_TYPE_DOUBLE:
    case OMPI_OP_BASE_TYPE_REAL:
    case OMPI_OP_BASE_TYPE_REAL2:
    case OMPI_OP_BASE_TYPE_REAL4:
    case OMPI_OP_BASE_TYPE_REAL8:
    case OMPI_OP_BASE_TYPE_DOUBLE_PRECISION:
    MCA_COLL_GPUPROTO_CASE_SHORT_FLOAT
        return real_of(bytes, type);
    case OMPI_OP_BASE_TYPE_C_FLOAT_COMPLEX:
        *type = GP_TYPE_C32;
        return 8 == bytes;
    case OMPI_OP_BASE_TYPE_C_DOUBLE_COMPLEX:
        *type = GP_TYPE_C64;
        return 16 == bytes;
    case OMPI_OP_BASE_TYPE_BOOL:
        *type = GP_TYPE_BOOL;
        return 1 == bytes;
    case OMPI_OP_BASE_TYPE_LOGICAL:
        *type = GP_TYPE_LOGICAL;
        return 4 == bytes;
    default:
        return false;
    }
}

bool mca_coll_gpuproto_map(const struct ompi_datatype_t *dtype, const struct ompi_op_t *op,
                           gp_type_t *type, gp_op_t *gp_op)
{
    if (!ompi_op_is_intrinsic((ompi_op_t *) op) || !ompi_datatype_is_predefined(dtype)
        || dtype->id < 0 || dtype->id >= OMPI_DATATYPE_MAX_PREDEFINED
        || -1 == ompi_op_ddt_map[dtype->id] || !map_type(dtype, type)) {
        return false;
    }
    switch (op->op_type) {
    case OMPI_OP_SUM: *gp_op = GP_OP_SUM; break;
    case OMPI_OP_PROD: *gp_op = GP_OP_PROD; break;
    case OMPI_OP_MIN: *gp_op = GP_OP_MIN; break;
    case OMPI_OP_MAX: *gp_op = GP_OP_MAX; break;
    case OMPI_OP_BAND: *gp_op = GP_OP_BAND; break;
    case OMPI_OP_BOR: *gp_op = GP_OP_BOR; break;
    case OMPI_OP_BXOR: *gp_op = GP_OP_BXOR; break;
    case OMPI_OP_LAND: *gp_op = GP_OP_LAND; break;
    case OMPI_OP_LOR: *gp_op = GP_OP_LOR; break;
    case OMPI_OP_LXOR: *gp_op = GP_OP_LXOR; break;
    default:
        return false;
    }
    return gp_red_of(*type, *gp_op).valid;
}
