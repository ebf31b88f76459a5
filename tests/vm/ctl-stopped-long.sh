#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl stopped in its narrow places: Ctrl-C of move and evacuate, a tier that comes, the labels of a volume that leaves.
# vm: mode=functional memory=2G timeout=680 build=oracle long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

need dm-mirror dm-delay
vol_ram 64 512
mkram plain 80
for n in 2 3 4; do mkram spare$n 16; done
# writes to the slow tier take that many ms, reads and flushes nothing
writes_take() { echo "0 $(sectors /dev/ram/slow) delay /dev/ram/slow 0 0 /dev/ram/slow 0 $1 /dev/ram/slow 0 0"; }
dmc under "$(writes_take 0)"
VOL_DRIVES[1]=/dev/mapper/under
orders() { readlink "/proc/$pid/fd/"* 2> /dev/null | grep -q ^/dev/terrace/; }
# in_background ARG...: terracectl, as $pid
in_background() {
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terracectl" "$@" > /dev/shm/said 2>&1 &
	pid=$!
}
# what a power cut leaves: no mapping, nothing in /run
cut_power() {
	local name
	for name in vol vol-terrace; do
		! dmsetup info "$name" > /dev/null 2>&1 || dmr "$name"
		rm -f "/dev/mapper/$name"
	done
	rm -f /run/terrace/vol.relay
}
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --size 64M
vol_up commit_ms=200 stream_kb=0
oracle_new 8
oracle_run --seed 8 --ops 1500 --max-kb 64 --weights write=60,fua=2,read=20,flush=2 --first 0 --blocks 8192
seed=8
write_to() {
	seed=$((seed + 1))
	oracle_run --seed $seed --ops 200 --max-kb 64 --weights write=90,read=10 --first "$1" --blocks 2048
}
fast_blocks() { terracectl which --json vol | json "sum(r['blocks'] for r in o if r['where'].startswith('fast'))"; }

# ---- Ctrl-C, and the same call
for command in "move --to 1 vol" "evacuate vol 0"; do
	terracectl move --to 0 vol > /dev/null
	before=$(fast_blocks)
	((before > 1000)) || die "only $before blocks on the fast tier"
	# so that there is something to write down
	write_to 10240
	becomes under "$(writes_take 20000)"
	# shellcheck disable=SC2086 # words
	in_background $command
	until_ "orders" orders
	sleep 2
	kill -INT $pid
	sleep 0.5
	becomes under "$(writes_take 0)"
	if wait $pid; then die "interrupted $command ended well"; fi
	grep -q "interrupted: what was done stays done; the same call goes on" /dev/shm/said || die "said $(cat /dev/shm/said)"
	refuses 1 "volume 'vol' is not leaving" leave --undo vol
	oracle_clean
	# new writes go to the fast tier: no pin is left
	write_to 13312
	says "fast" which vol 13312-15359
	# shellcheck disable=SC2086 # words
	says "blocks up" $command
	check_eq "blocks on the fast tier after $command" "$(fast_blocks)" 0
	[[ $command != evacuate* ]] || terracectl evacuate --undo vol 0
	oracle_clean
done
pass "Ctrl-C of move and evacuate"

# ---- the power is cut while a tier comes: with it or without it
nr=2
for delay in 0.2 0.4 0.7; do
	in_background add vol --yes --force --tier "hdd:slots=/dev/ram/spare$nr"
	sleep "$delay"
	kill -9 $pid 2> /dev/null || true
	wait $pid 2> /dev/null || true
	cut_power
	says "^/dev/mapper/vol$" activate vol
	now=$(dmsetup table vol | cut -d' ' -f5)
	[ "$now" = "$nr" ] || [ "$now" = $((nr + 1)) ] || die "$now tiers, there were $nr"
	nr=$now
	oracle_clean
	[ "$nr" -lt 4 ] || break
done
vol_down
drives=(/dev/ram/fast /dev/mapper/under)
for ((n = 2; n < nr; n++)); do drives+=("/dev/ram/spare$n"); done
says ": sound$" check --full "${drives[@]}"
pass "power cuts"

# ---- killed while labels are zeroed: the plain device has it all, and the same call ends it
labels_going() { cmp -s -n 8192 /dev/ram/fast /dev/zero; }
for n in 2 3 4; do dd if=/dev/zero of=/dev/ram/spare$n bs=1M count=1 oflag=direct status=none; done
for then in goes_on power_cut; do
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --size 64M
	vol_up commit_ms=200
	oracle_new 9
	oracle_run --seed 9 --ops 300 --max-kb 64
	becomes under "$(writes_take 3000)"
	in_background leave --yes --force --to /dev/ram/plain vol
	until_ "the first label is zeroed" labels_going
	kill -9 $pid
	wait $pid 2> /dev/null || true
	becomes under "$(writes_take 0)"
	check_eq "state" "$(dmsetup info -c --noheadings -o suspended vol)" Suspended
	if [ $then = goes_on ]; then
		says "is on /dev/ram/plain now" leave --yes --to /dev/ram/plain vol
		check_eq "table" "$(dmsetup table vol | cut -d' ' -f3)" linear
		oracle_clean
		dmr vol
	else
		cut_power
	fi
	oracle verify --ledger "$LEDGER" --device /dev/ram/plain --clean
	pass "leave, killed at its labels: $then"
done
