#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What tests/demo/run shows, in the machine or on the host: RocksDB with a hotspot that moves, on a disk alone, behind dm-cache, on Terrace.
#
# db_bench, unmodified, on xfs: KEYS records of 1,016 bytes, half of it compressible, loaded in random order;
# then reads and updates, 95 to 5 (YCSB's B), with skewed keys: 40 % of all for one key in 100. Half-way through
# all that is hot changes. Reads are direct, so that the page cache does not answer them. KEYS=, OPS= (of
# each of the four rounds), FAST_MB= from the environment.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
PATH=$TERRACE_TREE/build:/usr/sbin:/sbin:$PATH
. "$TERRACE_TREE/tests/drive/drive.sh"

KEYS=${KEYS:-50000}
OPS=${OPS:-40000}
REST=${REST:-30}		# seconds without load, after loading and at the end
SKEW=0.2		# so much of all accesses go to the hottest x of the keys: x ^ SKEW
ROUNDS="1 2 3 4"		# the hotspot moves before the 3rd
FAST_MB=${FAST_MB:-24} QLC_MB=512 HDD_MB=512 VOLUME_MB=320
HERE=/dev/shm/terrace-demo
MOUNT=$HERE/mnt
CONF=$HERE/terraced.conf
declare -A GOT
daemon=
need_cmd db_bench mkfs.xfs
in_ram db_bench mkfs.xfs terracectl terraced
terracectl() { from_ram terracectl "$@"; }

title() { printf '\n== %s ==\n\n' "$*"; }
# typed COMMAND...: shows it, and does it
typed() {
	echo "# $*"
	"$@"
	echo
}

drives() {
	mkdrive optane optane "$FAST_MB" lbs=4096 powercut=off
	mkdrive qlc qlc $QLC_MB lbs=4096 powercut=off cache=off
	mkdrive hdd hdd $HDD_MB lbs=4096 powercut=off cache=off
}
drives_off() {
	local d
	for d in optane qlc hdd; do rmdrive $d; done
}
written_mb() { echo $(($(drive_get "$1" write_bytes) / 1048576)); }

# ---- the load ----

db() {	# RUN ARG...: its operations a second, into RATE
	local run=$1
	shift
	from_ram db_bench --db=$MOUNT/rocksdb --benchmarks="$run" --use_existing_db="$EXISTING" --num="$KEYS" --key_size=16 --value_size=1000 \
		--threads=1 --compression_type=none --cache_size=1048576 --write_buffer_size=4194304 --target_file_size_base=4194304 \
		--max_bytes_for_level_base=16777216 --bloom_bits=10 --use_direct_reads=true "$@" > $HERE/said 2>&1 ||
		die "db_bench $run: $(tail -3 $HERE/said)"
	EXISTING=true
	RATE=$(sed -n "s/^${run%%,*} *:.* \([0-9]*\) ops\/sec.*/\1/p" $HERE/said)
}
# reads that fast drives or memory served, and all, since the system came up
served_disk() { echo 0 1; }
served_cache() {
	local words
	read -ra words <<< "$(dmsetup status --noflush cached)"
	echo "${words[7]} $((words[7] + words[8]))"
}
served_terrace() {
	local at=/sys/fs/terrace/$DISK t all fast
	fast=$(cat "$at/tier0/reads")
	all=$fast
	for t in 1 2; do all=$((all + $(cat "$at/tier$t/reads"))); done
	echo "$((fast + $(cat "$at/cache_hits"))) $((all + $(cat "$at/packed_reads")))"
}

# load_on NAME DEVICE: makes a filesystem, loads, runs all rounds; shorter ones on the disk, which learns nothing
load_on() {
	local name=$1 device=$2 round before after num ops=$OPS
	[ "$name" != disk ] || ops=$((OPS / 20))
	from_ram mkfs.xfs -q -f -K "$device" 2> $HERE/said || die "mkfs.xfs: $(cat $HERE/said)"
	mount "$device" $MOUNT
	EXISTING=false
	db fillrandom --seed=7
	GOT[$name-load]=$RATE
	printf '%-10s  loaded: %s a second\n' "$name" "$RATE"
	# drives and daemons have time for what they do when nobody asks
	sleep "$REST"
	for round in $ROUNDS; do
		read -ra before <<< "$("served_$name")"
		# one key less: all ranks fall on other keys
		num=$((round < 3 ? KEYS : KEYS - 1))
		db mixgraph --mix_get_ratio=0.95 --mix_put_ratio=0.05 --mix_seek_ratio=0 --value_theta=1000 --value_sigma=0 --value_k=0 \
			--key_dist_a="$(awk -v n="$KEYS" -v b=$SKEW 'BEGIN { print n ^ -b }')" --key_dist_b=$SKEW \
			--reads="$ops" --num=$num --seed=$((round * 11))
		read -ra after <<< "$("served_$name")"
		GOT[$name-$round]=$RATE
		GOT[$name-hits-$round]=$(((after[0] - before[0]) * 1000 / (after[1] - before[1] + (after[1] == before[1]))))
		printf '%-10s  round %s%s: %s a second%s\n' "$name" "$round" "$([ "$round" != 3 ] || echo ', the hotspot has moved')" "$RATE" \
			"$([ "$name" = disk ] || awk -v p="${GOT[$name-hits-$round]}" 'BEGIN { printf ", hit rate %.1f %%", p / 10 }')"
		[ "$name" != terrace ] || "after_round_$round"
	done
}
disk_of() { dmsetup info -c --noheadings -o blkdevname "$1"; }
has_written() {	# NAME MAPPING
	local d
	for d in optane qlc hdd; do GOT[$1-$d]=$(written_mb $d); done
	GOT[$1-user]=$(awk '{ print int($7 / 2048) }' "/sys/block/$(disk_of "$2")/stat")
}

# ---- the three systems ----

on_disk() {
	drives
	load_on disk /dev/mapper/hdd
	sync -f $MOUNT
	has_written disk hdd
	umount $MOUNT
	drives_off
}

on_cache() {
	local size=$((VOLUME_MB * 2048))
	drives
	dmc cmeta "0 8192 linear /dev/mapper/optane 0"
	dmc cdata "0 $((FAST_MB * 2048 - 8192)) linear /dev/mapper/optane 8192"
	dmc cached "0 $size cache /dev/mapper/cmeta /dev/mapper/cdata /dev/mapper/hdd 128 1 writeback smq 0"
	load_on cache /dev/mapper/cached
	sync -f $MOUNT
	has_written cache cached
	umount $MOUNT
	dmr cached
	dmr cmeta
	dmr cdata
	drives_off
}

daemon_answers() { from_ram terraced --status > $HERE/status 2> /dev/null; }
start_daemon() {
	local tries
	printf '[daemon]\nstate_directory = %s/state\n[policy]\nfiles = yes\n' $HERE > $CONF
	mkdir -p /run/terrace
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config $CONF > $HERE/terraced.log 2>&1 &
	daemon=$!
	for ((tries = 0; tries < 300; tries++)); do
		! daemon_answers || return 0
		kill -0 $daemon 2> /dev/null || break
		sleep 0.2
	done
	die "terraced does not answer: $(tail -3 $HERE/terraced.log)"
}

# in the background, for the next round
after_round_1() {
	terracectl top --once --every 1 db > $HERE/top &
	top=$!
}
after_round_2() {
	wait "$top"
	echo
	echo "# terracectl top db"
	cat $HERE/top
	echo
}
after_round_3() { :; }
after_round_4() {
	local table fast
	table=$(find $MOUNT/rocksdb -name '*.sst' -size +1M -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
	echo
	echo "# terracectl which $table"
	terracectl which "$table" > $HERE/which
	tail -4 $HERE/which
	echo
	fast=$(awk '/: fast/ { print $2; exit }' $HERE/which)
	typed terracectl explain "$table" "${fast:-0}"
}

on_terrace() {
	local reporter
	drives
	typed terracectl create db --tier optane=/dev/mapper/optane --tier qlc=/dev/mapper/qlc --tier hdd=/dev/mapper/hdd --size ${VOLUME_MB}M --yes
	DISK=$(disk_of db)
	# 64 MiB are for volumes of some GiB: this one is to be served by its drives
	typed terracectl set db cache_mb 6
	echo "# systemctl start terraced"
	start_daemon
	echo "# terracectl report --seconds 2000 --output report.html db &"
	set -m
	terracectl report --seconds 2000 --every 1 --output "$OUT/report.html" db > $HERE/reporter 2>&1 &
	reporter=$!
	set +m
	printf '# mkfs.xfs /dev/mapper/db && mount /dev/mapper/db /mnt\n\n'
	load_on terrace /dev/mapper/db
	sync -f $MOUNT
	has_written terrace db
	sleep "$REST"
	kill -INT -- -$reporter
	wait $reporter || die "no report: $(tail -1 $HERE/reporter)"
	typed terracectl status db
	daemon_answers
	terracectl status --json db > $HERE/volume.json
	SAVED=$(terracectl status db | sed -n 's/^ *compressed: .* in packs take .*: \(.* to 1\).*/\1/p')
	umount $MOUNT
	kill $daemon
	wait $daemon || die "terraced ends with $?"
	daemon=
	typed terracectl deactivate db
	typed terracectl check --full /dev/mapper/optane /dev/mapper/qlc /dev/mapper/hdd
	drives_off
}

# ---- the page ----

row() { printf '%-44s %12s %12s %12s\n' "$@"; }
rates() { row "$1" "${GOT[disk-$2]}" "${GOT[cache-$2]}" "${GOT[terrace-$2]}"; }
hits() { row "$1" "-" "$((GOT[cache-hits-$2] / 10)) %" "$((GOT[terrace-hits-$2] / 10)) %"; }
mib() { row "$1" "${GOT[disk-$2]}" "${GOT[cache-$2]}" "${GOT[terrace-$2]}"; }
# sum NAME: of that name in terraced's status, of all tiers
sum() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" $HERE/status | awk '{ n += $1 } END { print n + 0 }'; }

page() {
	title "One page"
	row "" "disk alone" "dm-cache" "Terrace"
	row "drives" "HDD" "Optane, HDD" "Opt, QLC, HDD"
	rates "load, operations a second" load
	rates "hotspot: first round, operations a second" 1
	rates "         second" 2
	hits "         … reads from Optane or memory" 2
	rates "hotspot moved: first round" 3
	rates "               second" 4
	hits "               … reads from Optane or memory" 4
	mib "written by RocksDB and xfs, MiB" user
	mib "wear: written to the Optane, MiB" optane
	mib "      written to the QLC, MiB" qlc
	mib "      written to the disk, MiB" hdd
	row "moved by the policy, MiB" "-" "-" "$(($(sum written_by_moves_bytes) / 1048576))"
	row "data in packs to the room they take" "-" "-" "${SAVED:--}"
	echo
	echo "dm-cache takes two drives: what Terrace gains is the flash between them as well as what it places where."
}

# ---- all of it ----

clean_up() {
	set +e
	trap - ERR
	cp $HERE/terraced.log $HERE/status $HERE/volume.json "$OUT/" 2> /dev/null
	[ -z "$daemon" ] || kill "$daemon"
	wait
	! mountpoint -q $MOUNT || umount $MOUNT
	for d in db cached cmeta cdata optane qlc hdd; do
		! dmsetup info "$d" > /dev/null 2>&1 || dmsetup remove --retry "$d"
	done
	rm -rf $HERE "$RAM"
	rmmod dm_terrace dm_drive 2> /dev/null
}
trap clean_up EXIT

mkdir -p $MOUNT
modprobe -a xfs dm_cache_smq
mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true
load_terrace

echo "$KEYS records of 1 KB; four rounds of $OPS reads and updates, 95 to 5; hot: 40 % of them on 1 key in 100"
title "A disk alone"
on_disk
title "dm-cache: $FAST_MB MiB of Optane before the disk"
on_cache
title "Terrace: $FAST_MB MiB of Optane, $QLC_MB MiB of QLC flash, $HDD_MB MiB of disk"
SAVED=-
on_terrace
page | tee "$OUT/page"
