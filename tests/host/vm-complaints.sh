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
try 9 'kernel log:.*BUG: ' vm both functional -- "$(say 'BUG: scheduling'); exit 9"
try 0 "" vm allowed functional -- "$lib; klog_expect 'WARNING: .* at nowhere'; $(say 'WARNING: CPU: 0 PID: 1 at nowhere')"
try 123 'expected message did not appear: never said' vm missing functional -- "$lib; klog_expect 'never said'; $(say 'WARNING: CPU: 0')"

# what counts as one, without a machine for each
/usr/bin/python3 -IS - "$OUT" << 'PYTHON'
import importlib.machinery, importlib.util, os, sys, types
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('vm', 'scripts/vm')
vm = importlib.util.module_from_spec(importlib.util.spec_from_loader('vm', loader))
loader.exec_module(vm)
run = vm.Run.__new__(vm.Run)
run.io, run.opt = os.path.join(sys.argv[1], 'nowhere'), types.SimpleNamespace(allow=['WARNING: .* at nowhere'])


def complaints(line):
    return run.complaints(['[    1.0] quiet', '[    2.0] ' + line])


for line in ('WARNING: CPU: 0 PID: 1 at elsewhere', 'INFO: task cp:7 blocked for more than 120 seconds.',
             'device-mapper: table: 253:0: terrace: Unknown error (-22)', 'Oops: 0000 [#1]', 'general protection fault: 0000',
             'BUG: KASAN: use-after-free', 'rcu: INFO: rcu_sched detected stalls on CPUs', 'page allocation failure: order:0',
             'possible circular locking dependency detected', 'refcount_t: underflow; use-after-free',
             'ODEBUG: free active (active state 0) object type: work_struct', 'turning off the locking correctness validator.',
             'INFO: trying to register non-static key.', 'BUG: KCSAN: data-race in a / b', 'UBSAN: shift-out-of-bounds in core/x.c',
             'kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)', 'kmemleak: Kernel memory leak detector disabled'):
    assert len(complaints(line)) == 1, line
os.makedirs(run.io)
with open(os.path.join(run.io, 'leaks'), 'w', encoding='utf-8') as f:
    f.write('unreferenced object 0xffff888003a4c000 (size 192):\n  comm "dmsetup", pid 5\n')
assert len(complaints('quiet')) == 1, 'leaks'
os.remove(os.path.join(run.io, 'leaks'))
for line in ('WARNING: CPU: 0 PID: 1 at nowhere', 'terrace: vol: opened', 'no complaint: debug, bugle, warnings'):
    assert not complaints(line), line
PYTHON
for pid in "${pids[@]}"; do wait "$pid"; done
