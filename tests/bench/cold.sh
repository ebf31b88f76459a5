#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What a cold read's instructions are spent on, function by function.
# bench: mode=vtime memory=3G timeout=600 plugin=profile
#
# pread() of 4 KiB blocks that lie in packs of LZ4 in clusters of 4 KiB, indexes known,
# without promotion cache and with, on a drive model and on RAM disks; less what a pread() of the RAM disk takes. A
# plugin counts from outside (profile/plugin.c), kallsyms says whose code it was.
# $OUT/cold.txt gets all functions.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

READS=${READS:-2000}
REGIONS=40
PATH=$TERRACE_TREE/build:$TERRACE_TREE/build/bench:$PATH in_ram fio orders hits

# profile DEVICE FILE: instructions of each function, per 1000 reads
profile() {
	from_ram hits "$1" read 4096 $((REGIONS * 1024)) 500 1		# first use of the code
	rm -f "$OUT/profile"
	from_ram hits "$1" read 4096 $((REGIONS * 1024)) "$READS" 2
	[ -s "$OUT/profile" ] || die "the plugin counted nothing: is the machine run with --plugin?"
	# both begin with addresses of one length: a code's line sorts behind its function's
	{ sed -E 's/^([0-9a-f]{16}) [a-zA-Z] (\S+)\s*(\S*)$/\1 - \2\3/' /dev/shm/symbols; cat "$OUT/profile"; } | LC_ALL=C sort -s -k1,1 |
		awk '$2 == "-" { name = $3; next } { sum[substr($1, 1, 1) < "8" ? "program" : name] += $2 } END { for (f in sum) print f, sum[f] }' > "$2"
}

# packs DRIVE FILE [CACHE_MB]: a volume whose cold blocks lie there
packs() {
	VOL_DRIVES=(/dev/ram/fast "$1")
	vol_format
	vol_up stream_kb=0 cache_mb="${3:-0}"
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --size=$((REGIONS * 4))m --bs=64k --iodepth=4 --rw=write --end_fsync=1 \
		--refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096 > /dev/null
	from_ram orders /dev/terrace/vol sweep 0 $REGIONS append tier_down=1 codec=lz4 > /dev/null
	grep -E ' [tTwW] ' /proc/kallsyms > /dev/shm/symbols
	profile "$1" /dev/shm/raw
	profile "$VOL" /dev/shm/cold
	vol_down
	awk 'NR == FNR { raw[$1] = $2; next } { print int(($2 - raw[$1]) / 1000 + (raw[$1] > $2 ? -0.5 : 0.5)), $1; delete raw[$1] }
		END { for (f in raw) print int(-raw[f] / 1000 - 0.5), f }' /dev/shm/raw /dev/shm/cold | sort -rn > "$OUT/$2"
}
sum() { awk '{ n += $1 } END { print n }' "$OUT/$1"; }

# of WHAT REGEX: functions that match, and no regex before
left=/dev/shm/left
of() {
	figure "$1" "$(grep -E "$2" $left | awk '{ n += $1 } END { print n + 0 }')" instructions
	grep -vE "$2" $left > $left.new || true
	mv $left.new $left
}
mkram fast 320
load_drive
mkdrive slow qlc 512 lbs=4096 powercut=off cache=off
packs /dev/mapper/slow cold-drive.txt
rmdrive slow
mkdrive slow qlc 512 lbs=4096 powercut=off cache=off
packs /dev/mapper/slow cold-kept.txt 64
rmdrive slow
bar "cold 4 KiB pread(): CPU above a pread() of the drive (qlc)" "$(sum cold-drive.txt)" ns 12000
bar "… and kept in a promotion cache of 64 MiB" "$(sum cold-kept.txt)" ns 12000

# Who reads a RAM disk does not sleep, so here a cold read pays for the sleep as well.
mkram slow 512
packs /dev/ram/slow cold.txt
figure "… above a pread() of a RAM disk" "$(sum cold.txt)" ns
cp "$OUT/cold.txt" $left
of "… decoding" 'LZ4_'
of "… what is copied" ' mem(cpy|set)'
of "… CRC" 'crc'
of "… the rest of the module" '\[dm_terrace\]'
of "… device-mapper" '\[dm_mod\]'
of "… memory" 'kmem_cache|cache_from_obj|slab'
of "… workqueue" 'work|pwq|strscpy|strnlen'
of "… scheduler: waking, switching twice" 'sched|psi_|load_avg|switch|pick_next|update_curr|entity|task_fair|ttwu|wake|preempt|_rq|vruntime|cfs|place_'
of "… block layer, drive: a second bio" 'bio|blk|submit|bdev|io_acct|io_ticks|null'
of "… clocks, RCU, system call and the rest" .
bars_end
