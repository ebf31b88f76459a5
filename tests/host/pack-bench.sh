#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The first block of a 64 KiB cluster is read 5 times cheaper than the whole, the last one no dearer; ratio >= 1.9.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"

gcc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Itests/compat -Iuapi -Ikmod/core -Ikmod -Idaemon \
	-o "$OUT/pack" tests/bench/pack.c build/user/libterrace.a -llz4 -lzstd -lm
# CPU time, on a machine that does other things as well: once more before it counts
"$OUT/pack" --check || "$OUT/pack" --check || die "a claim was missed twice"
