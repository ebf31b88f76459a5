#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Random orders of every mode under a random workload, with clean stops and power cuts: the oracle finds every block. Before, each window between an order and an I/O, held open.
# vm: mode=functional memory=3G timeout=950 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-4}
ORDERS=${ORDERS:-120}
RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders
# give_orders COUNT SEED [--uring]
give_orders() { from_ram orders "${@:3}" /dev/terrace/vol random "$1" "$2" 24 > /dev/shm/orders 2>&1; }

# ---- a drive holds a command until the other side has had its turn ----

# hold DRIVE KIND: the next one of data. Not one of before: owner blocks follow their data, and the janitor cleans when it likes.
hold() {
	local before i
	for ((i = 0, before = -1; i < 50 && $(drive_get "$1" "${2}s") != before; i++)); do
		vol_message commit
		before=$(drive_get "$1" "${2}s")
		sleep 0.3
	done
	drive "$1" error add "$2" "${DATA[$1]}" count=1 hold
}
declare -A DATA
# put BLOCK CHARACTER [COUNT]
put() {
	local bytes=$((${3:-1} * 4096))
	# in one piece: a short one dd would write through the page cache, and wait there for what is held
	head -c $bytes /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=$bytes count=1 iflag=fullblock oflag=direct,seek_bytes seek=$(($1 * 4096)) status=none
}
get() { dd if="$VOL" bs=$((${2:-1} * 4096)) iflag=direct,skip_bytes skip=$(($1 * 4096)) count=1 status=none; }
# is FILE CHARACTER [COUNT]
is() { cmp -n $((${3:-1} * 4096)) "$1" <(head -c $((${3:-1} * 4096)) /dev/zero | tr '\0' "$2"); }
holds() { dd if="$VOL" bs=1M iflag=direct,skip_bytes,count_bytes skip=$(($1 * 4096)) count=$((${3:-1} * 4096)) status=none > /dev/shm/block; is /dev/shm/block "$2" "${3:-1}"; }
order() { from_ram orders /dev/terrace/vol move "$@" > /dev/shm/order; }
clean_all() { local shelf; for shelf in 0 1 2 3 4 5 6 7; do order $shelf clean tier_down=1 || true; done; }
# gives a job that must wait the time to end all the same
lures() { local i; for ((i = 0; i < 15; i++)); do kill -0 "$1" 2> /dev/null || break; sleep 0.1; done; }
# it moves all there is, woken by the commit of a new block
new=16
janitor_on() {
	vol_message set janitor_low=1
	vol_message set janitor_high=2
	put $((new++)) j
	vol_message commit
}
janitor_off() {
	local i
	for ((i = 0; i < 600 && $(used) * 4 > blocks; i++)); do sleep 0.1; done
	[ $(($(used) * 4)) -le "$blocks" ] || die "the janitor has left $(used) blocks after a minute"
	vol_message set janitor_high=1000
	vol_message set janitor_low=990
	vol_message commit
}
used() { blocks_used=$(vol_tier 0 used); echo "${blocks_used%/*}"; }

windows() {
	local job reader blocks i
	vol_drives 12 576
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 1M
	DATA=([fast]=$(vol_layout fast data) [slow]=$(vol_layout slow data))
	local up=(stream_kb=0 janitor_high=1000 janitor_low=990 trim_ms=1)
	vol_up "${up[@]}"

	# a write in place that was mapped before the order came
	put 0 a
	hold fast write
	put 0 b & reader=$!
	drive_wait_held fast
	start order 0 append tier_down=1
	job=$JOB
	lures "$job"
	drive fast release
	wait "$reader"
	wait "$job" || die "an order that waited for a write failed: $(cat /dev/shm/order)"
	holds 0 b || die "a write that was under way when an order began is lost"

	# the same, seen as early as can be: it has its place, and is perhaps not counted yet
	put 0 a
	hold fast write
	put 0 b & reader=$!
	sleep 0.5
	start order 0 append tier_down=1
	job=$JOB
	drive_wait_held fast
	lures "$job"
	drive fast release
	wait "$reader"
	wait "$job" || die "an order that waited for a write failed: $(cat /dev/shm/order)"
	holds 0 b || die "a write that had its place when an order began is lost"

	# a write in place while the order has the block's old value on its way
	put 0 c
	hold slow write
	start order 0 append tier_down=1
	job=$JOB
	drive_wait_held slow
	put 0 d
	drive slow release
	wait "$job" || die "an order that raced with a write failed: $(cat /dev/shm/order)"
	holds 0 d || die "a write while an order ran is lost"

	# a read of a pack that is cleaned away, and its shelf trimmed
	put 2048 g 64		# a read of several blocks ends in an error if it finds something else
	order 2 append tier_down=1 codec=lz4 || die "$(cat /dev/shm/order)"
	vol_down		# closes the shelf
	vol_up "${up[@]}"
	get 2040 16 > /dev/null	# the pack's index is in memory
	hold slow read
	get 2060 2 > /dev/shm/late & reader=$!
	drive_wait_held slow
	start clean_all
	job=$JOB
	lures "$job"
	vol_message commit
	sleep 0.3
	drive slow release
	wait "$job"
	wait $reader || die "a read failed because its pack was moved"
	is /dev/shm/late g 2 || die "a read got something else than its pack had"

	# a read that was mapped before its blocks were discarded, and their room is written anew
	blocks=$(vol_tier 0 used)
	blocks=$((${blocks#*/} - ${blocks%/*}))
	put 1024 e $blocks
	vol_message commit
	hold fast read
	get 1100 64 > /dev/shm/late & reader=$!
	drive_wait_held fast
	blkdiscard -o $((1024 * 4096)) -l $((blocks * 4096)) "$VOL"
	vol_message commit
	sleep 0.3
	put 1024 w $blocks
	drive fast release
	wait $reader
	is /dev/shm/late e 64 || is /dev/shm/late '\0' 64 || die "a read got what was written after its blocks were discarded"

	# a write in place that was mapped before the janitor came
	put 1024 z $blocks
	hold fast write
	put 1024 x & reader=$!
	drive_wait_held fast
	janitor_on
	for ((i = 0; i < 15 && $(used) * 2 > blocks; i++)); do sleep 0.1; done	# which it must not
	drive fast release
	wait $reader
	janitor_off
	holds 1024 x || die "a write that was under way when the janitor came is lost"

	# writes in place while the janitor has the blocks' old values on their way
	put 1024 z $blocks
	hold slow write
	janitor_on
	drive_wait_held slow
	put 1024 y $blocks
	drive slow release
	janitor_off
	holds 1024 y $blocks || die "writes while the janitor moved their blocks are lost"
	holds 0 d

	# blocks are overwritten, or discarded and their room written anew, while an order has
	# them on their way: its pack must not say that it has them
	put 3072 m 128
	vol_message commit
	hold fast read
	start order 3 append tier_down=1
	job=$JOB
	drive_wait_held fast
	put 3072 n
	blkdiscard -o $((3100 * 4096)) -l $((64 * 4096)) "$VOL"
	vol_message commit
	sleep 0.3
	blocks=$(vol_tier 0 used)
	put 4096 e $((${blocks#*/} - ${blocks%/*}))
	drive fast release
	wait "$job" || die "an order that raced with writes failed: $(cat /dev/shm/order)"
	grep -q 'status=partly .* down=63 .* raced=65 ' /dev/shm/order || die "other blocks raced: $(cat /dev/shm/order)"
	if ! holds 3072 n || ! holds 3073 m 27 || ! holds 3100 '\0' 64 || ! holds 3164 m 36; then
		die "an order that raced with writes changed blocks"
	fi
	vol_down
	vol_check
	expect_fail "possibly older" terracectl salvage --from-shelves --to /dev/shm/image "${VOL_DRIVES[@]}"
	shelf() { dd if=/dev/shm/image bs=4k skip="$1" count="$2" status=none > /dev/shm/block; is /dev/shm/block "$3" "$2"; }
	if ! shelf 3073 27 m || ! shelf 3164 36 m; then die "a pack is not found by its header"; fi
	shelf 3100 64 '\0' || die "a pack's header says that it has discarded blocks, and it has another's data"
	shelf 3072 1 '\0' || die "a pack's header says that it has a block that was written while it was read"
	rm /dev/shm/image
	rmdrive fast
	rmdrive slow
}

windows
pass "orders, the janitor and frees wait for what is under way"

vol_drives 96 768
vol_format
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"
total=0
for ((step = 0; step < STEPS; step++)); do
	((step / 2 % 2)) && by=(--uring) || by=()
	# what is promoted leaves its pack, in a volume that has clean slots
	vol_message set clean_slots=$((1 - step / 2 % 2))
	start give_orders "$ORDERS" $((SEED * 100 + step)) "${by[@]}"
	oracle_run --seed $((SEED + step)) --ops 600 --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 512
	if ((step % 2)); then
		vol_cut_under "$JOB"
		vol_check
		vol_up stream_kb=2048 commit_ms=200
		oracle_crash
	else
		wait "$JOB" || { cat /dev/shm/orders; die "an order failed"; }
		total=$((total + ORDERS))
		cat /dev/shm/orders
		vol_down
		vol_check
		vol_up stream_kb=2048
		oracle_clean --touched --sample 2
	fi
done
# a client that is killed at any instant leaves nothing behind: neither orders nor a use of the volume
for ((turn = 0; turn < 4; turn++)); do
	((turn % 2)) && by=() || by=(--uring)
	start give_orders 100000 $((SEED + turn)) "${by[@]}"
	oracle_run --seed $((SEED + STEPS + turn)) --ops 80 --threads 2 --depth 8 --max-kb 128 --hot 50
	sleep "0.$((RANDOM % 900 + 100))"
	kill_all "$JOB"
done
for ((tries = 0; tries < 300; tries++)); do	# those under way come to their end
	[ "$(cat /sys/fs/terrace/*/tier1/orders)" != 0 ] || break
	sleep 0.2
done
check_eq "orders of nobody" "$(cat /sys/fs/terrace/*/tier1/orders)" 0
oracle_clean
vol_down
vol_check
for ((tries = 0; tries < 300; tries++)); do	# io_uring takes its leave in the background
	! rmmod dm_terrace 2> /dev/null || break
	sleep 0.2
done
[ ! -d /sys/module/dm_terrace ] || die "the module is still in use"
pass "$total orders to their end, $((STEPS / 2)) power cuts between orders"
