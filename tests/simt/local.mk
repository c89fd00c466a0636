# tests/simt: the kernels' own sources, run on a CPU
#
# Programs out of the same few files: plain, AddressSanitizer + UBSan, clang's ThreadSanitizer, short
# LL flags, and planted bugs. Compiler and flags differ per program and per file (the scheduler is
# never instrumented by ThreadSanitizer), so the rules are written out.
#
# SPDX-License-Identifier: BSD-3-Clause

simt_headers = \
    tests/simt/gp_simt.h \
    tests/simt/gp_simt_port.h \
    tests/simt/simt_cases.h \
    tests/simt/simt_kernels.h \
    tests/simt/simt_values.h \
    tests/simt/simt_world.h
simt_sources = \
    tests/simt/gp_simt.cc \
    tests/simt/simt_bug.cc \
    tests/simt/simt_kernels_few.cc \
    tests/simt/simt_kernels_float.cc \
    tests/simt/simt_kernels_int.cc \
    tests/simt/simt_world.cc \
    tests/simt/test_simt.cc \
    tests/simt/test_simt_bugs.cc \
    tests/simt/test_simt_flags.cc
EXTRA_DIST += $(simt_headers) $(simt_sources)

simt_tests = \
    tests/simt/test_simt \
    tests/simt/test_simt_bugs \
    tests/simt/test_simt_flags
if GP_HAVE_ASAN
simt_tests += tests/simt/test_simt_asan
endif
if GP_HAVE_CLANG_TSAN
simt_tests += tests/simt/test_simt_tsan tests/simt/test_simt_bugs_tsan
endif
TESTS += $(simt_tests)
check_DATA += $(simt_tests)
CLEANFILES += $(simt_tests) tests/simt/*.o

simt_flags = -I$(top_srcdir) -std=gnu++17 -Wall -Wextra -ffp-contract=off -g -O1 \
    -DGP_ABORT_POLLS=32u
simt_kernel_flags = $(simt_flags) -DGP_PORT_SIMT='"tests/simt/gp_simt_port.h"'
simt_asan_flags = -fsanitize=address,undefined -fno-sanitize-recover=undefined
simt_cxx = $(CXX) $(simt_flags) $(SIMT_EXTRA_FLAGS)
simt_kcxx = $(CXX) $(simt_kernel_flags) $(SIMT_EXTRA_FLAGS)
simt_tsan = $(CLANGXX) $(simt_flags) -DSIMT_TSAN
simt_ktsan = $(CLANGXX) $(simt_kernel_flags) -DSIMT_TSAN -fsanitize=thread

simt_deps = $(simt_headers) $(gp_kernel_deps)
simt_kdeps = $(simt_deps)
simt_programs = planner/libgp_planner.la

# Objects: <file>.<variant>.o
tests/simt/%.plain.o: tests/simt/%.cc $(simt_deps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_cxx) -c $< -o $@
tests/simt/simt_kernels_%.plain.o: tests/simt/simt_kernels_%.cc $(simt_kdeps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_kcxx) -c $< -o $@
tests/simt/%.asan.o: tests/simt/%.cc $(simt_deps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_cxx) $(simt_asan_flags) -c $< -o $@
tests/simt/simt_kernels_%.asan.o: tests/simt/simt_kernels_%.cc $(simt_kdeps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_kcxx) $(simt_asan_flags) -c $< -o $@
tests/simt/%.tsan.o: tests/simt/%.cc $(simt_deps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_tsan) -fsanitize=thread -DSIMT_FEW_FAMILIES -c $< -o $@
tests/simt/gp_simt.tsan.o: tests/simt/gp_simt.cc $(simt_deps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_tsan) -c $< -o $@
tests/simt/simt_kernels_%.tsan.o: tests/simt/simt_kernels_%.cc $(simt_kdeps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_ktsan) -c $< -o $@
tests/simt/%.bug.o: tests/simt/simt_bug.cc $(simt_kdeps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_kcxx) -DSIMT_BUG=$* -DGP_MUTATE_$*=1 -c $< -o $@
tests/simt/%.tsanbug.o: tests/simt/simt_bug.cc $(simt_kdeps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_ktsan) -DSIMT_BUG=$* -DGP_MUTATE_$*=1 -c $< -o $@
tests/simt/%.flags.o: tests/simt/%.cc $(simt_deps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_cxx) -DGP_LL_FLAG_BITS=5 -c $< -o $@
tests/simt/simt_bug.flags.o: tests/simt/simt_bug.cc $(simt_kdeps)
	$(AM_V_CXX)$(MKDIR_P) $(@D) && $(simt_kcxx) -DGP_LL_FLAG_BITS=5 -DSIMT_BUG=none -c $< -o $@

simt_plain_objects = \
    tests/simt/gp_simt.plain.o \
    tests/simt/simt_kernels_float.plain.o \
    tests/simt/simt_kernels_int.plain.o \
    tests/simt/simt_world.plain.o \
    tests/simt/test_simt.plain.o
tests/simt/test_simt: $(simt_plain_objects) $(simt_programs)
	$(AM_V_CXXLD)$(LIBTOOL) --silent --tag=CXX --mode=link $(simt_cxx) -o $@ $(simt_plain_objects) \
	    $(simt_programs)

simt_asan_objects = $(simt_plain_objects:.plain.o=.asan.o)
tests/simt/test_simt_asan: $(simt_asan_objects) $(simt_programs)
	$(AM_V_CXXLD)$(LIBTOOL) --silent --tag=CXX --mode=link $(simt_cxx) $(simt_asan_flags) -o $@ \
	    $(simt_asan_objects) $(simt_programs)

simt_tsan_objects = \
    tests/simt/gp_simt.tsan.o \
    tests/simt/simt_kernels_few.tsan.o \
    tests/simt/simt_world.tsan.o \
    tests/simt/test_simt.tsan.o
tests/simt/test_simt_tsan: $(simt_tsan_objects) $(simt_programs)
	$(AM_V_CXXLD)$(LIBTOOL) --silent --tag=CXX --mode=link $(simt_tsan) -fsanitize=thread -o $@ \
	    $(simt_tsan_objects) $(simt_programs)

simt_bug_objects = \
    tests/simt/edge.bug.o \
    tests/simt/no_credit.bug.o \
    tests/simt/no_gate.bug.o \
    tests/simt/no_reread.bug.o \
    tests/simt/no_step_barrier.bug.o \
    tests/simt/no_syncwarp.bug.o \
    tests/simt/none.bug.o \
    tests/simt/one_flag.bug.o \
    tests/simt/one_line_flag.bug.o \
    tests/simt/slot_off.bug.o \
    tests/simt/gp_simt.plain.o \
    tests/simt/simt_world.plain.o \
    tests/simt/test_simt_bugs.plain.o
tests/simt/test_simt_bugs: $(simt_bug_objects) $(simt_programs)
	$(AM_V_CXXLD)$(LIBTOOL) --silent --tag=CXX --mode=link $(simt_cxx) -o $@ $(simt_bug_objects) \
	    $(simt_programs)

simt_tsan_bug_objects = \
    tests/simt/no_step_barrier.tsanbug.o \
    tests/simt/no_window_barrier.tsanbug.o \
    tests/simt/none.tsanbug.o \
    tests/simt/relaxed_head.tsanbug.o \
    tests/simt/relaxed_post.tsanbug.o \
    tests/simt/relaxed_tail.tsanbug.o \
    tests/simt/gp_simt.tsan.o \
    tests/simt/simt_world.tsan.o \
    tests/simt/test_simt_bugs.tsan.o
tests/simt/test_simt_bugs_tsan: $(simt_tsan_bug_objects) $(simt_programs)
	$(AM_V_CXXLD)$(LIBTOOL) --silent --tag=CXX --mode=link $(simt_tsan) -fsanitize=thread -o $@ \
	    $(simt_tsan_bug_objects) $(simt_programs)

simt_flags_objects = \
    tests/simt/gp_simt.flags.o \
    tests/simt/simt_bug.flags.o \
    tests/simt/simt_world.flags.o \
    tests/simt/test_simt_flags.flags.o
tests/simt/test_simt_flags: $(simt_flags_objects) $(simt_programs)
	$(AM_V_CXXLD)$(LIBTOOL) --silent --tag=CXX --mode=link $(simt_cxx) -o $@ $(simt_flags_objects) \
	    $(simt_programs)
