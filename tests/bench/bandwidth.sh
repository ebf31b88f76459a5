#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Bandwidth in order and at random, the steady state of shelves, tails during moves, scans.
# bench: mode=vtime memory=5G timeout=1500
# seeds: 1 before what is measured, 2 for what is measured, hits and overwrites; random overwrites, with none before, 1; data: fio's own
# packages: fio
#
# On drive models (Documentation/drive-model.md), in virtual time. What the
# volume's own instructions cost is in these figures: one per nanosecond. Each
# part says what it was run on, and ends within four minutes of real time on a
# machine that has a CPU for it.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/fio.bash"

PARTS=${PARTS:-order random tails scan steady}
SHELF_MB=${SHELF_MB:-2048}	# of the drive with shelves, part steady
LEVELS=${LEVELS:-50 80 90}	# per cent of it in use

PATH=$TERRACE_TREE/build:$PATH in_ram fio dmsetup dd orders
load_drive

# The disk sorts what waits for it, 32 commands deep, as disks do: two writers
# on two CPUs do not reach it in the order in which they took their places.
tiers() {	# FAST_PRESET MB SLOW_PRESET MB
	mkdrive fastd "$1" "$2" lbs=4096 powercut=off cache=off
	mkdrive slowd "$3" "$4" lbs=4096 powercut=off cache=off ncq=32
	VOL_DRIVES=(/dev/mapper/fastd /dev/mapper/slowd)
}

tiers_off() {
	rmdrive fastd
	rmdrive slowd
}

# ---- in order ----

big_io() {
	fio_json --name=x --filename="$1" --ioengine=io_uring --direct=1 --bs=1m --size=192m --iodepth=4 --rw="$2"
	kb_s
}

in_order() {
	local rw raw=()
	tiers nvme-tlc 256 hdd 320
	# the model's RAM is allocated by the first write
	big_io /dev/mapper/fastd write > /dev/null
	for rw in write read; do raw[${#raw[@]}]=$(big_io /dev/mapper/fastd $rw); done
	vol_format --tier nvme:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd
	vol_up stream_kb=0
	bar "1 MiB writes in order, new, of the drive's ${raw[0]} kB/s" $(($(big_io "$VOL" write) * 1000 / raw[0])) o/oo -950
	bar "1 MiB writes in order, in place" $(($(big_io "$VOL" write) * 1000 / raw[0])) o/oo -950
	bar "1 MiB reads in order, of the drive's ${raw[1]} kB/s" $(($(big_io "$VOL" read) * 1000 / raw[1])) o/oo -950
	vol_down
	tiers_off
}

# ---- at random, onto shelves ----

# shelf_bw MB: of the slow drive of that size, in order, its RAM allocated before
shelf_bw() {
	fio_json --name=x --filename=/dev/mapper/slowd --ioengine=io_uring --direct=1 --bs=1m --size="$1"m --iodepth=4 --rw=write
	fio_json --name=x --filename=/dev/mapper/slowd --ioengine=io_uring --direct=1 --bs=1m --size=256m --iodepth=4 --rw=write
	kb_s
}

# shelves_up MB: the volume with its first MB mapped, which fill the fast tier
# and lie on shelves from there on. The journal is that of a 16 GiB drive.
shelves_up() {	# MB [FIO_ARG...]
	vol_format --tier optane:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd --journal 16M
	vol_up stream_kb=0
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=1m --size="$1"m --iodepth=4 --rw=write --end_fsync=1 "${@:2}"
	sleep 20
}

# overwrite MB BLOCK IO_MB SEED [FIO_ARG...]: bandwidth of random overwrites of the first MB
overwrite() {
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs="$2" --size="$1"m --io_size="$3"m --iodepth=32 --rw=randwrite \
		--norandommap --randrepeat=0 --randseed="$4" "${@:5}"
	kb_s
}

random() {
	local bw got fast=96 slow=1280 mapped=384 io=128
	tiers optane $fast hdd "$slow"
	bw=$(shelf_bw "$slow")
	shelves_up $mapped
	echo "# random: optane $fast MiB, full, and hdd $slow MiB; $io MiB of 4 KiB overwrites, depth 32, anywhere in $mapped MiB"
	got=$(overwrite $mapped 4k $io 1)
	bar "random 4 KiB overwrites, fresh shelves, of $bw kB/s in order" $((got * 1000 / bw)) o/oo -900
	vol_down
	tiers_off
}

# ---- the steady state ----

# Overwritten in 16 KiB blocks until all of the free room has been written once
# and half of it again, so that shelves are cleaned at the rate they fill; then
# measured with 4 KiB blocks, more than two shelves of them. A disk that reads what
# it writes again, and does nothing else, would take its bandwidth / (2 * amplification).
steady() {
	local bw level mb before free got written ideal fast=96 user=160
	tiers optane $fast hdd "$SHELF_MB"
	bw=$(shelf_bw "$SHELF_MB")
	for level in ${LEVELS//,/ }; do
		mb=$((SHELF_MB * level / 100))
		free=$((SHELF_MB - mb))
		shelves_up $mb
		overwrite $mb 16k $((free * 3 / 2)) 1 > /dev/null
		echo "# steady, $level %: optane $fast MiB, hdd $SHELF_MB MiB, $mb MiB mapped; $((free * 3 / 2)) MiB overwritten before, $user MiB measured"
		before=$(drive_get slowd write_bytes)
		got=$(overwrite $mb 4k $user 2)
		written=$((($(drive_get slowd write_bytes) - before) / 1048576))
		figure "steady state, shelves $level % full: random 4 KiB overwrites" "$got" kB/s
		figure "steady state, shelves $level % full: write amplification" $((written * 100 / user)) /100
		ideal=$((bw * 50 / (written * 100 / user)))
		figure "steady state, shelves $level % full: $bw kB/s / (2 * amplification)" $ideal kB/s
		bar "steady state, shelves $level % full: overwrites, of that" $((got * 1000 / ideal)) o/oo -900
		vol_down
	done
	tiers_off
}

# ---- scans ----

# scan MB: bandwidth, and how often the disk was read, and its head moved for it
scan() {
	local reads seeks
	reads=$(drive_get slowd reads) seeks=$(drive_get slowd seeks)
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=1m --size="$1"m --iodepth=4 --rw=read
	echo "# scan: $(($(drive_get slowd reads) - reads)) reads of the disk, $(($(drive_get slowd seeks) - seeks)) seeks" >&2
	kb_s
}

# In clusters of 64 KiB as much of the volume is overwritten as the fast tier holds;
# the janitor takes the oldest down. Then nothing happens for two minutes but what
# terraced does with an idle volume.
scans() {	# WHAT [FIO_ARG...]
	local fast=64 slow=1280 mapped=320 fresh aged
	tiers optane $fast hdd $slow
	shelf_bw $slow > /dev/null
	shelves_up $mapped "${@:2}"
	fresh=$(scan $mapped)
	overwrite $mapped 64k 64 1 "${@:2}" > /dev/null
	sleep 60
	echo "# scan: optane $fast MiB, hdd $slow MiB, $mapped MiB mapped, 64 MiB overwritten at random in 64 KiB pieces; $1"
	figure "scan of a fresh volume, 1 MiB reads, depth 4" "$fresh" kB/s
	aged=$(scan $mapped)
	figure "scan of an aged volume, of the fresh one's" $((aged * 1000 / fresh)) o/oo
	printf '[daemon]\nstate_directory = /dev/shm/state\nsocket = /dev/shm/socket\n' > "$CONF"
	rm -rf /dev/shm/state
	daemon_start
	sleep "${IDLE_S:-120}"
	aged=$(scan $mapped)
	figure "blocks that lay loose, and were packed" "$(number packed_loose_blocks)" blocks
	figure "regions of them that lay scattered" "$(number gathered_regions)" regions
	bar "scan after $((${IDLE_S:-120})) s idle with terraced, of the fresh one's" $((aged * 1000 / fresh)) o/oo -900
	daemon_stop
	vol_down
	tiers_off
}

# ---- tails ----

# hot_reads SEED SECONDS: p99.9 of hits
hot_reads() {
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size=16m --iodepth=1 --rw=randread --norandommap --randrepeat=0 --randseed="$1" \
		--time_based --runtime="$2"
	percentile_ns 99.900000
}

# tails_up FIO_ARG...: 240 of the 256 MiB of the fast drive in use
tails_up() {	# sets idle
	tiers optane 256 hdd 512
	shelf_bw 512 > /dev/null	# the model's RAM is allocated by the first write
	vol_format --tier optane:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd
	vol_up stream_kb=0 age_s=1
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=1m --size=240m --iodepth=4 --rw=write --end_fsync=1 "$@"
	sleep 20
	hot_reads 1 2 > /dev/null
	idle=$(hot_reads 2 1)
	figure "hit on the fast drive, idle, p99.9" "$idle" ns
}

tails_of_janitor() {
	local idle busy moved
	tails_up
	moved=$(vol_get moved)
	# Nothing is read from the host from here on: it takes long in virtual time.
	from_ram dmsetup message vol 0 set janitor_low=200
	from_ram dmsetup message vol 0 set janitor_high=300
	busy=$(hot_reads 2 1)
	moved=$(($(vol_get moved) - moved))
	echo "# tails: optane 256 MiB, hdd 512 MiB, 240 MiB mapped; 4 KiB reads at depth 1 in 16 MiB, for 1 s, while the janitor empties the fast tier"
	figure "hit on the fast drive, $moved blocks moved meanwhile, p99.9" "$busy" ns
	[ $moved -gt 4096 ] || die "the janitor moved only $moved blocks: $(vol_status)"
	[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
	bar "p99.9 of fast hits during moves, against idle" $((busy * 100 / idle)) % 200
	vol_down
	tiers_off
}

# The same while orders pack it, as many at once as the tiers' limits let: they compress
# on that CPU as well.
tails_of_orders() {
	local idle busy down
	tails_up --refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096
	from_ram orders /dev/terrace/vol sweep 4 56 append tier_down=1 codec=lz4 > /dev/shm/swept &
	busy=$(hot_reads 2 300ms)
	down=$(vol_tier 1 used)
	wait $! || die "orders: $(cat /dev/shm/swept)"
	echo "# tails: the same, 56 orders given at once, of which $((${down%/*} * 4096 >> 20)) MiB were written by the end of 0.3 s"
	figure "hit on the fast drive, orders under way, p99.9" "$busy" ns
	[ "${down%/*}" -gt 4096 ] || die "orders wrote ${down%/*} blocks meanwhile: $(cat /dev/shm/swept)"
	bar "p99.9 of fast hits during orders, against idle" $((busy * 100 / idle)) % 200
	vol_down
	tiers_off
}

for part in ${PARTS//,/ }; do
	case $part in
	order)	in_order ;;
	random)	random ;;
	steady)	steady ;;
	tails)	tails_of_janitor; tails_of_orders ;;
	janitor) tails_of_janitor ;;
	orders)	tails_of_orders ;;
	scan)	scans "data that compress by half" --refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096
		scans "data that do not compress" --refill_buffers=1 ;;
	*)	die "no part called $part" ;;
	esac
done
bars_end
