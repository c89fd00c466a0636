/*
 * test_proto_cxx.cc - the same headers and the same test as C++.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "tests/proto/test_proto.c"
