# Documentation, installed as it is.
#
# SPDX-License-Identifier: BSD-3-Clause

dist_doc_DATA += \
    README.md \
    NEWS \
    docs/architecture.md \
    docs/hacking.md \
    docs/performance.md \
    docs/planner.md \
    docs/protocols.md \
    docs/testing.md \
    docs/tuning.md
