#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Room that is used again: what was said of a table that died, was killed half written or was trimmed is not said of the next one that lies there.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4
PATH=$TERRACE_TREE/build:$PATH in_ram orders

# takes all free room, so that the next file lies where the last one died
fill_up() {
	local kb n
	n=$(find "$M" -name 'filler*' | wc -l)
	for ((kb = 256 << 10; kb >= 4; kb /= 2)); do
		while fallocate -l ${kb}K "$M/filler$n" 2> /dev/null; do n=$((n + 1)); done
		rm -f "$M/filler$n"
		sync	# what a failed one took is free only then
	done
}
# blocks_of NUMBER: where that table lies, and what was allocated ahead for it, into /dev/shm/NUMBER
blocks_of() { where --ahead "$M/db/$(printf %06d "$1").ldb" "0:$(($(sectors "$VOL") / 8)):0" | sort -n > "/dev/shm/$1"; }
# same_room A B: nearly
same_room() {
	local all common
	all=$(wc -l < "/dev/shm/$2")
	common=$(sort "/dev/shm/$1" "/dev/shm/$2" | uniq -d | wc -l)
	[ "$common" -ge $((all * 9 / 10)) ] || die "only $common of the $all blocks of table $2 are where table $1 was: this shows nothing"
}
# fast NUMBER: blocks of it
fast() {
	local fast
	sync
	vol_message commit
	read -r _ fast _ <<< "$(where --state /dev/terrace/vol "/dev/shm/$1")"
	echo "$fast"
}
# level NUMBER: of the heat of 12 blocks of it, summed up; -1 each if none is known
level() {
	local block sum=0 n
	while read -r block; do
		n=$(terraced --config "$CONF" --explain "vol $block" | sed -n 's/^ *"level": *\(-\?[0-9]*\),\?$/\1/p')
		sum=$((sum + n))
	done < <(sed -n 101,112p "/dev/shm/$1")
	echo $sum
}
# order_all NUMBER WORD...: to the regions it lies in. ENOENT: nothing is to be done
order_all() {
	local region said
	sync
	vol_message commit
	while read -r region; do
		said=$(from_ram orders /dev/terrace/vol move "$region" "${@:2}") || [[ $said = *ENOENT* ]] || die "region $region: $said"
	done < <(awk '{ print int($1 / 1024) }' "/dev/shm/$1" | sort -nu)
}
# written NUMBER MB: a table, until its place is known
written() {
	local before
	before=$(number mapped)
	tables write "$1" 1 "$2"
	until_ "the place of table $1" at_least mapped $((before + 1))
	blocks_of "$1"
}
# gone NUMBER: deleted, and its room is free
gone() {
	rm "$M/db/$(printf %06d "$1").ldb"
	sync
}
# wait_ms N: before the dead are trimmed
wait_ms() {
	printf 'dead_wait_ms = %s\n' "$1" >> "$CONF"
	kill -HUP "$daemon"
	sleep 0.5
}

vol_ram 256 768
vol_format
vol_up stream_kb=0 heat_sample=1
make_fs ext4
mount "$VOL" $M
echo 0 | tee /sys/fs/ext4/dm-*/reserved_clusters > /dev/null
mkdir $M/db
follows 'evaluate = yes' 'admit.fill = 0' 'cold_share = 1' 'heat = clock'
follow
written 1 4
written 2 4
written 3 8
echo > $M/db/MANIFEST-000001
fill_up

# ---- a compaction that is killed: its room is no longer hinted ----
trimmed=$(number trimmed_bytes)
gone 3
until_ "its room is trimmed" at_least trimmed_bytes $((trimmed + (8 << 20)))
export PAUSE=60
start tables compact 1,2 11
until_ "its output is hinted cold" is cold_streams 1
blocks_of 11
kill_all "$JOB"
same_room 3 11
died=$(number died)
gone 11
until_ "the death of what it had written" at_least died $((died + 1))
written 4 8
same_room 11 4
n=$(fast 4)
[ "$n" -ge 1900 ] || die "only $n of 2048 blocks went to the fast tier where a killed compaction had written"
echo "fast tier: $(vol_tier 0 used)"
pass "where a killed compaction wrote, $n of 2048 blocks go to the fast tier"

# ---- the trim of a dead table takes back nothing but its own mark ----
wait_ms 8000
trims=$(number trims)
# what it overwrites in its place stays there, cold or not: all of that lies below
order_all 4 append tier_down=1 codec=lz4
check_eq "blocks of table 4 that are still fast" "$(fast 4)" 0
gone 4
export PAUSE=20
tables compact 1,2 21 keep &
job=$!
until_ "the next output is hinted cold" is cold_streams 2
check_eq "trims by then" "$(number trims)" "$trims"
until_ "the trim" at_least trims $((trims + 1))
wait $job
blocks_of 21
same_room 4 21
n=$(fast 21)
[ "$n" -le 600 ] || die "$n of 2048 blocks of a cold stream are fast: its hint went with a dead table's mark"
pass "a cold stream in a dead table's room stays hinted when that is trimmed: $n of 2048 blocks are fast"

# ---- written before the daemon has heard that what lay there is dead ----
wait_ms 20000
mapped=$(number mapped)
kill -STOP "$daemon"
gone 21
tables write 5 1 8
kill -CONT "$daemon"
until_ "its place" at_least mapped $((mapped + 1))
blocks_of 5
same_room 21 5
before=$(fast 5)
[ "$before" -ge 1900 ] || die "only $before of 2048 blocks are fast"
# what is marked dead goes down, whatever an order says
order_all 5 append up=all tier_down=1 codec=lz4
n=$(fast 5)
[ "$n" -ge $((before - 16)) ] || die "$((before - n)) blocks of a living table are marked dead"
pass "a table that was written before the death of another was heard of is not marked dead"

# ---- what was hot was the dead table's, trimmed or not ----
printf 'trim_dead = no\n' >> "$CONF"
wait_ms 200
gone 5
tables write 6 1 2
written 7 6	# takes the rest of that room
blocks_of 6
for ((n = 0; n < 20; n++)); do dd if=$M/db/000006.ldb of=/dev/null bs=4k iflag=direct status=none; done
sleep 1
before=$(level 6)
[ "$before" -ge 12 ] || die "the levels of 12 blocks of a hot table are $before in all: this shows nothing"
died=$(number died)
gone 6
until_ "its death" at_least died $((died + 1))
sleep 2
written 8 2
same_room 6 8
after=$(level 8)
[ "$after" -le 0 ] || die "a table is born with the heat of what lay there: levels $before, then $after"
pass "the heat of a dead table is not that of the next one there: levels $before, then $after"

unmounted
daemon_stop
check_fs ext4
vol_down
vol_check
