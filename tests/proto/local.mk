# tests/proto: wire formats
#
# SPDX-License-Identifier: BSD-3-Clause

gp_proto_tests = tests/proto/test_proto tests/proto/test_proto_cxx tests/proto/test_proto_flags
tests_proto_test_proto_SOURCES = tests/proto/test_proto.c
tests_proto_test_proto_LDADD = -lpthread
tests_proto_test_proto_cxx_SOURCES = tests/proto/test_proto_cxx.cc
tests_proto_test_proto_cxx_LDADD = -lpthread
tests_proto_test_proto_flags_SOURCES = tests/proto/test_proto.c
tests_proto_test_proto_flags_CPPFLAGS = $(AM_CPPFLAGS) -DGP_LL_FLAG_BITS=6
tests_proto_test_proto_flags_LDADD = -lpthread
if GP_HAVE_TSAN
gp_proto_tests += tests/proto/test_proto_tsan
tests_proto_test_proto_tsan_SOURCES = tests/proto/test_proto.c
tests_proto_test_proto_tsan_CFLAGS = $(AM_CFLAGS) -fsanitize=thread
tests_proto_test_proto_tsan_LDFLAGS = -fsanitize=thread
tests_proto_test_proto_tsan_LDADD = -lpthread
endif
check_PROGRAMS += $(gp_proto_tests)
TESTS += $(gp_proto_tests)
