#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Filesystems of blocks of 1 KiB: none can lie on a volume, whose sectors are 4 KiB; in an image on it they are nobody's files, and of their trims only whole blocks go.
# vm: mode=functional memory=3G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs
need loop
INNER=/dev/shm/inner
mkdir -p $INNER
small() {
	if [ "$1" = ext4 ]; then
		mkfs.ext4 -q -F -b 1024 -E nodiscard,lazy_itable_init=0 "$2"
	else
		mkfs.xfs -qfK -b size=1024 "$2"
	fi
}
inner() { python3 "$TERRACE_TREE/tests/vm/tables.py" $INNER/db "$@"; }
sums() { (cd $INNER/db && md5sum odd 000002.ldb 000003.ldb); }
# of the blocks that the image has, so many are mapped
mapped() {
	sync
	vol_message commit
	where --state /dev/terrace/vol /dev/shm/image | cut -d' ' -f1
}
head_of() { dd if="$VOL" bs=1M count=4 iflag=direct status=none | md5sum; }

vol_ram 256 768
vol_format
vol_up stream_kb=0

# ---- on the volume itself: neither made, nor mounted when it comes from elsewhere with all its bytes ----
dd if=/dev/urandom of="$VOL" bs=1M count=4 oflag=direct status=none
before=$(head_of)
check_eq "a sector of the volume" "$(blockdev --getss "$VOL")" 4096
for fs in ext4 xfs; do
	expect_fail 'block ?size' small $fs "$VOL"
	check_eq "the volume after mkfs.$fs" "$(head_of)" "$before"
done
for fs in ext4 xfs; do
	truncate -s 320M /dev/shm/elsewhere
	small $fs /dev/shm/elsewhere
	dd if=/dev/shm/elsewhere of="$VOL" bs=1M conv=sparse,notrunc oflag=direct status=none
	before=$(head_of)
	expect_fail . mount -t $fs "$VOL" $M
	klog_has '(EXT4-fs|XFS) \(dm-[0-9]+\):.*(block ?size|4096 byte sectors)' || { dmesg | tail -5; die "$fs: the kernel does not say why"; }
	check_eq "the volume after the mount of $fs" "$(head_of)" "$before"
	rm /dev/shm/elsewhere
	dmesg -C
done
vol_down
pass "neither ext4 nor xfs of small blocks is made on a volume, or mounted from one; both say why"

# ---- in an image on it ----
for fs in ext4 xfs; do
	vol_format
	vol_up stream_kb=0
	make_fs ext4
	mount "$VOL" $M
	mkdir $M/db
	follows 'evaluate = yes'
	follow
	tables write 1 1 4
	until_ "the table's place" at_least mapped 1
	fallocate -l 320M $M/image
	small $fs $M/image
	mount -o loop $M/image $INNER
	mkdir $INNER/db
	created=$(number created)
	inner write 1 3 4
	# of an odd size, with holes of one small block each
	python3 - $INNER/db/odd <<- 'PYTHON'
		import ctypes, os, sys
		fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
		for n in range(2049):
		    os.write(fd, bytes([n % 251 + 1]) * 1024)
		os.fsync(fd)
		for at in range(5 * 1024, 2049 * 1024, 7 * 1024):
		    if ctypes.CDLL(None).fallocate(fd, 3, ctypes.c_int64(at), ctypes.c_int64(1024)):
		        sys.exit('fallocate')
		os.fsync(fd)
		os.close(fd)
	PYTHON
	sums=$(sums)
	sync
	where $M/image "0:$(($(sectors "$VOL") / 8)):0" > /dev/shm/image
	inner compact 1,3 11 keep
	rm $INNER/db/000001.ldb
	sync
	full=$(mapped)
	[ "$full" -ge 5000 ] || die "only $full blocks of the image are mapped: this shows nothing"
	fstrim $INNER
	sync		# what was punched out of the image is free only then
	fstrim $M
	left=$(mapped)
	[[ $left -le $((full - 900)) && $left -ge $((full - 1400)) ]] || die "of $full blocks $left are left, where 1024 have died"
	sleep 1
	check_eq "files of the image that are followed, compactions, deaths, dead ranges" \
		"$(($(number created) - created)) $(number compactions) $(number died) $(number ranges)" "0 0 0 0"
	echo 3 > /proc/sys/vm/drop_caches
	check_eq "what lives in the image" "$(sums)" "$sums"
	until_ "the image is let go" umount $INNER
	# xfs_repair reads past the cache, in smaller pieces than the sectors below
	cp --sparse=always $M/image /dev/shm/image.copy
	check_fs $fs /dev/shm/image.copy
	rm /dev/shm/image.copy
	# the image is a file like any other
	rm $M/db/000001.ldb $M/image
	until_ "both have died" is died 2
	until_ "the table and the image are trimmed" at_least trimmed_bytes $(((4 << 20) + (64 << 20)))
	unmounted
	daemon_stop
	check_fs ext4
	vol_down
	vol_check
	pass "$fs: in an image nothing is followed, of its trims whole blocks go ($((full - left)) of 1024), what lives stays whole"
done
