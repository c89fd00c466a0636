/*
 * fint_2_int.h - stand-in for a header that Open MPI's own headers include but no package installs.
 *
 * Only the two macros that inline functions of those headers name; gpuproto calls none of them. Found
 * through -idirafter, so a real one wins.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_COMPAT_FINT_2_INT_H
#define GP_COMPAT_FINT_2_INT_H

#define OMPI_INT_2_FINT(a) (a)
#define OMPI_FINT_2_INT(a) (a)

#endif /* GP_COMPAT_FINT_2_INT_H */
