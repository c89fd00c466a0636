# Rules about the source and the built component.
#
# SPDX-License-Identifier: BSD-3-Clause

EXTRA_DIST += tests/lib/gp_tap.sh
dist_check_SCRIPTS += \
    tests/lint/lint_component.sh \
    tests/lint/lint_scripts.sh \
    tests/lint/lint_source.sh \
    tests/lint/lint_tidy.sh
TESTS += \
    tests/lint/lint_component.sh \
    tests/lint/lint_scripts.sh \
    tests/lint/lint_source.sh \
    tests/lint/lint_tidy.sh
