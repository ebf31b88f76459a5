#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A write with FUA and no flush behind it survives a power cut; fsync flushes just the drives that have a volatile cache.
# vm: mode=functional cpus=1 memory=3G timeout=600 build=oracle
#
# On a block device the kernel follows every synchronous write by a flush. A
# file on xfs gives FUA alone: overwriting written extents with O_DIRECT and
# RWF_DSYNC. The file is first discarded below the filesystem, so that an
# overwrite makes a new mapping, and the next one hits it before its commit.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

need xfs
need_cmd mkfs.xfs filefrag
SEED=${SEED:-1}
CUTS=${CUTS:-2}
RANDOM=$SEED
M=/dev/shm/mnt
FILE=$M/file
MB=24
FILL=640	# MiB, behind the log of a filesystem of 1 GiB in two halves
mkdir -p $M

fuas() { echo $(($(drive_get fast fuas) + $(drive_get slow fuas))); }
flushes() { echo $(($(drive_get fast flushes) + $(drive_get slow flushes))); }

# The file's extents stay written ones, of which the volume knows nothing any more.
lay() {
	local first blocks
	dd if=/dev/zero of=$FILE bs=1M count="$1" oflag=direct conv=fsync status=none	# fsync: nothing but times is left to log
	sync
	while read -r first blocks; do
		blkdiscard -f -o $((first * 4096)) -l $((blocks * 4096)) "$VOL"
	done <<< "$(filefrag -b4096 -v $FILE | awk '$1 ~ /^[0-9]+:$/ { sub(/\.\./, "", $4); sub(/:/, "", $6); print $4, $6 }')"
}

# What the volume is asked for: the flags of each bio.
TRACE=/sys/kernel/tracing
watch() {
	local number
	number=$(dmsetup info -c --noheadings --separator : -o major,minor vol)
	mountpoint -q $TRACE || mount -t tracefs none $TRACE
	: > $TRACE/trace
	echo "dev == $((${number%:*} << 20 | ${number#*:}))" > $TRACE/events/block/block_bio_queue/filter
	echo 1 > $TRACE/events/block/block_bio_queue/enable
}
watched() {
	echo 0 > $TRACE/events/block/block_bio_queue/enable
	sed -n 's/.*block_bio_queue: [0-9,]* \([A-Z]*\) .*/\1/p' $TRACE/trace | tr '\n' ' '
}

# A plain write makes a mapping that no commit has seen, FUA alone goes to the same block, and the power fails.
straight() {
	local cut asked
	vol_drives 64 512 survive=0 tear=0
	vol_format
	vol_up commit_ms=60000
	mkfs.xfs -q -f -s size=4096 "$VOL"
	mount -t xfs "$VOL" $M
	lay 8
	for ((cut = 0; cut < 3; cut++)); do
		vol_message commit
		head -c 8192 /dev/urandom > /dev/shm/new
		watch
		dd if=/dev/shm/new of=$FILE bs=4k count=1 seek=$((cut * 100)) oflag=direct conv=notrunc status=none
		dd if=/dev/shm/new of=$FILE bs=4k count=1 skip=1 seek=$((cut * 100)) oflag=direct,dsync conv=notrunc status=none
		drive_cut fast
		asked=$(watched)
		[ "$asked" = "WS WFS " ] || die "the filesystem did not write and then write with FUA alone, but: $asked"
		umount $M || umount -l $M
		dmr vol
		drive_revive fast
		vol_up commit_ms=60000
		mount -t xfs "$VOL" $M
		cmp -n 4096 -i $((cut * 100 * 4096)):4096 $FILE /dev/shm/new || die "a FUA write to a mapping that was not durable is lost"
	done
	umount $M
	vol_down
	rmdrive fast
	rmdrive slow
}

# A drive takes writes and does not flush. After some rounds its records become durable all the same,
# perhaps those of the first half of a FUA write whose second half is under way.
unflushing() {
	local writer tries data
	vol_drives 64 512 survive=0 tear=0
	vol_format
	read -ra data <<< "$(vol_layout fast data)"
	klog_expect 'flush of tier 1 failed'
	klog_allow 'drive (fast|slow)'
	vol_up commit_ms=60000
	mkfs.xfs -q -f -s size=4096 "$VOL"
	mount -t xfs "$VOL" $M
	lay 8
	head -c 8192 /dev/urandom > /dev/shm/new
	dd if=/dev/shm/new of=$FILE bs=4k count=1 seek=101 oflag=direct conv=notrunc status=none
	sync "$VOL"
	vol_message set avoid_tiers=1	# new blocks go to the slow drive
	drive slow error add flush 0 0
	dd if=/dev/shm/new of=$FILE bs=4k count=1 seek=200 oflag=direct conv=notrunc status=none
	for tries in 1 2 3; do
		if sync "$VOL" 2> /dev/null; then die "flush $tries of a drive that does not flush went well"; fi
	done
	drive fast error add write "${data[@]}" count=1 delay=4s status=ok
	dd if=/dev/shm/new of=$FILE bs=8k count=1 seek=50 oflag=direct,dsync conv=notrunc status=none 2> /dev/null & writer=$!
	sleep 1.5
	vol_message commit || true
	if wait $writer; then die "a FUA write ended well, half of it in the cache of a drive that does not flush"; fi
	drive slow error clear
	drive fast error clear
	sync "$VOL" || die "a drive that flushes again was not flushed"
	umount $M
	vol_down
	rmdrive fast
	rmdrive slow
}

# Writes what does not compress until all room is taken, and waits there.
filling() { while cat /dev/shm/data; do :; done | dd of="$VOL" bs=1M seek=$FILL count=350 iflag=fullblock oflag=direct status=none; }
fill() {
	start filling 2> /dev/shm/filled
	filler=$JOB
	vol_waits "$filler" 3 "the volume does not get full" /dev/shm/filled
}

# FUA alone to 16 blocks that wait for room, in one turn of two the second half of them only: the first goes to mappings that no
# commit has seen. Room comes, the write ends, and the power fails.
parked() {
	local cut first asked writer filler
	local up=(commit_ms=60000 stream_kb=0 queue_if_full=1 janitor_high=1000)	# nobody else commits
	echo 720000 > /proc/sys/fs/xfs/xfssyncd_centisecs	# its log is not written by itself
	vol_drives 64 256 survive=0 tear=0
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1G
	vol_up "${up[@]}"
	mkfs.xfs -q -f -s size=4096 -d agcount=2 "$VOL"	# nothing of its own is where room is taken
	mount -t xfs "$VOL" $M
	lay 8
	sync
	first=$(filefrag -b4096 -v $FILE | awk '$1 == "0:" { sub(/\.\./, "", $4); print $4 }')
	dd if=/dev/urandom of=/dev/shm/data bs=1M count=16 status=none
	for ((cut = 0; cut < 3; cut++)); do
		vol_message commit
		head -c 65536 /dev/urandom > /dev/shm/new
		[ $((cut % 2)) = 0 ] || dd if=/dev/zero of=$FILE bs=32k count=1 seek=$((cut * 20)) oflag=direct conv=notrunc status=none
		fill
		watch
		start dd if=/dev/shm/new of=$FILE bs=64k count=1 seek=$((cut * 10)) oflag=direct,dsync conv=notrunc status=none
		writer=$JOB
		sleep 2
		kill -0 "$writer" 2> /dev/null || die "the FUA write did not wait for room"
		kill -KILL -- "-$filler"	# who goes on filling commits for more room
		blkdiscard -f -o $((FILL << 20)) -l $((8 << 20)) "$VOL"
		wait "$writer" || die "the FUA write that waited failed"
		drive_cut fast
		asked=" $(watched)"
		[[ $asked = *" WFS "* && $asked != *" F"* ]] || die "the filesystem did not write with FUA alone, but: $asked"
		kill_all "$filler"
		umount $M 2> /dev/null || umount -l $M
		dmr vol
		drive_revive fast
		vol_check > /dev/null
		vol_up "${up[@]}"
		cmp -n 65536 -i 0:$(((first + cut * 160) * 4096)) /dev/shm/new "$VOL" || die "a FUA write that has waited for room is lost"
		blkdiscard -f -o $((FILL << 20)) -l $((350 << 20)) "$VOL"
		mount -t xfs "$VOL" $M
	done
	umount $M
	vol_down
	rmdrive fast
	rmdrive slow
}

# try DRIVE-PARAMS FORMAT-WORD
try() {
	local cut status
	# shellcheck disable=SC2086 # a list
	vol_drives 64 512 $1
	vol_format --tier "optane:slots:$2=${VOL_DRIVES[0]}" --tier "hdd:shelves:$2=${VOL_DRIVES[1]}"
	vol_up commit_ms=60000
	mkfs.xfs -q -f -s size=4096 "$VOL"
	for ((cut = 0; cut < CUTS; cut++)); do
		mount -t xfs "$VOL" $M
		# shellcheck disable=SC2015
		[ ! -e $FILE ] || rm $FILE
		lay $MB
		rm -f "$LEDGER" "$LEDGER.log"
		oracle create --ledger "$LEDGER" --blocks $((MB * 256)) --seed "$SEED"
		local before_fua before_flush
		before_fua=$(fuas) before_flush=$(flushes)
		drive fast arm write $((RANDOM % 300 + 20))
		status=0
		oracle run --ledger "$LEDGER" --device "$FILE" --seed "$RANDOM" --ops 250 --depth 4 --max-kb 32 --hot 60 --overlap 0 \
			--weights write=10,fua=10,read=5 > /dev/null || status=$?
		[ "$status" = 0 ] || [ "$status" = 3 ] || die "the oracle says $status"
		drive_cut fast
		echo "cut $cut: $(($(fuas) - before_fua)) FUA writes and $(($(flushes) - before_flush)) flushes reached the drives"
		umount $M || umount -l $M
		dmr vol
		drive_revive fast
		drive fast disarm
		vol_check > /dev/null
		vol_up commit_ms=60000
		mount -t xfs "$VOL" $M
		oracle verify --ledger "$LEDGER" --device $FILE --crash || { cp "$LEDGER" "$LEDGER.log" "$OUT/"; die "a FUA write is lost (cut $cut)"; }
		umount $M
	done
	vol_down
	rmdrive fast
	rmdrive slow
}

# One overwrite in place and an fsync; how many flushes the fast drive got by it.
write_cache() { echo "$1" > "/sys/block/$(dmsetup info -c --noheadings -o blkdevname fast)/queue/write_cache"; }
flushes_of() {
	local before
	before=$(drive_get fast flushes)
	"$@"
	echo $(($(drive_get fast flushes) - before))
}
overwrite() { dd if=/dev/shm/new of="$VOL" bs=4k count=1 seek=7 oflag=direct conv=notrunc,fsync status=none; }

# The mark that a tier was written must outlive a time in which its drive had no
# volatile cache, or the first fsync after it would leave writes in the cache.
caches() {
	vol_drives 64 512 survive=0 tear=0
	vol_format
	vol_up commit_ms=60000
	dd if=/dev/zero of="$VOL" bs=4k count=16 oflag=direct conv=fsync status=none
	head -c 4096 /dev/urandom > /dev/shm/new
	[ "$(flushes_of overwrite)" -ge 1 ] || die "an fsync did not reach the drive's cache"
	[ "$(flushes_of sync "$VOL")" = 0 ] || die "an fsync with nothing to do made a flush"
	write_cache "write through"
	[ "$(flushes_of overwrite)" = 0 ] || die "a drive without a volatile cache was flushed"
	write_cache "write back"
	[ "$(flushes_of sync "$VOL")" -ge 1 ] || die "what was written before the cache was switched on stays in it"
	drive_cut fast
	dmr vol
	drive_revive fast
	vol_up
	cmp -n 4096 -i 28672:0 "$VOL" /dev/shm/new || die "an overwrite is lost"
	vol_down
	rmdrive fast
	rmdrive slow
}

straight
pass "a mapping that is not durable"
parked
pass "a write that waits for room"
unflushing
pass "a drive that does not flush"
caches
pass "caches that come and go"
try "survive=0 tear=0" atomic
pass "in place"
try "atom=512 tear=50" noatomic
pass "out of place"
