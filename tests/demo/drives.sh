#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Random 4 KiB reads and writes, one at a time and 32 at a time, on each modelled drive.
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/drive/drive.sh"

# figure RW DEPTH NAME: mean latency in us and I/O per second
figure() {
	fio_ --name=x --filename="/dev/mapper/$3" --rw="$1" --direct=1 --ioengine=io_uring --bs=4k --iodepth="$2" \
		--norandommap --randrepeat=0 --randseed=7 --number_ios=500 --output-format=terse --output=/dev/shm/figure
	case $1 in
	randread) awk -F';' '{ printf "%11.0f %9.0f", $40, $8 }' /dev/shm/figure ;;
	randwrite) awk -F';' '{ printf "%11.0f %9.0f", $81, $49 }' /dev/shm/figure ;;
	esac
}

in_ram fio
echo "(each I/O includes about 9 us of CPU time for fio and the block layer, on one CPU)"
printf '%-10s %21s %21s %21s\n' '' 'read, one at a time' 'read, 32 at a time' 'write, one at a time'
printf '%-10s %11s %9s %11s %9s %11s %9s\n' drive us IO/s us IO/s us IO/s
for preset in optane nvme-tlc qlc hdd; do
	mkdrive d $preset 256
	printf '%-10s %s %s %s\n' $preset "$(figure randread 1 d)" "$(figure randread 32 d)" "$(figure randwrite 1 d)"
	rmdrive d
done
