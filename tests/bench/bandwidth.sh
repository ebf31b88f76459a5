#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Bandwidth in order and at random, the steady state of shelves, tails during moves.
# bench: mode=vtime memory=4G timeout=400
#
# On drive models (Documentation/drive-model.md), in virtual time. What the
# volume's own instructions cost is in these figures: one per nanosecond.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

PARTS=${PARTS:-order random tails steady}
SHELF_MB=${SHELF_MB:-1024}	# of the drive with shelves
LEVELS=${LEVELS:-50 80 90}	# per cent of it in use

in_ram fio dmsetup dd
load_drive

fio_json() { fio_ --output-format=json --output=/dev/shm/o.json "$@" > /dev/null 2> /dev/shm/e || die "fio: $(head -3 /dev/shm/e)"; }
kb_s() { awk '/"bw_bytes"/ { gsub(/[^0-9]/, ""); if ($0 > max) max = $0 } END { print int(max / 1000) }' /dev/shm/o.json; }
p999_ns() { awk '/"clat_ns"/ { on = 1 } on && /"99.900000"/ { gsub(/.*: |,/, ""); print int($0); exit }' /dev/shm/o.json; }

tiers() {	# FAST_PRESET MB SLOW_PRESET MB
	mkdrive fastd "$1" "$2" lbs=4096 powercut=off cache=off
	mkdrive slowd "$3" "$4" lbs=4096 powercut=off cache=off
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

# The fast tier is small and full; what is overwritten lives on shelves.
SMALL=64
shelf_bw() {
	fio_json --name=x --filename=/dev/mapper/slowd --ioengine=io_uring --direct=1 --bs=1m --size=$((SHELF_MB - 64))m --iodepth=4 --rw=write
	fio_json --name=x --filename=/dev/mapper/slowd --ioengine=io_uring --direct=1 --bs=1m --size=256m --iodepth=4 --rw=write
	kb_s
}

# shelves_up MB: the volume with its first MB mapped, the fast tier full
shelves_up() {
	vol_format --tier optane:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd
	vol_up stream_kb=0
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=1m --size="$1"m --iodepth=4 --rw=write --end_fsync=1
	sleep 20
}

# overwrite MB IO_MB SEED: bandwidth of random 4 KiB overwrites of the first MB
overwrite() {
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size="$1"m --io_size="$2"m --iodepth=32 --rw=randwrite \
		--norandommap --randrepeat=0 --randseed="$3"
	kb_s
}

random() {
	local bw
	tiers optane $SMALL hdd "$SHELF_MB"
	bw=$(shelf_bw)
	shelves_up 320
	bar "random 4 KiB overwrites, fresh shelves, of $bw kB/s in order" $(($(overwrite 320 256 1) * 1000 / bw)) o/oo -900
	vol_status
	vol_down
	tiers_off
}

steady() {
	local bw level mb before user written got
	tiers optane $SMALL hdd "$SHELF_MB"
	bw=$(shelf_bw)
	for level in $LEVELS; do
		mb=$((SMALL + SHELF_MB * level / 100))
		shelves_up $mb
		overwrite $mb $((SHELF_MB / 2)) 1 > /dev/null
		before=$(drive_get slowd write_bytes)
		user=$((SHELF_MB / 4))
		got=$(overwrite $mb $user 2)
		written=$((($(drive_get slowd write_bytes) - before) / 1048576))
		figure "steady state, shelves $level % full: overwrites" "$got" kB/s
		figure "steady state, shelves $level % full: write amplification" $((written * 100 / user)) /100
		figure "steady state, shelves $level % full: bandwidth / (2 * amplification)" $((bw * 50 / (written * 100 / user))) kB/s
		vol_down
	done
	tiers_off
}

# ---- tails ----

hot_reads() {
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size=16m --iodepth=1 --rw=randread --norandommap --randrepeat=0 \
		--time_based --runtime="$1"
	p999_ns
}

tails() {
	local idle busy moved
	tiers optane 256 hdd 512
	vol_format --tier optane:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd
	vol_up stream_kb=0 age_s=1
	fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=1m --size=240m --iodepth=4 --rw=write --end_fsync=1
	sleep 20
	hot_reads 2 > /dev/null
	idle=$(hot_reads 1)
	moved=$(vol_get moved)
	# Nothing is read from the host from here on: it takes long in virtual time.
	from_ram dmsetup message vol 0 set janitor_low=200
	from_ram dmsetup message vol 0 set janitor_high=300
	# something new: it is a write that wakes the janitor
	from_ram dd if=/dev/zero of="$VOL" bs=64k seek=3856 count=1 oflag=direct status=none
	busy=$(hot_reads 1)
	moved=$(($(vol_get moved) - moved))
	figure "hit on the fast drive, idle, p99.9" "$idle" ns
	figure "hit on the fast drive, $moved blocks moved meanwhile, p99.9" "$busy" ns
	[ $moved -gt 4096 ] || die "the janitor moved only $moved blocks: $(vol_status)"
	[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
	bar "p99.9 of fast hits during moves, against idle" $((busy * 100 / idle)) % 200
	vol_down
	tiers_off
}

for part in $PARTS; do
	case $part in
	order)	in_order ;;
	random)	random ;;
	steady)	steady ;;
	tails)	tails ;;
	*)	die "no part called $part" ;;
	esac
done
bars_end
