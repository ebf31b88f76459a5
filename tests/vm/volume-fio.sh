#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fio verifies its own checksums: random and sequential, trims, 4k to 1m, by io_uring, libaio, pread and mmap.
# vm: mode=functional memory=3G timeout=700 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

# start JOB ENGINE SEED [SIZE [OFFSET]]: its output to /dev/shm/fio.SEED
start() {
	DEV="${FILE:-$VOL}" ENGINE=$2 SEED=$3 SIZE=${4:-64m} OFFSET=${5:-0} fio_ --output-format=terse \
		"$TERRACE_TREE/fio-jobs/verify-$1.fio" > "/dev/shm/fio.$3" 2>&1
}

verify() {
	start "$@" || { tail -20 "/dev/shm/fio.$3"; die "fio: $1 by $2"; }
	! grep -qi 'verify:' "/dev/shm/fio.$3" || { cat "/dev/shm/fio.$3"; die "fio: $1 by $2: verify errors"; }
	pass "$1 by $2"
}

vol_ram 64 384
vol_format
vol_up stream_kb=4096
verify sequential io_uring 1
verify random io_uring 2
verify random libaio 3
verify random psync 4 24m
verify trim io_uring 5 32m
verify trim libaio 6 32m 100m
# two at once, on both CPUs
verify random io_uring 8 48m &
one=$!
verify random libaio 9 48m 128m &
two=$!
wait $one
wait $two
# Through a file: fio frees the range of a block device that it maps
# (MADV_REMOVE), and with it what it wants to verify.
mkfs.ext4 -q -F "$VOL"
mkdir -p /dev/shm/mnt
mount "$VOL" /dev/shm/mnt
truncate -s 32m /dev/shm/mnt/file
FILE=/dev/shm/mnt/file verify mmap mmap 7 32m
umount /dev/shm/mnt
vol_down
vol_check

# the test can fail: a block changed behind fio's back is noticed
vol_up
verify sequential psync 10 8m
dd if=/dev/zero of="$VOL" bs=4k seek=100 count=1 oflag=direct status=none
expect_fail "verify|checksum|bad" fio_ --name=sequential --filename="$VOL" --direct=1 --size=8m --rw=write --bs=256k \
	--verify=crc32c --verify_only=1 --randrepeat=0 --randseed=10
vol_down
