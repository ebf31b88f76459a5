#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory per block, activation, replay of the journal, discard of a whole volume.
# bench: mode=vtime memory=3G timeout=600
# seeds: 1
# packages: fio
# shellcheck disable=SC2034,SC2001
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

PARTS=${PARTS:-memory activation spread replay discard}
REPLAY=${REPLAY:-100000}	# overwrites
FACTORS=${FACTORS:-1 4 16 64}	# of overwriting

in_ram fio dmsetup blkdiscard dd
PATH=$TERRACE_TREE/build/bench:$PATH in_ram serial hits
now() { date +%s%N; }
attr() { cat "/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname vol)/$1"; }

format() {
	vol_format --tier "optane:slots:atomic=$FAST" --tier "hdd:shelves:atomic=/dev/ram/tslow" "$@"
}

set_up() {
	mkram tfast 256
	mkram tslow 320
	FAST=/dev/ram/tfast
	VOL_DRIVES=(/dev/ram/tfast /dev/ram/tslow)
}

# ---- memory ----

# A fast tier of 4 GiB whose metadata are real and whose data go nowhere. What the
# bar is held against is what the kernel's allocator gave out, whole slabs, after
# what waits for a grace period is back; the volume's own count stands beside it and
# must say the same, but for slabs that are partly empty, before or after. Not in it: the journal's buffers and the open shelves' owner
# lists, whose number is fixed (they are there when the empty volume is).
slab() {	# bytes that slabs take; nothing of ours can be reclaimed by others
	echo $(($(awk '$1 == "SUnreclaim:" { print $2 }' /proc/meminfo) * 1024))
}

# which slabs grew most, for whoever reads a miss
slabs() { awk 'NR > 2 { print $1, $15 * $6 * 4096 }' /proc/slabinfo | sort; }

settle() {
	sync "$VOL"
	vol_message checkpoint
	sleep 12	# arrays on their way back by RCU, and a tick after that
}

memory_of() {	# WHAT REGIONS, after COMMAND... has run
	local what=$1 regions=$2 before after used counted
	shift 2
	dmc big "0 $((1024 * 2048)) linear /dev/ram/head 0
$((1024 * 2048)) $((3584 * 2048)) zero"
	FAST=/dev/mapper/big
	format --overcommit 16G
	vol_up stream_kb=0 age_s=5
	settle
	counted=$(attr memory)
	before=$(slab)
	slabs > /dev/shm/slabs
	"$@"
	settle
	after=$(slab)
	slabs | join - /dev/shm/slabs | awk '$2 > $3 { print $2 - $3, $1 }' | sort -rn | head -n 6 | sed 's/^/# slabs: /'
	counted=$(($(attr memory) - counted))
	used=$(vol_tier 0 used | cut -d/ -f1)
	after=$((after - before))
	echo "# $what: $used blocks in $regions regions: $after bytes of slabs more than the empty volume's, of which it counts $counted"
	bar "memory per fast block, in 1/100 byte, $what" $(((after - regions * 256) * 100 / used)) B/100 600
	bar "of it counted by the volume, $what" $((counted * 100 / after)) % -80
	bar "counted by the volume that is not there, $what" $((counted * 100 / after)) % 115
	buffers=$(cat /sys/module/dm_terrace/parameters/journal_buffers)
	vol_down
	rmmod dm_terrace	# with slabs that have room
	dmr big
}

fio_map() {
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --iodepth=8 --randrepeat=0 --randseed=1 "$@" > /dev/null
}

memory() {
	local buffers
	mkram head 1024
	dd if=/dev/zero of=/dev/ram/head bs=1M count=1024 oflag=direct status=none	# what it takes itself
	memory_of "full regions" 768 fio_map --rw=write --bs=256k --size=3g
	memory_of "half of each region, scattered" 768 fio_map --rw=randwrite --bs=8k --size=3g --number_ios=196608
	memory_of "64 blocks a region" 2048 from_ram hits "$VOL" write 65536 131072
	rmram head
	figure "journal buffers, fixed (module parameter journal_buffers)" $((buffers * 4096)) bytes
	FAST=/dev/ram/tfast
}

# ---- opening ----

activation() {
	local size
	for size in 1G 64T; do
		format --overcommit $size
		vol_up		# first use of the code
		dd if=/dev/zero of="$VOL" bs=1M count=8 seek=100 oflag=direct status=none
		from_ram dmsetup remove --noudevsync vol
		# by the kernel's own clock: dmsetup, and reading it, cost the
		# same for any target
		from_ram dmsetup create vol --noudevsync --table "$(vol_table)"
		bar "activation after a clean stop, $size virtual" "$(dmesg | sed -n 's/.*activated in \([0-9]*\) us$/\1/p' | tail -1)" us 100000
		dmsetup mknodes vol
		vol_down
	done
}

# A tier of 16 TiB with a block in use every 8 GiB, which is as many directories of its space as
# there can be: they are read before the first write is let in. The metadata lie on the
# nvme-tlc model; homes, since a block lies where its number says.
spread() {
	local at
	mkdrive tmeta nvme-tlc 49152 lbs=4096 powercut=off
	mkram head 64
	dmc tbig "0 $((64 * 2048)) linear /dev/ram/head 0
$((64 * 2048)) $(((16 << 31) - 64 * 2048)) zero"
	VOL_DRIVES=(/dev/mapper/tmeta /dev/mapper/tbig)
	vol_format --tier "nvme:slots:atomic=/dev/mapper/tmeta" --tier "csd:home:atomic=/dev/mapper/tbig"
	vol_up stream_kb=0
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size=$(($(sectors "$VOL") * 512)) --rw=write:$(((8 << 20) - 4))k \
		--io_size=8184k --end_fsync=1 --output=/dev/shm/o --eta=never
	# to their homes
	vol_message set janitor_low=0
	vol_message set janitor_high=1
	for ((at = 0; at < 60 && $(vol_tier 1 used | cut -d/ -f1) < 2040; at++)); do sleep 2; done
	[ "$(vol_tier 1 used | cut -d/ -f1)" -ge 2040 ] || die "not strewn: $(vol_status)"
	vol_down
	from_ram dmsetup create vol --noudevsync --table "$(vol_table)"
	bar "activation after a clean stop, 16 TiB in use everywhere" "$(dmesg | sed -n 's/.*activated in \([0-9]*\) us$/\1/p' | tail -1)" us 100000
	dmsetup mknodes vol
	vol_down
	dmr tbig
	rmram head
	rmdrive tmeta
}

# A journal full of overwrites, opened without having been closed: from a copy
# of the drive. Nothing is read from the host between the first write and the
# copy: that would take minutes of virtual time, and an idle checkpoint empties
# the journal.
replay() {
	local n said us
	format --journal 16M
	mkram copyf 256
	dd if=/dev/zero of=/dev/ram/copyf bs=1M count=256 oflag=direct status=none
	vol_up stream_kb=0 atomic=no:0
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size=64m --norandommap --randrepeat=0 --randseed=1 --rw=randwrite --iodepth=32 \
		--io_size=$((REPLAY * 4))k --end_fsync=1 --output=/dev/shm/o --eta=never
	from_ram dd if=/dev/ram/tfast of=/dev/ram/copyf bs=1M iflag=direct oflag=direct status=none
	vol_down
	dmc vol "$(vol_table | sed 's,/dev/ram/tfast,/dev/ram/copyf,')"
	said=$(dmesg | grep -o 'replayed [0-9]* records in .*' | tail -1)
	echo "# $said"
	n=$(awk '{ print $2 }' <<< "$said")
	[ "$n" -ge "$REPLAY" ] || die "the journal held $n of $REPLAY records"
	us=$(sed 's/.*(read \([0-9]*\), deal \([0-9]*\), apply \([0-9]*\) us).*/\1 + \2 + \3/' <<< "$said")
	bar "replay of an overwritten journal, one CPU" $((n * 1000 / (us))) rec/ms -1000
	bar "activation less the replay" $(($(dmesg | sed -n 's/.*activated in \([0-9]*\) us$/\1/p' | tail -1) - (us))) us 100000
	vol_down
	rmram copyf
}

# Replay against a serial one, oldest first, of the same journal: tools/serial.c,
# with the code that the module has. Once on the CPU alone, once with the loads of
# map pages from a drive, serial replay with the memory that newest first took.
# against WHAT REGIONS RECORDS CPUS bar|figure (of what is no overwriting)
against() {
	local said word what=$1
	local -A v
	said=$(from_ram serial "$2" "$3" "$4" /dev/mapper/pages) || die "serial: $said"
	for word in $said; do v[${word%%=*}]=${word#*=}; done
	figure "$what: serial, oldest first, on the CPU" $((v[serial] / v[records])) ns/rec
	figure "$what: newest first, 1 worker, on the CPU" $((v[newest] / v[records])) ns/rec
	figure "$what: newest first, 1 worker, against serial" $((v[serial] * 100 / v[newest])) %
	figure "$what: loads of pages, serial" "${v[serial_loads]}" loads
	figure "$what: loads of pages, newest first" "${v[all_loads]}" loads
	"$5" "$what: $4 workers against serial, on the CPU" $((v[serial] * 100 / v[all])) % -1000
	bar "$what: $4 workers against serial, with loads" $((v[serial_io] * 100 / v[all_io])) % -1000
}

against_serial() {
	local factor
	mkdrive pages nvme-tlc 256 lbs=4096 cache=off powercut=off
	for factor in $FACTORS; do
		against "each block written $factor times" $((300000 / 1024 / factor)) 300000 8 bar
	done
	against "5 blocks of each of 20000 regions" 20000 100000 8 figure
	rmdrive pages
}

discards() {
	local i began
	format --overcommit 1T
	vol_up stream_kb=0
	for ((i = 0; i < 100; i++)); do dd if=/dev/zero of="$VOL" bs=256k count=1 seek=$((i * 40000)) oflag=direct status=none; done
	sync "$VOL"
	from_ram blkdiscard -o 0 -l 4096 "$VOL"
	began=$(now)
	from_ram blkdiscard "$VOL"
	bar "discard of 1 TiB with 100 regions in it, acknowledged after" $((($(now) - began) / 1000000)) ms 1000
	vol_down
}

# As a database leaves it: half of 3 GiB in single blocks, all of it in memory, and
# a block here and there up to the end.
discard_used() {
	local began used
	mkram head 1024
	dmc big "0 $((1024 * 2048)) linear /dev/ram/head 0
$((1024 * 2048)) $((3584 * 2048)) zero"
	FAST=/dev/mapper/big
	format --overcommit 1T
	vol_up stream_kb=0
	fio_map --rw=randwrite --bs=4k --size=3g --number_ios=393216
	from_ram hits "$VOL" write $((256 << 20)) 4000
	sync "$VOL"
	vol_message checkpoint
	from_ram blkdiscard -o 0 -l 4096 "$VOL"
	used=$(vol_tier 0 used | cut -d/ -f1)
	began=$(now)
	from_ram blkdiscard "$VOL"
	bar "discard of 1 TiB with $used blocks in 4700 regions, acknowledged after" $((($(now) - began) / 1000000)) ms 1000
	vol_down
	dmr big
	rmram head
	FAST=/dev/ram/tfast
}

set_up
for part in ${PARTS//,/ }; do
	case $part in
	memory)		memory ;;
	activation)	activation ;;
	spread)		spread ;;
	replay)		replay; against_serial ;;
	discard)	discards; discard_used ;;
	*)		die "no part called $part" ;;
	esac
done
bars_end
