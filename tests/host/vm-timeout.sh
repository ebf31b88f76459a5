#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The time limit, Ctrl-C, SIGTERM and even SIGKILL end the machine and leave nothing behind.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"

# the machine that writes to folder $1, by its unique path
qemu_of() { pgrep -f "qemu-system.*path=$OUT/$1[, ]" || true; }
gone() {
	local _
	for _ in $(seq 50); do [ -n "$(qemu_of "$1")" ] || return 0; sleep 0.1; done
	die "$1: qemu is still there"
}
no_run_left() { [ -z "$(find build/vm -maxdepth 1 -name "run-$1-*")" ] || die "folder of run $1 is still there"; }

start=$SECONDS
expect 124 'time limit of 15 s reached' scripts/vm --timeout 15 --out "$OUT/limit" functional -- sleep 1000
[ $((SECONDS - start)) -lt 25 ] || die "took $((SECONDS - start)) s"
gone limit

# started by env so that background jobs do not ignore SIGINT
for signal in INT TERM KILL; do
	env --default-signal=INT scripts/vm --out "$OUT/$signal" functional -- sleep 1000 &
	pid=$!
	for _ in $(seq 100); do [ -z "$(qemu_of $signal)" ] || break; sleep 0.1; done
	[ -n "$(qemu_of $signal)" ] || die "the machine did not start"
	kill "-$signal" "$pid"
	status=0
	wait "$pid" || status=$?
	check_eq "status after SIG$signal" "$status" $((128 + $(kill -l $signal)))
	gone $signal
	[ $signal = KILL ] || no_run_left "$pid"
done
# the next run clears up after the one that could not
expect 0 "" scripts/vm --out "$OUT/after" functional -- true
no_run_left "$pid"

# replaced OUT SIGNAL WORDS [LINE]: a machine that gets the signal while it boots, and has that in its log, is replaced by another
replaced() {
	TERRACE_BOOT_SILENCE=10 scripts/vm --out "$OUT/$1" functional -- echo it runs > "$OUT/$1.said" 2>&1 &
	pid=$!
	for _ in $(seq 600); do [ -z "$(find build/vm -path "build/vm/run-$pid-*/kernel.log" -size +0)" ] || break; sleep 0.05; done
	machine=$(qemu_of "$1")
	kill "-$2" "$machine"
	# all of its threads: one that still writes its log would write over the line
	for _ in $(seq 100); do
		[ "$2" = STOP ] || break
		grep -hq '^State:.[^T]' "/proc/$machine"/task/*/status || break
		sleep 0.05
	done
	[ -z "${4-}" ] || echo "$4" >> "$(find build/vm -path "build/vm/run-$pid-*/kernel.log")"
	wait "$pid" || { cat "$OUT/$1.said"; die "the machine was not replaced"; }
	grep -q "$3: started again" "$OUT/$1.said" || die "no word about it"
	grep -qx 'it runs' "$OUT/$1.said" || die "the command did not run"
	gone "$1"
}
replaced stuck STOP 'said nothing for 10 s while booting'
replaced locked STOP 'a CPU stood still while booting' '[   29.060190] watchdog: BUG: soft lockup - CPU#1 stuck for 27s! [swapper/0:1]'
replaced ended KILL 'ended while booting, without a word'
