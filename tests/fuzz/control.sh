#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Anything at all given to the control device, as io_uring commands, messages and words in sysfs, by two programs beside the oracle: no wrong data, no complaint of the kernel, and the volume is sound.
# vm: mode=functional memory=2G timeout=600 build=oracle,anyinput
#
# SECONDS_EACH= for longer. The volume has a tier of each kind; it is stopped under what
# the programs have left, and what they have set ends with that.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
SECONDS_EACH=${SECONDS_EACH:-15}
PATH=$TERRACE_TREE/build:$PATH in_ram anyinput dmsetup
dmsetup() { from_ram dmsetup "$@"; }
mkram fast 64
mkram home 192
mkram slow 512
VOL_DRIVES=(/dev/ram/fast /dev/ram/home /dev/ram/slow)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:home:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --size 160M
vol_up stream_kb=64 commit_ms=200
oracle_new "$SEED"
oracle_run --ops 200 --max-kb 64 --seed "$SEED"
folder=$(echo /sys/fs/terrace/*)

# who waits for what, and what it was set to
waiting() {
	local task
	grep -H . "$folder"/tune/* | sed 's|.*/||' | tr '\n' ' '
	vol_status
	for task in /proc/[0-9]*/task/[0-9]*; do
		! grep -q 'terrace' "$task/stack" 2> /dev/null && [[ $(cat "$task/comm" 2> /dev/null) != @(anyinput|oracle|iou-*) ]] || { cat "$task/comm" "$task/stack" 2> /dev/null; } || true
	done
}
# looks when they should have ended; they themselves wait for a command longer than that
watch() {
	sleep $((SECONDS_EACH + 20))
	waiting > /dev/shm/waiting 2>&1
}
shopt -s extglob
watch & watch=$!
for k in 1 2; do
	from_ram anyinput $((SEED * 10 + k)) "$SECONDS_EACH" vol "$folder" > /dev/shm/any$k 2>&1 & any[k]=$!
done
rounds=0
while kill -0 "${any[1]}" 2> /dev/null || kill -0 "${any[2]}" 2> /dev/null; do
	rounds=$((rounds + 1))
	# what they set may have it run full, or wait long: then it says so, and was not wrong
	oracle_run --ops 50 --max-kb 32 --seed $((SEED * 1000 + rounds)) > /dev/shm/run || [ $? != 1 ] || { cat /dev/shm/run; die "a read was wrong (seed $SEED)"; }
done
for k in 1 2; do
	wait "${any[k]}" || { cat /dev/shm/any$k; cat /dev/shm/waiting || true; die "program $k (seed $SEED)"; }
	cat /dev/shm/any$k
done
kill $watch 2> /dev/null || true
check_eq "mode of the volume" "$(vol_get mode)" write
vol_reload
oracle_run --ops 200 --max-kb 64 --seed $((SEED + 7))
oracle_clean
vol_down
vol_check
vol_up
oracle_clean
pass "$rounds rounds of the oracle beside it"
