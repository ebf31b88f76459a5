#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What orders cost: demotion against the disk's bandwidth, write amplification, payload, cold reads, drops.
# bench: mode=vtime memory=4G timeout=900
#
# In virtual time, with one CPU, on drive models. 160 MiB of fio's data that
# compress by half, in regions 0 to 39, go down by append with LZ4 and clusters
# of 4 KiB, come up as clean slots, and are dropped.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

REGIONS=${REGIONS:-40}
PATH=$TERRACE_TREE/build:$PATH in_ram fio dmsetup orders
load_drive

fio_json() { fio_ --output-format=json --output=/dev/shm/o.json "$@" > /dev/null 2> /dev/shm/e || die "fio: $(head -3 /dev/shm/e)"; }
kb_s() { awk '/"bw_bytes"/ { gsub(/[^0-9]/, ""); if ($0 > max) max = $0 } END { print int(max / 1000) }' /dev/shm/o.json; }
sweep() { from_ram orders /dev/terrace/vol sweep 0 "$REGIONS" "$@" > /dev/shm/swept || die "sweep $*: $(cat /dev/shm/swept)"; }
swept() { sed -nE "s/.*\b$1=([0-9]+).*/\1/p" /dev/shm/swept; }

MB=$((REGIONS * 4))
mkdrive fastd optane 320 lbs=4096 powercut=off cache=off
mkdrive slowd hdd 512 lbs=4096 powercut=off cache=off ncq=32
VOL_DRIVES=(/dev/mapper/fastd /dev/mapper/slowd)
# twice: the model's RAM is allocated by the first
for turn in first second; do
	fio_json --name=x --filename=/dev/mapper/slowd --ioengine=io_uring --direct=1 --bs=1m --size=256m --iodepth=4 --rw=write
done
bw=$(kb_s)
vol_format --tier optane:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd
vol_up stream_kb=0 cache_mb=0
fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=64k --size="$MB"m --iodepth=4 --rw=write --end_fsync=1 \
	--refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096

before=$(drive_get slowd write_bytes)
sweep append tier_down=1 codec=lz4
check_eq "blocks that went down" "$(swept down)" $((REGIONS * 1024))
packed=$(swept packed_bytes) ns=$(swept ns)
written=$(($(drive_get slowd write_bytes) - before))
bar "append with LZ4: what is written, of the disk's $bw kB/s in order" $((packed * 1000 / (ns / 1000000) / bw)) o/oo -900
figure "append with LZ4: payload, 1 CPU" $((REGIONS * 4194304 / (ns / 1000000))) kB/s
figure "append with LZ4: CPU to compress a block" $(($(swept cpu_ns) / (REGIONS * 1024))) ns
bar "append: bytes the disk wrote, of the packs' with header and padding" $((written * 1000 / packed)) o/oo 1010
bar "payload of packs, data that compress by half" $((REGIONS * 4194304 * 100 / packed)) /100 -190

reads=$(drive_get slowd reads)
fio_json --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size="$MB"m --iodepth=1 --rw=randread --number_ios=1000 --randrepeat=0 --randseed=7
reads=$(($(drive_get slowd reads) - reads))
bar "cold 4 KiB reads, index known: disk reads of 1000" "$reads" reads 1000

sweep raise tier_up=0 up=all
check_eq "blocks that came up" "$(swept up)" $((REGIONS * 1024))
figure "raise, payload" $((REGIONS * 4194304 / ($(swept ns) / 1000000))) kB/s
sweep drop
check_eq "clean slots dropped" "$(swept dropped)" $((REGIONS * 1024))
bar "clean slots dropped" $((REGIONS * 1024 * 1000000 / ($(swept ns) / 1000))) /s -1000000
vol_down
bars_end
