#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What orders cost: demotion against the disk's bandwidth, write amplification, payload, cold reads, drops.
# bench: mode=vtime memory=4G timeout=1200
# seeds: 7 for cold reads, of fio-jobs/overhead-packed.fio 6 and the depth; data: fio's own
# packages: fio
#
# In virtual time, with one CPU, on drive models. 160 MiB of fio's data that
# compress by half, in regions 0 to 39, go down by append with LZ4 and clusters
# of 4 KiB, come up as clean slots, and are dropped.
# shellcheck disable=SC2034,SC2119,SC2317
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/fio.bash"

REGIONS=${REGIONS:-40}
LEVEL=${LEVEL:-1}		# LZ4's acceleration
READS=${READS:-10000}
declare -A NS
PATH=$TERRACE_TREE/build:$PATH in_ram fio dmsetup orders pack-bench
load_drive

sweep() { from_ram orders /dev/terrace/vol sweep 0 "$REGIONS" "$@" > /dev/shm/swept || die "sweep $*: $(cat /dev/shm/swept)"; }
swept() { sed -nE "s/.*\b$1=([0-9]+).*/\1/p" /dev/shm/swept; }

MB=$((REGIONS * 4))
on_vol() { fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --size="$MB"m "$@"; }
# lines of fio's: half of each block is random, half zeros
fill() {
	on_vol --bs=64k --iodepth=4 --rw=write --end_fsync=1 --refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096
}
# tiers FAST SLOW [CLASS]: a volume on these two, filled
tiers() {
	VOL_DRIVES=("$1" "$2")
	vol_format --tier "optane:slots:atomic=$1" --tier "${3:-hdd:shelves:atomic}=$2"
	vol_up stream_kb=0 cache_mb=0
	fill
}
# net REGIONS: their payload, of all that the shelves have in use
net() {
	local used
	used=$(vol_tier 1 used)
	echo $(($1 * 1024 * 100 / ${used%/*}))
}
# net_kept REGIONS: the same of what a drive must have for it: of each block the share of the reserve that a full drive has
net_kept() {
	local used reserve
	used=$(vol_tier 1 used)
	reserve=$(terracectl dump super "${VOL_DRIVES[@]}" | tr ' ' '\n' | sed -n 's/^reserve_blocks=//p' | sort -n | tail -1)
	[ "$reserve" ] || die "no reserve in the superblock"
	echo $(($1 * 1024 * 100 * (${used#*/} - reserve) / ${used#*/} / ${used%/*}))
}

# ---- down and up again, on a disk ----

# demote WHAT HOW...: all goes down; its share of the drive's bandwidth is a bar or a figure, as HOW says. In virtual time
# there is one CPU: a disk of half the bandwidth is to it what a whole one is to two of them.
demote() {
	local before
	before=$(drive_get slowd write_bytes)
	sweep append tier_down=1 codec=lz4 level="$LEVEL"
	check_eq "blocks that went down" "$(swept down)" $((REGIONS * 1024))
	packed=$(swept packed_bytes) ns=$(swept ns)
	written=$(($(drive_get slowd write_bytes) - before))
	"$2" "append with LZ4, $1: written, of the drive's $bw kB/s in order" $((packed * 1000 / (ns / 1000000) / bw)) o/oo "${@:3}"
	figure "… payload" $((REGIONS * 4194304 / (ns / 1000000))) kB/s
}
# what the last demotion took of the CPU and of the drive
taken() {
	figure "… CPU to compress a block" $(($(swept cpu_ns) / (REGIONS * 1024))) ns
	bar "append: bytes the disk wrote, of the packs' with header and padding" $((written * 1000 / packed)) o/oo 1010
	bar "payload of packs, data that compress by half" $((REGIONS * 4194304 * 100 / packed)) /100 -190
	figure "… of all that the shelves have in use" "$(net "$REGIONS")" /100
	figure "… and of the room that is kept for cleaning" "$(net_kept "$REGIONS")" /100
}

# slow_drive PRESET [KEY=VALUE...]: a new one, and its bandwidth in order
slow_drive() {
	local turn
	mkdrive slowd "$1" $((REGIONS * 4 > 256 ? 1024 : 512)) lbs=4096 powercut=off cache=off "${@:2}"
	for turn in first second; do	# twice: the model's RAM is allocated by the first
		fio_json --name=x --filename=/dev/mapper/slowd --ioengine=io_uring --direct=1 --bs=1m --size=256m --iodepth=4 --rw=write
	done
	bw=$(kb_s)
}

disk() {
	local reads
	mkdrive fastd optane 320 lbs=4096 powercut=off cache=off
	slow_drive hdd ncq=32
	tiers /dev/mapper/fastd /dev/mapper/slowd
	demote "1 CPU, a whole disk" figure
	reads=$(drive_get slowd reads)
	on_vol --bs=4k --iodepth=1 --rw=randread --number_ios=1000 --randrepeat=0 --randseed=7 "${LATENCY[@]}"
	reads=$(($(drive_get slowd reads) - reads))
	tail_rows "cold reads from a disk" terrace
	bar "cold 4 KiB reads, index known: disk reads of 1000" "$reads" reads 1000
	sweep raise tier_up=0 up=all
	check_eq "blocks that came up" "$(swept up)" $((REGIONS * 1024))
	figure "raise, payload" $((REGIONS * 4194304 / ($(swept ns) / 1000000))) kB/s
	sweep drop
	check_eq "clean slots dropped" "$(swept dropped)" $((REGIONS * 1024))
	bar "clean slots dropped" $((REGIONS * 1024 * 1000000 / ($(swept ns) / 1000))) /s -1000000
	vol_down
	dmr slowd
	slow_drive hdd ncq=32 bw=$((bw * 500))
	tiers /dev/mapper/fastd /dev/mapper/slowd
	demote "2 CPUs (1, half a disk)" bar -900
	taken
	vol_down
	rmdrive fastd
	rmdrive slowd
}

# ---- down, on other models ----

# down_on NAME CLASS PRESET [KEY=VALUE...]: of a drive that has, as it is here, half the bandwidth. What two CPUs do not
# compress for a fast one at LZ4's usual acceleration, which is a figure then, they do at eight times that.
down_on() {
	local LEVEL
	slow_drive "${@:3}"
	for LEVEL in 1 8; do
		tiers /dev/mapper/fastd /dev/mapper/slowd "$2"
		if [ $LEVEL = 8 ] || [ $((bw * 2)) -le 200000 ]; then
			demote "2 CPUs (1, half a drive), $1, acceleration $LEVEL" bar -900
		else
			demote "2 CPUs (1, half a drive), $1, acceleration $LEVEL" figure
			figure "… of what the CPU compresses for no drive" $((packed * 1000 / (ns / 1000000) / unbound)) o/oo
		fi
		vol_down
	done
	rmdrive slowd
}
models() {
	local REGIONS=120 MB=480 LEVEL=1	# the beginning and the end, when only one of CPU and drive is busy, are a twentieth
	mkdrive fastd optane 960 lbs=4096 powercut=off cache=off
	# what bounds them all: the CPU, on a drive that takes no time
	slow_drive ram
	tiers /dev/mapper/fastd /dev/mapper/slowd
	sweep append tier_down=1 codec=lz4
	unbound=$(($(swept packed_bytes) / ($(swept ns) / 1000000)))
	figure "append with LZ4, 1 CPU, a drive that takes no time (the bound of CPU): written" $unbound kB/s
	vol_down
	rmdrive slowd
	down_on "hdd-7200" hdd:shelves:atomic hdd-7200 ncq=32 bw=125000000
	# a buffer of SLC that is always full: what comes waits for as much to be folded
	down_on "qlc behind its SLC buffer" qlc:shelves:atomic:align-16K qlc slc=1m fold_bw=50000000
	down_on "net" net:shelves:atomic net bw=125000000
	rmdrive fastd
}

# ---- what a cold read costs the CPU ----

# Above a RAM disk's read, as the peers are measured; cold.sh has the same bar above a read of a drive, whose reader sleeps.

# cold DEPTH DEVICE...: fio-jobs/overhead-packed.fio on each: NS[raw-DEPTH], NS[linear-DEPTH], NS[terrace-DEPTH]
cold() {
	local name IOS=$READS depth=$1
	for name in raw linear terrace; do
		overhead $name-"$depth" packed "$2" "$MB"m $((6 + depth)) "$depth"
		tail_rows "cold reads at depth $depth" ${name/linear/dm-linear}
		shift
	done
}
cpu() {
	local depth
	mkram fast 320
	mkram slow 512
	dd if=/dev/zero of=/dev/ram/slow bs=1M count=512 oflag=direct status=none
	tiers /dev/ram/fast /dev/ram/slow
	sweep append tier_down=1 codec=lz4
	# dm-linear on the same disk: the reader, io_uring, device-mapper, and the disk
	dmc linear "0 $(blockdev --getsz /dev/ram/slow) linear /dev/ram/slow 0"
	for depth in 1 32; do cold $depth /dev/ram/slow /dev/mapper/linear "$VOL"; done
	dmr linear
	bar "cold 4 KiB read, LZ4 4 KiB: CPU above the RAM disk's read" $((NS[terrace-1] - NS[raw-1])) ns 12000
	figure "… above the same read through dm-linear" $((NS[terrace-1] - NS[linear-1])) ns
	figure "cold 4 KiB read, 32 at a time: CPU above the RAM disk's read" $((NS[terrace-32] - NS[raw-32])) ns
	vol_down
	rmram fast
	rmram slow
}

# ---- a cold read whose index, or whole map, has left memory: 64 TiB ----

# jobs ARG...: in 64 places, a TiB apart
jobs() { fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --numjobs=64 --thread --offset_increment=1t "$@"; }
# device_reads WHAT FAST_BAR CMD...: of both drives, for 64 cold reads
device_reads() {
	local fast slow
	fast=$(drive_get fastd reads) slow=$(drive_get slowd reads)
	"${@:3}"
	fast=$(($(drive_get fastd reads) - fast)) slow=$(($(drive_get slowd reads) - slow))
	bar "64 TiB, cold reads, $1: slow drive's reads of 64" "$slow" reads 64
	if [ "$2" ]; then bar "… fast drive's" "$fast" reads "$2"; else figure "… fast drive's" "$fast" reads; fi
}
evicted() {
	local k fast
	mkdrive fastd ram 1024 lbs=4096 powercut=off cache=off
	mkdrive slowd ram 2048 lbs=4096 powercut=off cache=off
	VOL_DRIVES=(/dev/mapper/fastd /dev/mapper/slowd)
	vol_format --tier "optane:slots:atomic=/dev/mapper/fastd" --tier "hdd:shelves:atomic=/dev/mapper/slowd" --overcommit 64T
	vol_up stream_kb=0 cache_mb=0
	jobs --bs=64k --size=12m --rw=write --refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096
	for ((k = 0; k < 64; k++)); do
		from_ram orders /dev/terrace/vol sweep $((k << 18)) 3 append tier_down=1 codec=lz4 > /dev/shm/swept || die "sweep: $(cat /dev/shm/swept)"
	done
	from_ram dmsetup message vol 0 checkpoint
	echo "# evicted: 192 regions with a pack each, three at every TiB of 64; each of 64 reads asks for another pack"
	device_reads "index known" 0 jobs --bs=4k --size=4k --rw=read
	from_ram dmsetup message vol 0 evict_indexes
	device_reads "index evicted" 64 jobs --bs=4k --size=4k --rw=read
	from_ram dmsetup message vol 0 evict_indexes
	device_reads "index evicted, another block" 64 jobs --bs=4k --size=4k --offset=5m --rw=read
	from_ram dmsetup message vol 0 evict_indexes
	from_ram dmsetup message vol 0 evict
	device_reads "index and map evicted" "" jobs --bs=4k --size=4k --rw=read
	# Less memory than the indexes need: those that were not read for the longest time are gone.
	jobs --bs=4k --size=4k --rw=read
	jobs --bs=4k --size=4k --offset=5m --rw=read
	jobs --bs=4k --size=4k --offset=9m --rw=read
	figure "… all indexes and regions in memory" "$(vol_get memory)" bytes
	from_ram dmsetup message vol 0 set memory_mb=1
	sleep 1
	fast=$(drive_get fastd reads)
	device_reads "memory_mb=1, not read for long" "" jobs --bs=4k --size=4k --rw=read
	[ $(($(drive_get fastd reads) - fast)) -gt 0 ] || die "a memory limit of 1 MiB evicted no index: $(vol_get memory) bytes in memory"
	figure "… in memory" "$(vol_get memory)" bytes
	vol_down
	rmdrive fastd
	rmdrive slowd
}

# ---- pages of databases ----

# One page in ten is written anew, to the fast tier, and goes down as a further pack of
# its region: what the shelves have in use then has garbage in it, and all else.
pages() {
	local file name codec regions k how
	[ -e "$TERRACE_TREE/build/bench/pages/sqlite" ] || die "no build/bench/pages: make bench-pages"
	cp -r "$TERRACE_TREE/build/bench/pages" /dev/shm/
	vol_ram 320 512
	for file in /dev/shm/pages/*; do
		name=${file##*/}
		regions=$(($(stat -c %s "$file") / 4194304))
		for codec in "lz4 shift=0" "lz4 shift=0 level=8" "zstd shift=4"; do
			read -ra how <<< "codec=$codec"
			vol_format
			vol_up stream_kb=0 cache_mb=0
			dd if="$file" of="$VOL" bs=1M count=$((regions * 4)) oflag=direct status=none
			REGIONS=$regions sweep append tier_down=1 "${how[@]}"
			figure "pages of $name, $((regions * 4)) MiB, ${codec/ shift=/, clusters 2^}: payload" \
				$((regions * 4194304 * 100 / $(swept packed_bytes))) /100
			figure "… of all that the shelves have in use" "$(net "$regions")" /100
			figure "… and of the room that is kept for cleaning" "$(net_kept "$regions")" /100
			for ((k = 0; k < regions; k++)); do
				dd if="$file" of="$VOL" bs=4k skip=$((k * 1024 + 300)) seek=$((k * 1024 + 300)) count=102 oflag=direct status=none
			done
			REGIONS=$regions sweep append tier_down=1 "${how[@]}"
			figure "… when a tenth has been overwritten" "$(net "$regions")" /100
			figure "… and of the room that is kept for cleaning" "$(net_kept "$regions")" /100
			cmp -n $((regions << 22)) "$file" "$VOL" || die "$file: other data"
			vol_down
		done
	done
	rmram fast
	rmram slow
}

# ---- early termination: tests/bench/pack.c, which uses the same core/ code ----

early() {
	local said
	said=$(from_ram pack-bench 1 | sed -n '/^lz4, clusters of 64/,/^$/p')
	# per_mille LINE FIELD: of the whole cluster's bytes (3) or ns (5)
	part() { awk -v line="$1" -v at="$2" '$1 == "whole" { w = $(at) } $1 == line { print int($(at) * 1000 / w + 0.5) }' <<< "$said"; }
	bar "first block of a 64 KiB LZ4 cluster: bytes read, of the whole's" "$(part first 3)" o/oo 200
	bar "… CRC, decompression" "$(part first 5)" o/oo 200
	bar "average over Zipf 0.99 positions: bytes" "$(part Zipf 3)" o/oo 999
	bar "… CRC, decompression" "$(part Zipf 5)" o/oo 999
	bar "last block: bytes" "$(part last 3)" o/oo 1000
	bar "… CRC, decompression (one more call: a per cent is measuring)" "$(part last 5)" o/oo 1010
}

# ---- early termination, as the module does it ----

# What one call of a function takes, in ns: medians are of no use, in virtual time all are alike
T=/sys/kernel/tracing
spans() { # FUNCTION: of each call, from probe to probe
	awk -v name="$1" '{ at = ""; for (k = 1; k <= NF; k++) if ($k ~ /^[0-9]+\.[0-9]+:$/) at = substr($k, 1, length($k) - 1) }
		$0 ~ " " name "_in:" { began = at } $0 ~ " " name "_out:" && began { n++; sum += at - began; began = 0 }
		END { print n ? int(sum * 1e9 / n) : "" }' "$T/trace"
}

# at POSITION [BLOCKS]: bytes of the drive per read and ns of CRC and decoding of 256 clusters
at() {
	local before after skip=
	before=$(drive_get slowd read_bytes)
	echo > $T/trace
	[ "${2:-1}" = 16 ] || skip=:$(((16 - ${2:-1}) * 4))k
	fio_json --name=x --filename="$VOL" --ioengine=psync --direct=1 --bs=$((${2:-1} * 4))k --offset=$((4096 + $1 * 4))k --size=16m \
		--io_size=$((256 * ${2:-1} * 4))k --rw=read$skip
	after=$(drive_get slowd read_bytes)
	echo $(((after - before) / 256)) "$(($(spans decode) - $(spans other)))"
}

probes() {
	mountpoint -q $T || mount -t tracefs t $T
	[ -d /sys/module/dm_terrace ] || load_terrace
	echo 16384 > $T/buffer_size_kb
	# as much is between probes that have nothing between them
	printf '%s\n' 'p:decode_in dm_terrace:tr_pack_decode' 'r:decode_out dm_terrace:tr_pack_decode' 'p:other_in dm_terrace:tr_pack_head' \
		'r:other_out dm_terrace:tr_pack_head' > $T/kprobe_events
}

# of 64 KiB, on a drive that reads sectors of 512 bytes
clusters() {
	local codec whole_b whole_ns b ns k zipf_b zipf_ns sector
	probes
	mkdrive fastd optane 64 lbs=4096 powercut=off cache=off
	for codec in lz4 zstd; do
		mkdrive slowd qlc 512 lbs=512 powercut=off cache=off
		VOL_DRIVES=(/dev/mapper/fastd /dev/mapper/slowd)
		vol_format
		vol_up stream_kb=0 cache_mb=0 ahead_kb=0
		REGIONS=8 MB=32 fill
		REGIONS=8 sweep append tier_down=1 codec=$codec shift=4
		on_vol --bs=64k --rw=read --size=32m		# indexes
		echo 1 > $T/events/kprobes/enable
		read -r whole_b whole_ns <<< "$(at 0 16)"
		figure "a whole 64 KiB cluster, $codec: bytes of the drive" "$whole_b" bytes
		figure "… CRC and decoding" "$whole_ns" ns
		: > /dev/shm/positions
		for ((k = 0; k < 16; k++)); do
			read -r b ns <<< "$(at $k)"
			echo $k "$b" "$ns" >> /dev/shm/positions
		done
		echo 0 > $T/events/kprobes/enable
		sed "s/^/# $codec, position, bytes, ns: /" /dev/shm/positions
		part_of() { awk -v k="$1" -v at="$2" -v whole="$3" '$1 == k { print int($(at) * 1000 / whole + 0.5) }' /dev/shm/positions; }
		zipf_of() { awk -v at="$1" -v whole="$2" '{ w = 1 / ($1 + 1) ^ 0.99; n += w; sum += w * $(at) } END { print int(sum * 1000 / n / whole + 0.5) }' /dev/shm/positions; }
		bar "first block of a 64 KiB $codec cluster, through the module: bytes, of the whole's" "$(part_of 0 2 "$whole_b")" o/oo 200
		bar "… CRC and decoding" "$(part_of 0 3 "$whole_ns")" o/oo 200
		bar "average over Zipf 0.99 positions, $codec, through the module: bytes" "$(zipf_of 2 "$whole_b")" o/oo 999
		bar "… CRC and decoding" "$(zipf_of 3 "$whole_ns")" o/oo 999
		bar "last block, $codec, through the module: bytes" "$(part_of 15 2 "$whole_b")" o/oo 1000
		bar "… CRC and decoding" "$(part_of 15 3 "$whole_ns")" o/oo 1010
		vol_down
		rmdrive slowd
	done
	rmdrive fastd
	echo > $T/kprobe_events
}

# ---- both techniques switched off: pairs for the table of ablations, called SWITCH=1: WHAT and SWITCH=0: WHAT ----

all_data() { dd if="$VOL" bs=1M count="$MB" iflag=direct status=none | sha256sum; }
# A tenth of each of 8 regions is promoted, and goes down again.
no_clean_slots() { # 1|0
	local REGIONS=8 MB=32 sum before read tenth
	tiers /dev/mapper/fastd /dev/mapper/slowd
	from_ram dmsetup message vol 0 set clean_slots="$1"
	sweep append tier_down=1 codec=lz4
	sum=$(all_data)
	sweep raise tier_up=0 up=0-101
	tenth=$(swept up)
	check_eq "blocks that came up" "$tenth" $((REGIONS * 102))
	check_eq "what they read as" "$(all_data)" "$sum"
	before=$(drive_get slowd write_bytes) read=$(drive_get fastd read_bytes)
	sweep append tier_down=1 codec=lz4
	from_ram dmsetup message vol 0 commit
	check_eq "blocks that went down again" $(($(swept dropped) + $(swept down))) "$tenth"
	figure "clean_slots=$1: $tenth promoted blocks go down again: written to the disk" $((($(drive_get slowd write_bytes) - before) / 1024)) KiB
	figure "clean_slots=$1: read from the fast drive" $((($(drive_get fastd read_bytes) - read) / 1024)) KiB
	before=$(vol_tier 1 used)
	figure "clean_slots=$1: then in use on the shelves" "${before%/*}" blocks
	check_eq "what they read as when they are down" "$(all_data)" "$sum"
	vol_down
}
# Clusters of 64 KiB, LZ4, on a drive that reads sectors of 512 bytes.
no_early_termination() { # 1|0
	local REGIONS=8 MB=32 sum before b ns
	tiers /dev/mapper/fastd /dev/mapper/slowd
	from_ram dmsetup message vol 0 set ahead_kb=0
	sum=$(all_data)
	sweep append tier_down=1 codec=lz4 shift=4
	from_ram dmsetup message vol 0 set early_termination="$1"
	check_eq "what is packed reads as" "$(all_data)" "$sum"		# and the indexes are in memory
	before=$(drive_get slowd read_bytes)
	echo 1 > $T/events/kprobes/enable
	echo > $T/trace
	on_vol --bs=4k --iodepth=1 --rw=randread --number_ios=1000 --randrepeat=0 --randseed=7
	ns=$(($(spans decode) - $(spans other)))
	echo 0 > $T/events/kprobes/enable
	b=$((($(drive_get slowd read_bytes) - before) / 1000))
	figure "early_termination=$1: a block anywhere in clusters of 64 KiB: bytes of the drive" "$b" bytes
	figure "early_termination=$1: CRC and decoding of it" "$ns" ns
	figure "early_termination=$1: reading it" "$(awk '/"job_runtime"/ { gsub(/[^0-9]/, ""); print int($0); exit }' /dev/shm/o.json)" us
	echo 1 > $T/events/kprobes/enable
	read -r b ns <<< "$(at 0)"
	echo 0 > $T/events/kprobes/enable
	figure "early_termination=$1: the first block of a cluster: bytes of the drive" "$b" bytes
	figure "early_termination=$1: CRC and decoding of the first" "$ns" ns
	vol_down
}
switches() {
	local on
	mkdrive fastd optane 64 lbs=4096 powercut=off cache=off
	mkdrive slowd hdd 512 lbs=4096 powercut=off cache=off ncq=32
	for on in 1 0; do no_clean_slots $on; done
	rmdrive slowd
	probes
	mkdrive slowd qlc 512 lbs=512 powercut=off cache=off
	for on in 1 0; do no_early_termination $on; done
	echo > $T/kprobe_events
	rmdrive slowd
	rmdrive fastd
}

PARTS=${PARTS:-disk models cpu evicted pages early clusters switches}
for part in ${PARTS//,/ }; do $part; done
bars_end
