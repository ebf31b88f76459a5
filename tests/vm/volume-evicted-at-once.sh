#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is read into memory while memory is taken back, over and over: who had it read has it, it is evicted no sooner, and what is said of it is true in the end.
# vm: mode=functional memory=1G cpus=2 timeout=450 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"
SECONDS_EACH=${SECONDS_EACH:-20}
. "$TERRACE_TREE/tests/vm/at_once.bash"

# What is said of each region once it is loaded, but for what depends on which indexes are in memory. Each that is STALE is waited for.
summaries() {
	vol_message checkpoint	# drops packs of which nothing lives
	dd if="$VOL" of=/dev/null bs=1M iflag=direct status=none
	# A worker counts them that makes way for everybody and rests for up to 5 s, with a busy machine below longer.
	for ((tries = 0; tries < 15; tries++)); do
		sleep 6
		# shellcheck disable=SC2046
		ask summary $(seq 0 127) | sed 's/garbage=[0-9]* //' > /dev/shm/told
		if packs | diff -q - <(grep -o 'packs=[0-9]*' /dev/shm/told) > /dev/null; then break; fi
	done
	cat /dev/shm/told
}
packs() { for region in $(seq 0 127); do ask show "$region"; done | grep -o 'packs=[0-9]*'; }
discards() { awk '{ print $12 }' "/sys/block/$(basename "$(readlink -f /dev/ram/csd)")/stat"; }

# A sweep of free homes has the bitmap of each of sixteen chunks read, and goes on with it.
mkram fast 32
mkram csd 1024
VOL_DRIVES=(/dev/ram/fast /dev/ram/csd)
vol_format --size 512M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:atomic=${VOL_DRIVES[1]}"
vol_up
before=$(discards)
enough
messages evict > /dev/shm/evictions &
evictor=$!
messages trim_homes > /dev/shm/sweeps
wait $evictor
swept=$(($(discards) - before))
echo "$(< /dev/shm/evictions) evictions, $swept chunks swept"
((swept >= 1000 && $(< /dev/shm/evictions) >= 1000)) || die "too few to meet"
vol_down
vol_check
pass "bitmaps of $swept chunks read and swept over $(< /dev/shm/evictions) evictions"

# Regions, bitmaps, pages of packs' tables: under writes, reads, discards and orders.
mkram hdd 512
VOL_DRIVES=(/dev/ram/fast /dev/ram/csd /dev/ram/hdd)
vol_format --size 512M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}"
vol_up commit_ms=100
ask summary 0 > /dev/null	# from here on there are summaries
oracle_new
rm /dev/shm/enough
orders_begin
jobs=()
for message in evict evict_indexes checkpoint; do
	messages $message > "/dev/shm/$message" &
	jobs+=($!)
done
for ((step = 0; ; step++)); do
	at_once || break
	oracle_run --seed $step --ops 100 --threads 2 --depth 8 --max-kb 64 --hot 30 --max-discard-kb 256
	oracle_clean --touched --sample 16
done
enough
wait "${jobs[@]}"
orders_end
oracle_clean
read -r evictions < /dev/shm/evict
read -r rounds < /dev/shm/rounds
cat /dev/shm/orders
echo "$evictions evictions, $(< /dev/shm/evict_indexes) of packs' tables, $(< /dev/shm/checkpoint) checkpoints, $rounds rounds of orders, $step of the oracle"
((evictions >= 200 && rounds >= 2 && step >= 2)) || die "too few to meet"
summaries > /dev/shm/summaries
diff <(packs) <(grep -o 'packs=[0-9]*' /dev/shm/summaries) || die "summaries have other packs than there are, for minutes"
! grep "stale=1" /dev/shm/summaries || die "summaries of loaded regions are stale"
vol_down
vol_up
ask summary 0 > /dev/null
summaries > /dev/shm/anew
# A start has the janitor clean the shelves, which makes one pack of a region's: those were compared with what REGIONS says.
diff <(sed 's/packs=[0-9]* //' /dev/shm/summaries) <(sed 's/packs=[0-9]* //' /dev/shm/anew) || die "summaries are not what they are when all is counted anew"
vol_down
vol_check
pass "regions, bitmaps and tables in use over $evictions evictions"
