#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# host: timeout=600
# No bytes make a decoder of kmod/core read astray or accept what is impossible
#
# usage: tests/fuzz/core.sh [NAME...]
# FUZZ_SECONDS=600 for longer; what was found on the way stays in build/fuzz/. LEAST= inputs
# there must have been in all, of each decoder a fiftieth of that.

set -eu
cd "$(dirname "$0")/../.."
work=build/fuzz seconds=${FUZZ_SECONDS:-3} least=${LEAST:-100000} total=0
names=("$@")
[ $# -gt 0 ] || names=(label super map bitmap owners journal pack)
mkdir -p "$work"
rm -f "$work"/core-*.o

echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' > "$work/probe.c"
clang -fsanitize=fuzzer,address,undefined -o "$work/probe" "$work/probe.c" 2> "$work/probe.log" || {
	echo 'skip: clang has no libFuzzer; install libclang-rt-14-dev'
	exit 77
}

flags=(-std=gnu11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -Itests/compat -Iuapi -Ikmod/core
	'-fsanitize=fuzzer-no-link,address,undefined' -fno-sanitize-recover=all)
for source in kmod/core/*.c; do
	clang "${flags[@]}" -c -o "$work/core-$(basename "$source" .c).o" "$source"
done

die() { echo "FAIL: $*" >&2; exit 1; }
for name in "${names[@]}"; do
	clang "${flags[@]}" -fsanitize=fuzzer -o "$work/$name" "tests/fuzz/$name.c" "$work"/core-*.o
	mkdir -p "$work/$name.corpus"
	# always the same inputs first, then as many as the time allows
	"$work/$name" -seed=1 -max_len=1024 -timeout=10 -max_total_time="$seconds" -print_final_stats=1 \
		-artifact_prefix="$work/$name." "$work/$name.corpus" > "$work/$name.log" 2>&1 || {
		tail -60 "$work/$name.log"
		echo "$name: failed; the input is in $work/$name.*-*"
		exit 1
	}
	runs=$(awk '/number_of_executed_units/ { runs = $2 } END { print runs + 0 }' "$work/$name.log")
	echo "$name: $runs inputs, coverage $(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$work/$name.log" | tail -1)"
	[ "$runs" -ge $((least / 50)) ] || die "$name: only $runs inputs"
	total=$((total + runs))
done
[ $# -gt 0 ] || [ "$total" -ge "$least" ] || die "only $total inputs"
echo "ok: $total inputs in all"
