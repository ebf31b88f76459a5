#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A kernel that complains fails the run; a complaint that was announced does not, unless it stays away.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"
vm() { scripts/vm --memory 512M --out "$OUT/$1" "${@:2}"; }
say() { echo "echo '<4>$1' > /dev/kmsg"; }
lib=". $TERRACE_TREE/tests/vm/lib.sh"

# two machines at a time
pids=()
try() {
	expect "$@" & pids+=($!)
	[ ${#pids[@]} -lt 2 ] || { wait "${pids[0]}"; wait "${pids[1]}"; pids=(); }
}
try 123 'kernel log:.*Kernel panic' vm panic functional -- 'echo c > /proc/sysrq-trigger; sleep 100'
try 123 'kernel log:.*WARNING: CPU: 0' vm warn functional -- "$(say 'WARNING: CPU: 0 PID: 1 at nowhere')"
try 123 'kernel log:.*Unknown error' vm unknown functional -- "$(say 'device-mapper: table: 253:0: terrace: Unknown error (-22)')"
try 123 'kernel log:.*blocked for more than' vm hung functional -- "$(say 'INFO: task cp:7 blocked for more than 120 seconds.')"
try 9 'kernel log:.*BUG: ' vm both functional -- "$(say 'BUG: scheduling'); exit 9"
try 0 "" vm allowed functional -- "$lib; klog_expect 'WARNING: .* at nowhere'; $(say 'WARNING: CPU: 0 PID: 1 at nowhere')"
try 123 'at elsewhere' vm narrow functional -- "$lib; klog_expect 'WARNING: .* at nowhere'; $(say 'WARNING: at nowhere'); $(say 'WARNING: at elsewhere')"
try 123 'expected message did not appear: never said' vm missing functional -- "$lib; klog_expect 'never said'"
