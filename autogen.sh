#!/bin/sh
# autogen.sh - generate configure and Makefile.in from a fresh checkout.
#
# SPDX-License-Identifier: BSD-3-Clause
set -e
cd "$(dirname "$0")"
for tool in autoconf automake libtoolize; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "autogen.sh: $tool is missing (Debian: apt-get install autoconf automake libtool)" >&2
        exit 1
    fi
done
mkdir -p config
exec autoreconf --install --warnings=all,no-obsolete
