#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every tunable from one end to the other, a thousand times a second, all figures read and every message that needs no new table, while there are writes, discards and orders.
# vm: mode=functional memory=1G cpus=2 timeout=400 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
SECONDS_EACH=${SECONDS_EACH:-30}
. "$TERRACE_TREE/tests/vm/at_once.bash"

mkram fast 48
mkram csd 256
mkram hdd 512
VOL_DRIVES=(/dev/ram/fast /dev/ram/csd /dev/ram/hdd)
vol_format --size 512M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}"
vol_up
oracle_new

# as the module has them (kmod/tune.c); a range that is too long for a small machine ends where it is large enough to matter
tunables=$(sed -nE 's/^\t\[TR_TUNE_[A-Z_0-9]+\]\t+= \{ "([a-z_0-9]+)", ([0-9]+), ([^,]+), ([0-9]+) \},$/\1|\2|\3|\4/p' "$TERRACE_TREE/kmod/tune.c")
sets=()
while IFS="|" read -r name least most usual; do
	case $name in
	memory_mb) most=64 ;;
	cache_mb) most=32 ;;
	trim_ms) most=10 ;;
	queue_if_full) most=0 ;;	# who waits for room would wait for the test's end
	avoid_tiers) most=2 ;;		# the homes'
	esac
	sets+=("set $name=$least" "set $name=$((most))" "set $name=$usual")
done <<< "$tunables"
check_eq "tunables, three settings for each" ${#sets[@]} $((3 * $(grep -c '\[TR_TUNE_.*{ "' "$TERRACE_TREE/kmod/tune.c")))

orders_begin
(
	trap 'exit 0' TERM
	for ((n = 1; ; n++)); do
		cat /sys/fs/terrace/*/* > /dev/shm/figures 2>&1 || true	# some are there to be written
		echo $n > /dev/shm/looks
	done
) &
looks=$!
jobs=()
messages "${sets[@]}" > /dev/shm/sets &
jobs+=($!)
messages commit trim evict trim_homes evict_indexes checkpoint > /dev/shm/others &
jobs+=($!)
for ((step = 0; ; step++)); do
	at_once || break
	oracle_run --seed $step --ops 100 --threads 2 --depth 8 --max-kb 64 --hot 30 --max-discard-kb 256
	oracle_clean --touched --sample 16
done
enough
for job in "${jobs[@]}"; do wait "$job" || die "a message was refused"; done
orders_end
kill $looks
wait $looks
oracle_clean
read -r sets < /dev/shm/sets
read -r others < /dev/shm/others
read -r rounds < /dev/shm/rounds
read -r looks < /dev/shm/looks
cat /dev/shm/orders
echo "$sets settings, $others other messages, figures read $looks times, $rounds rounds of orders, $step of the oracle"
((sets >= 1000 && others >= 100 && looks >= 10 && rounds >= 2 && step >= 2)) || die "too few to meet"
grep -q . /dev/shm/figures || die "no figure was read"
vol_down
vol_check
pass "$sets settings, $others other messages"
