# SPDX-License-Identifier: GPL-2.0-or-later
# Allocations that fail, in scripts that run on the debug kernel; sourced after tests/vm/lib.sh.
#
# failing N CMD...	the Nth allocation of its ioctls fails (build/failnth.so); LEFT is 0 if there was one,
#			what it said is in /dev/shm/fault/said
# each WHAT CMD AFTER [none]	CMD with the 1st, 2nd, 3rd ... allocation failing, until it makes fewer; after each: AFTER STATUS N
#			(STRIDE=N in the environment: only each Nth); one must fail at least, unless none need be
# random_on PERCENT [KIND]	allocations of the kernel's threads fail at random; KIND atomic: only those that cannot wait
# random_off		no longer; FAILED is how many did
#
# shellcheck shell=bash

FAULTS=/sys/kernel/debug
TIMES=1000000000
STRIDE=${STRIDE:-1}
[ -d $FAULTS/failslab ] || die "this kernel cannot let allocations fail"
mkdir -p /dev/shm/fault
cp "$TERRACE_TREE/build/failnth.so" /dev/shm/fault/

fault_set() {
	local attr
	for attr in failslab fail_page_alloc; do echo "$2" > "$FAULTS/$attr/$1"; done
}
fault_set verbose 0
fault_set ignore-gfp-wait N
echo 0 > $FAULTS/fail_page_alloc/min-order
echo N > $FAULTS/fail_page_alloc/ignore-gfp-highmem

failing() {
	local status=0
	LD_PRELOAD=/dev/shm/fault/failnth.so FAILNTH=$1 FAILNTH_LEFT=/dev/shm/fault/left "${@:2}" > /dev/shm/fault/said 2>&1 || status=$?
	LEFT=$(< /dev/shm/fault/left)
	return $status
}

each() {
	local nth failed=0 status
	for ((nth = 1; ; nth += STRIDE)); do
		status=0
		failing "$nth" "$2" || status=$?
		[ "$LEFT" != 0 ] || ((status == 0)) || failed=$((failed + 1))
		[ "$LEFT" = 0 ] || [ $status = 0 ] || die "$1 failed without a failed allocation: $(cat /dev/shm/fault/said)"
		"$3" "$status" "$nth" || die "$1, allocation $nth (status $status): $(cat /dev/shm/fault/said)"
		[ "$LEFT" = 0 ] || break
	done
	((nth > 1)) || [ "${4:-}" = none ] || die "$1: no allocation was made to fail"
	pass "$1: $((nth - 1)) allocations, each $STRIDE. failed, and it did $failed times"
}

# kthreadd hands it on to those that come later
random_on() {
	local process
	for process in /proc/[0-9]*; do
		[ -s "$process/cmdline" ] || [ "$(< "$process/cmdline")" ] || echo 1 > "$process/make-it-fail"
	done 2> /dev/null
	fault_set ignore-gfp-wait "$([ "${2:-}" = atomic ] && echo Y || echo N)"
	fault_set task-filter Y
	fault_set times $TIMES		# the kernel counts it down, by each that fails
	fault_set probability "$1"
}
random_off() {
	fault_set probability 0
	# shellcheck disable=SC2034 # for who calls it
	FAILED=$((2 * TIMES - $(< $FAULTS/failslab/times) - $(< $FAULTS/fail_page_alloc/times)))
}
