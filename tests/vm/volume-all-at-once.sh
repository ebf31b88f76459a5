#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# All at once, under two oracles: writes, discards of 17 regions and more, orders, drivers that are killed, suspends and reloads, growth, evictions, little memory, and swap on the volume; each pair is seen together, and every second round ends in a power cut.
# vm: mode=functional memory=2G timeout=900 build=oracle,orders long
#
# ROUNDS= of ROUND_S= seconds. What each of them does, and when it pauses, follows from
# SEED=; how they meet does not, so it is counted: a pair that never met is a failure.
# shellcheck disable=SC2119,SC2153
. "$TERRACE_TREE/tests/vm/lib.sh"
# What is swapped out is what hold.py holds, and nothing else: who resumes the volume must not wait for it.
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/held /sys/fs/cgroup/rest
echo 0 > /sys/fs/cgroup/rest/memory.swap.max
echo $$ > /sys/fs/cgroup/rest/cgroup.procs
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
ROUNDS=${ROUNDS:-2}
ROUND_S=${ROUND_S:-12}
RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup dd python3 mkswap swapon swapoff
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|slow)'
MIB=2048		# sectors
ACTORS="writes discards orders suspends growth evictions memory drivers swap"
WRITES=16384		# blocks: what the first oracle has; the second has the next, and the rest is swap
RANGES=49152
SWAP_MB=32
SIZE_MB=$(((WRITES + RANGES) / 256 + SWAP_MB))
HELD_MB=16
echo $((HELD_MB / 2))M > /sys/fs/cgroup/held/memory.high	# not max: while the volume is suspended nothing can leave
TALLY=/dev/shm/tally

# acts NAME: again and again until the round is over, with pauses; when is written down
acts() {
	local began nr=0
	RANDOM=$((SEED + $2))
	until [ -e /dev/shm/over ]; do
		began=$EPOCHREALTIME
		"do_$1" $((nr++)) > "/dev/shm/said-$1" 2>&1 || { echo "$1" >> /dev/shm/failed; return 1; }
		echo "$1 $began $EPOCHREALTIME" >> /dev/shm/acts
		sleep 0.$((RANDOM % 3))
	done
}
runs() { oracle run --ledger "$1" --device "$VOL" --seed "$RANDOM" --threads 2 --depth 6 "${@:2}"; }
do_writes() { runs "$LEDGER" --seconds 3 --ops 10000000 --blocks $WRITES --max-kb 64 --max-discard-kb 1024; }
do_discards() {
	runs /dev/shm/ranges --ops 15 --first $WRITES --blocks $RANGES --hot 0 --max-kb 16 --overlap 40 --weights write=12,fua=1,read=2,discard=1,flush=2 \
		--min-discard-kb $((17 * 4096)) --max-discard-kb $((40 * 4096))
}
# refused orders are no matter
do_orders() { from_ram orders /dev/terrace/vol random 12 "$RANDOM" 16 tier_down=1 || true; }
do_suspends() {
	case $((RANDOM % 4)) in
	0)	dmsetup suspend --noudevsync vol ;;
	1)	dmsetup suspend --noudevsync --noflush vol ;;
	2)	dmsetup load vol --table "$(vol_table stream_kb=$((64 << RANDOM % 5)) commit_ms=$((50 + RANDOM % 200)))"
		dmsetup suspend --noudevsync vol ;;
	3)	dmsetup load vol --table "$(vol_table janitor_high=$((600 + RANDOM % 300)))"
		dmsetup suspend --noudevsync --noflush --nolockfs vol ;;
	esac
	sleep 0.0$((RANDOM % 10))
	dmsetup resume --noudevsync --noudevrules vol
}
# larger every time; while the volume is suspended both are refused
do_growth() {
	if [ $(($1 % 2)) = 0 ]; then
		vol_message resize $(((size + $1 + 1) * MIB)) || true
	else
		redrive slow ram $(($(sectors /dev/mapper/slow) / 2048 + 1)) lbs=4096 group=pc
		vol_message grow_tier 1 || true
	fi
}
do_evictions() { vol_message checkpoint; vol_message evict; }
# most of what is free is taken for a moment, and what can be dropped is
do_memory() {
	from_ram dd if=/dev/zero of=/dev/null count=1 status=none bs=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) * 6 / 10))k
	echo 2 > /proc/sys/vm/drop_caches
}
# tallied: how many orders drivers gave, and how many of them nobody heard the end of
tallied() {
	local word given=0 ended=0 i
	read -ra word < <(od -An -v -w192 -tu8 $TALLY 2> /dev/null)
	for ((i = 0; i < 8; i++)); do given=$((given + ${word[i]:-0})) ended=$((ended + ${word[8 + i]:-0})); done
	echo $given $((given - ended))
}
# drives COUNT: random orders of one who has claimed the volume; after another one that was killed it waits a minute for that at most
drives() { from_ram orders "${by[@]}" /dev/terrace/vol random "$1" "$RANDOM" 16 tier_down=1 shelves=6 claim tally=$TALLY; }
# Who drives is killed, with orders under way; the next one takes over: from the one of the last time.
do_drivers() {
	local by=() given now
	[ $(($1 % 2)) = 0 ] || by=(--uring)
	read -r given _ <<< "$(tallied)"
	start drives 1000000
	until read -r now _ <<< "$(tallied)"; [ "$now" -gt "$given" ]; do
		kill -0 "$JOB" 2> /dev/null || return 1
		sleep 0.1
	done
	sleep 0.$((RANDOM % 10))
	kill_all "$JOB"
}
swapped_mb() { awk '$1 == "pswpout" { print int($2 / 256) }' /proc/vmstat; }
hold() {
	echo "$BASHPID" > /sys/fs/cgroup/held/cgroup.procs
	LD_LIBRARY_PATH=$RAM/lib exec "$RAM/python3" "$TERRACE_TREE/tests/vm/hold.py" $HELD_MB
}
# more memory than its group may have, on what nobody else has of the volume
do_swap() {
	local before status=0
	dmc swap "0 $((SWAP_MB * MIB)) linear $VOL $(((SIZE_MB - SWAP_MB) * MIB))" || return
	from_ram mkswap /dev/mapper/swap && from_ram swapon --discard /dev/mapper/swap || return
	before=$(swapped_mb)
	(hold) || status=$?
	echo $(($(swapped_mb) - before)) >> /dev/shm/swapped
	from_ram swapoff /dev/mapper/swap && dmr swap && return $status
}

# both WHAT CMD...: of both ledgers, of each the part that it knows
both() {
	local ledger part=0
	for ledger in "$LEDGER" /dev/shm/ranges; do
		oracle verify --ledger "$ledger" --device "$VOL" --only /dev/shm/part$((part++)) "${@:2}" > /dev/shm/verified || { cat /dev/shm/verified; die "$1"; }
	done
}
round() {
	local actor jobs=() n=0
	rm -f /dev/shm/over
	for actor in $ACTORS; do
		start acts "$actor" $((n++ + 100 * round))
		jobs+=("$JOB")
	done
	sleep "$ROUND_S"
	touch /dev/shm/over
	# suspends that failed leave the volume suspended, and the others would wait for ever
	wait "${jobs[3]}" || true
	dmsetup resume --noudevsync --noudevrules vol 2> /dev/shm/resumed || true
	for n in "${jobs[@]}"; do wait "$n" || true; done
	[ ! -e /dev/shm/failed ] || { cat "/dev/shm/said-$(head -1 /dev/shm/failed)"; dmsetup status --noflush vol; die "round $round: $(tr '\n' ' ' < /dev/shm/failed)"; }
	# who was killed last has left no claim, and no order that never ends
	by=()
	drives 1 > /dev/shm/driver 2>&1 || { cat /dev/shm/driver; die "round $round: nobody can take over"; }
	for ((n = 0; n < 300; n++)); do
		[ "$(cat /sys/fs/terrace/*/tier1/orders)" != 0 ] || break
		sleep 0.1
	done
	check_eq "round $round: orders of nobody" "$(cat /sys/fs/terrace/*/tier1/orders)" 0
	both "round $round" --clean --touched
	if [ $((round % 2)) = 1 ]; then
		both "round $round" --clean --touched --keep
		vol_cut
		vol_check
		vol_up
		both "round $round, after a cut" --crash --touched --sample 8
	fi
}
# how often any two of them were at work at the same time
pairs() {
	awk '{ name[NR] = $1; from[NR] = $2; to[NR] = $3; seen[$1] = 1 }
	END {
		for (i = 1; i <= NR; i++)
			for (k = i + 1; k <= NR; k++)
				if (name[i] != name[k] && from[i] < to[k] && from[k] < to[i])
					met[name[i] < name[k] ? name[i] " " name[k] : name[k] " " name[i]]++
		for (a in seen)
			for (b in seen)
				if (a < b)
					print met[a " " b] + 0, a, b
	}' /dev/shm/acts | sort -n
}

vol_models "$SEED" fast:48 slow:448
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --size ${SIZE_MB}M
size=$SIZE_MB
vol_up
oracle_new "$SEED"
cp "$LEDGER" /dev/shm/ranges
echo "0 $WRITES" > /dev/shm/part0
echo "$WRITES $RANGES" > /dev/shm/part1
rm -f /dev/shm/acts /dev/shm/failed
for ((round = 1; round <= ROUNDS; round++)); do
	round
	size=$(($(cat /sys/fs/terrace/*/virtual_blocks) / 256))
done
pairs > /dev/shm/pairs
cat /dev/shm/pairs
for actor in $ACTORS; do echo "$actor: $(grep -c "^$actor " /dev/shm/acts) times"; done
check_eq "pairs" "$(wc -l < /dev/shm/pairs)" 36
! grep -q '^0 ' /dev/shm/pairs || die "pairs that never met: $(grep '^0 ' /dev/shm/pairs | tr '\n' ';')"
check_eq "mode" "$(vol_get mode)" write
[ "$size" -gt $SIZE_MB ] || die "it has not grown"
read -r given open <<< "$(tallied)"
echo "drivers: $given orders given, $open of them under way when they were killed; swapped out, MiB: $(tr '\n' ' ' < /dev/shm/swapped)"
[ "$open" -gt 0 ] || die "no driver was killed with an order under way"
[ "$(sort -n /dev/shm/swapped | head -1)" -ge $((HELD_MB / 4)) ] || die "hardly anything was swapped out"
vol_down
vol_check
vol_up
both "in the end" --clean
vol_down
pass "$ROUNDS rounds of $ROUND_S s, $size MiB in the end"
