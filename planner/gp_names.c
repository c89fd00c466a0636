/*
 * gp_names.c - names of everything a user can see or set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_plan.h"

#define NAME_OF(names, index) ((index) < sizeof(names) / sizeof((names)[0]) ? (names)[index] : "?")

const char *gp_algorithm_name(uint32_t algorithm)
{
    static const char *const names[] = {"ring", "tree", "flat", "custom"};
    return NAME_OF(names, algorithm);
}

const char *gp_protocol_name(uint32_t protocol)
{
    static const char *const names[] = {"ll", "ll128", "simple"};
    return NAME_OF(names, protocol);
}

const char *gp_executor_name(uint32_t executor)
{
    static const char *const names[] = {"host", "cuda"};
    return NAME_OF(names, executor);
}

const char *gp_type_name(uint32_t type)
{
    static const char *const names[] = {"i8",  "i16", "i32",  "i64",    "u8",  "u16",
                                        "u32", "u64", "f16",  "bf16",   "f32", "f64",
                                        "c32", "c64", "bool", "logical"};
    return NAME_OF(names, type);
}

const char *gp_op_name(uint32_t op)
{
    static const char *const names[] = {"sum", "prod", "min",  "max", "band",
                                        "bor", "bxor", "land", "lor", "lxor"};
    return NAME_OF(names, op);
}

const char *gp_path_name(uint32_t path)
{
    static const char *const names[] = {"same-gpu", "nvlink", "pcie", "host", "net"};
    return NAME_OF(names, path);
}
