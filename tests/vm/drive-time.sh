#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Latency, queueing, bandwidth, seek, rotation, SLC buffer and wear come out as the parameters say.
# vm: mode=vtime memory=2G timeout=600 build=drive-tools
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/drive/drive.sh"
drive_tools
MiB=$((1 << 20))
calc() { awk "BEGIN { printf \"%.0f\", $* }"; }

echo "-- latency at queue depth 1: what the drive charges, exactly"
for p in "optane read 5998" "optane write 6001" "nvme-tlc read 80000" "nvme-tlc write 19998" "qlc read 390995"; do
	read -r preset what ns <<< "$p"
	mkdrive d "$preset" 64
	pace_ mean d "$what" --count 500 --pattern rand --span $((64 * MiB)) > /dev/null
	near "$preset $what, charged ns" "$(calc "$(drive_get d busy_ns) / 500")" "$ns" 0.1
	rmdrive d
done

echo "-- and seen by the host; a fixed cost of the host's own is on top, so take differences for short ones"
mkdrive d ram 64 read_lat=391us write_lat=100us
near "read_lat=391us, host's mean ns" "$(pace_ mean d read --count 300 --pattern rand)" 391000
base=$(pace_ min d write --count 300 --pattern rand)
drive d set write_lat=106us
near "write_lat + 6us, difference in ns" "$(($(pace_ min d write --count 300 --pattern rand) - base))" 6000
drive d set write_lat=200us
near "write_lat + 100us, difference in ns" "$(($(pace_ min d write --count 300 --pattern rand) - base))" 100000
rmdrive d

echo "-- queueing: as many servers as channels"
mkdrive d ram 64 lat=1ms channels=4
for depth in 1 2 4; do
	near "4 channels, depth $depth, mean ns" "$(pace_ mean d read --count 400 --depth $depth --pattern rand)" 1000000
	near "4 channels, depth $depth, IOPS" "$(pace_ iops d read --count 400 --depth $depth --pattern rand)" $((depth * 1000))
done
near "4 channels, depth 8, mean ns" "$(pace_ mean d read --count 400 --depth 8 --pattern rand)" 2000000
near "4 channels, depth 8, IOPS" "$(pace_ iops d read --count 400 --depth 8 --pattern rand)" 4000
rmdrive d

echo "-- bandwidth, shared by all channels"
mkdrive d ram 256 lat=100us channels=4 read_bw=500000000 write_bw=200000000
near "read_bw, 1 MiB at depth 4" "$(pace_ bw d read --bs $MiB --count 200 --depth 4)" 500000000
near "write_bw, 1 MiB at depth 4" "$(pace_ bw d write --bs $MiB --count 200 --depth 4)" 200000000
near "read_bw, 64 KiB at depth 16" "$(pace_ bw d read --bs 65536 --count 2000 --depth 16)" 500000000
# the host's own cost of 1 MiB is a tenth of a millisecond and differs between kernels
drive d set read_lat=5ms
before=$(drive_get d busy_ns)
near "depth 1, 1 MiB: latency + transfer" "$(pace_ mean d read --bs $MiB --count 50)" "$(calc "5e6 + $MiB / 0.5")"
near "the same, charged ns" "$(calc "($(drive_get d busy_ns) - $before) / 50")" "$(calc "5e6 + $MiB / 0.5")" 0.1
rmdrive d

echo "-- flush"
mkdrive d ram 256 flush_lat=5ms flush_bw=100000000
near "flush of nothing" "$(pace_ mean d flush --count 20)" 5000000
pace_ bw d write --bs $MiB --count 20 > /dev/null
near "flush of 20 MiB" "$(pace_ max d flush --count 1)" "$(calc "5e6 + 20 * $MiB * 10")"
near "flush after that" "$(pace_ mean d flush --count 20)" 5000000
rmdrive d

echo "-- disk: random, sequential"
mkdrive d hdd 1024
near "hdd random read, mean ns" "$(pace_ mean d read --count 1500 --pattern rand --span $((1024 * MiB)))" 6620000
near "seeks" "$(drive_get d seeks)" 1500 1
near "hdd random write, mean ns" "$(pace_ mean d write --count 1500 --pattern rand --span $((1024 * MiB)) --seed 5)" 6620000
near "hdd sequential read, 1 MiB" "$(pace_ bw d read --bs $MiB --count 200 --depth 2)" 200000000
near "hdd sequential read, 4 KiB, depth 1" "$(pace_ bw d read --count 20000)" 200000000
near "hdd sequential write, 1 MiB" "$(pace_ bw d write --bs $MiB --count 200 --depth 2)" 200000000
rmdrive d
mkdrive d hdd-simple 64
near "hdd-simple random read, mean ns" "$(pace_ mean d read --count 200 --pattern rand)" 6600000
rmdrive d
mkdrive d hdd-7200 1024
near "hdd-7200 random read, mean ns" "$(pace_ mean d read --count 1500 --pattern rand --span $((1024 * MiB)))" 12383000
rmdrive d

echo "-- disk: seek by distance, rotation alone"
mkdrive d hdd 1024 rev=0 track=1m
for part in 2 8 32 128; do
	near "seek over 1/$part of the stroke, ns" "$(pace_ mean d read --count 100 --pattern hop --span $((1024 * MiB / part)))" \
		"$(calc "700e3 + 5437.5e3 * sqrt(1 / $part) + 20480")"
done
redrive d hdd 1024 rev=0 track=1m stroke=4g
near "the same over 1/8 of a stroke of 4 GiB" "$(pace_ mean d read --count 100 --pattern hop --span $((512 * MiB)))" \
	"$(calc "700e3 + 5437.5e3 * sqrt(1 / 8) + 20480")"
redrive d hdd 1024 seek_min=0 seek_max=0
near "half a turn" "$(pace_ mean d read --count 1500 --pattern rand --span $((1024 * MiB)))" 3020000
redrive d hdd 1024 ncq=32
fifo=150 ncq=$(pace_ iops d read --count 1500 --depth 32 --pattern rand --span $((1024 * MiB)))
echo "NCQ of 32: $ncq IOPS instead of $fifo"
[ "$ncq" -gt $((fifo * 2)) ] || die "choosing the nearest of 32 gains less than twofold"
rmdrive d

echo "-- QLC: SLC buffer, exhaustion, recovery"
mkdrive d ram 256 write_bw=500000000 slc=32m fold_bw=50000000
near "SLC has room: 32 MiB" "$(pace_ bw d write --bs $MiB --count 32 --depth 2)" 500000000
sleep 2
near "32 MiB fast and 32 MiB slow, ns" "$(pace_ took d write --bs $MiB --count 64 --depth 2)" "$(calc "32 * $MiB * (2 + 20)")"
sleep 2
# within one program: starting another takes virtual time without bound
fast=20000000 slow=$((40 * MiB - 20000000))
near "64 MiB, 0.4 s idle, 20 MB fast, the rest of 40 MiB slow" \
	"$(pace_ took d write --bs $MiB --count 104 --depth 2 --after 64 --pause 400000000)" \
	"$(calc "32 * $MiB * (2 + 20) + 4e8 + $fast * 2 + $slow * 20")" 1
sleep 2
check_eq "idle, the buffer is empty" "$(drive_get d slc_fill)" 0
check_eq "bytes programmed: once into SLC, once out of it" "$(drive_get d programmed)" $((2 * 200 * MiB))
rmdrive d

echo "-- QLC: indirection unit"
mkdrive d ram 256 iu=16k write_lat=20us read_lat=100us read_bw=1000000000 write_bw=1000000000
pace_ bw d write --count 1000 --pattern rand --span $((256 * MiB)) > /dev/null
near "4 KiB random: programmed bytes" "$(drive_get d programmed)" $((1000 * 16384)) 1
near "units read and rewritten" "$(drive_get d rmw)" 1000 1
near "a 4 KiB random write, ns" "$(calc "$(drive_get d busy_ns) / 1000")" "$(calc "20e3 + 16384 + 100e3 + 16384")" 1
drive d reset
pace_ bw d write --count 4096 --start $((64 * MiB)) > /dev/null
check_eq "4 KiB sequential: programmed bytes" "$(drive_get d programmed)" $((16 * MiB))
drive d reset
pace_ bw d write --bs 16384 --count 100 --pattern rand --span $((64 * MiB)) > /dev/null
check_eq "16 KiB random: programmed bytes" "$(drive_get d programmed)" $((100 * 16384))
check_eq "16 KiB random: no unit rewritten" "$(drive_get d rmw)" 0
rmdrive d
pass "the drive keeps its times"
