#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What one 4 KiB I/O costs, beside dm-linear and all peers in the same run.
# bench: mode=vtime memory=4G timeout=2400
# seeds: the depth and one for what fio does; new blocks and appends in the order of tools/commits.c, which has one
# packages: fio bcache-tools
#
# In virtual time one instruction is one nanosecond, so "ns per I/O" reads
# "instructions per I/O". Each figure is the time per I/O less that of the raw
# RAM disk, or of dm-linear, in the same run. Bars are those of DESIGN §12.
# What virtual time does not price, cache misses, is counted by lines.sh.
#
# Hits: fio-jobs/overhead-read.fio and -write.fio, random over what is mapped. Peers: the same, all of it in their
# caches, on RAM disks, by systems.bash. New blocks: tools/commits.c, each block once, one fsync per so many of them;
# and fio-jobs/overhead-new.fio, without, and with them in its figure. Packed blocks: moves.sh.
# shellcheck disable=SC2034,SC2001,SC2086
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/fio.bash"

IOS=${IOS:-50000}	# per figure: fio's clock shows milliseconds, 20 ns per I/O
MB=112			# worked on: all of it is mapped and hot
BLOCKS=$((MB * 256))
PARTS=${PARTS:-hit peers new append}
PEERS=${PEERS:-cache-32 cache-64 cache-256 writecache bcache}
declare -A NS

in_ram fio dmsetup
PATH=$TERRACE_TREE/build/bench:$PATH in_ram commits

# systems.bash has a fill() of its own
write_all() { dd if=/dev/zero of="$1" bs="${2:-64k}" count="${MB}M" iflag=count_bytes oflag=direct status=none; }

terrace_new() {
	# A journal as a drive of 16 GiB gets: commits of one record fill a small
	# one faster than a checkpoint, with its grace period, can empty it.
	vol_format --tier "optane:slots:atomic=/dev/ram/tfast" --tier "hdd:shelves:atomic=/dev/ram/tslow" --journal 16M
	vol_up stream_kb=0
}

set_up() {
	mkram raw $MB
	mkram under $MB
	mkram origin $MB
	mkram cfast 192
	mkram cmeta 64
	mkram tfast 256
	mkram tslow 320
	VOL_DRIVES=(/dev/ram/tfast /dev/ram/tslow)
	# The RAM disk allocates and clears a page when a block is first written,
	# 1,500 instructions that are not ours: do that before.
	dd if=/dev/zero of=/dev/ram/tfast bs=1M count=256 oflag=direct status=none
	dd if=/dev/zero of=/dev/ram/tslow bs=1M count=320 oflag=direct status=none
	modprobe dm_cache_smq
	write_all /dev/ram/raw
	dmc lin "0 $((MB * 2048)) linear /dev/ram/under 0"
	write_all /dev/mapper/lin
	dmc cac "0 $((MB * 2048)) cache /dev/ram/cmeta /dev/ram/cfast /dev/ram/origin 64 1 writeback smq 0"
	from_ram dmsetup message cac 0 migration_threshold 0 2> /dev/null || true
	write_all /dev/mapper/cac
	write_all /dev/mapper/cac
}

# above KEY PEER: the volume's time less the peer's
above() { echo $((NS[ter-$1] - NS[$2-$1])); }

# ---- hits ----

declare -A NAMES=([lin]=dm-linear [cac]=dm-cache [ter]=terrace)
# hit SYSTEM WAY DEPTH DEVICE: read or written, into NS[SYSTEM-randWAY-DEPTH]; its tails are a row of the table of that WAY and DEPTH
hit() {
	overhead "$1-rand$2-$3" "$2" "$4" ${MB}m $(($3 + 1)) "$3"
	tail_rows "$2 hits at depth $3" "${NAMES[$1]:-$1}"
}
hits() {
	local rw qd t name limit
	terrace_new
	write_all "$VOL"
	sync "$VOL"
	vol_message checkpoint
	sleep 10		# the idle checkpoint and the lazy mirror's copy are done
	printf '%-24s %8s %8s %8s %8s   above raw: %8s %8s %8s\n' "ns per 4 KiB I/O" raw linear cache terrace linear cache terrace
	for rw in randread randwrite; do
		for qd in 1 32; do
			for t in raw:/dev/ram/raw lin:/dev/mapper/lin cac:/dev/mapper/cac ter:$VOL; do
				hit "${t%%:*}" ${rw#rand} $qd "${t#*:}"
			done
			printf '%-24s %8s %8s %8s %8s              %8s %8s %8s\n' "$rw QD$qd" "${NS[raw-$rw-$qd]}" "${NS[lin-$rw-$qd]}" \
				"${NS[cac-$rw-$qd]}" "${NS[ter-$rw-$qd]}" $((NS[lin-$rw-$qd] - NS[raw-$rw-$qd])) \
				$((NS[cac-$rw-$qd] - NS[raw-$rw-$qd])) "$(above $rw-$qd raw)"
		done
	done
	for rw in randread:2400:500 randwrite:2500:600; do
		limit=${rw#*:}
		rw=${rw%%:*}
		name="read hit"
		[ $rw = randread ] || name="in-place write"
		for qd in 1 32; do
			bar "$name, QD$qd, above raw" "$(above $rw-$qd raw)" ns "${limit%:*}"
			bar "$name, QD$qd, above dm-linear" "$(above $rw-$qd lin)" ns "${limit#*:}"
			figure "$name, QD$qd, dm-cache above raw" $((NS[cac-$rw-$qd] - NS[raw-$rw-$qd])) ns
		done
	done
	[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
	vol_down
}

# ---- hits, of the peers ----

# slow_reads, slow_uses: reads, or reads and writes, of the slow drive so far
slow_reads() { awk '{ print $1 }' "/sys/block/$(basename "$(readlink -f $SLOW_DEV)")/stat"; }
slow_uses() { awk '{ print $1 + $5 }' "/sys/block/$(basename "$(readlink -f $SLOW_DEV)")/stat"; }

on_ram_disks() {
	VOLUME_MB=$MB SHARE=230	# below half of it dirty: nothing is written back
	FAST=ram SLOW=ram
	. "$TERRACE_TREE/tests/bench/systems.bash"
	FAST_DEV=/dev/ram/fastd SLOW_DEV=/dev/ram/slowd
	drives() {
		mkram fastd "$FAST_MB"
		mkram slowd "$SLOW_MB"
		dd if=/dev/zero of=$FAST_DEV bs=1M count="$FAST_MB" oflag=direct status=none
		dd if=/dev/zero of=$SLOW_DEV bs=1M count="$MB" oflag=direct status=none
	}
	drives_reset() { :; }
	drives_off() { rmram fastd; rmram slowd; }
}

# until it reads all of it without its slow drive
peer_warm() {
	local round before
	for ((round = 0; round < 12; round++)); do
		write_all "$DEV" 1M
		sleep 2
		before=$(slow_reads)
		dd if="$DEV" of=/dev/null bs=64k count=${MB}M iflag=direct,count_bytes status=none
		[ "$(slow_reads)" != "$before" ] || break
	done
	if [ "$1" = bcache ]; then echo 0 > $BCACHE/writeback_running; fi
}

peers() {
	local s rw qd word before cheapest IOS=$((IOS / 2))	# they take five times as long
	on_ram_disks
	for rw in randread randwrite; do
		for qd in 1 32; do
			[ "${NS[raw-$rw-$qd]:-}" ] || hit raw ${rw#rand} $qd /dev/ram/raw
		done
	done
	for s in ${PEERS//,/ }; do
		system_up "$s"
		peer_warm "$s"
		echo "# $s: $(system_settings "$s")$([ "$s" != bcache ] || echo '; writeback_running 0')"
		before=$(slow_uses)
		for rw in randread randwrite; do
			for qd in 1 32; do
				hit "$s" ${rw#rand} $qd "$DEV"
				word=${rw#rand}-$qd
				bars_row "$BARS_SCRIPT" "hits; $s; $word" $((NS[$s-$rw-$qd] - NS[raw-$rw-$qd])) ns "" "" ""
			done
		done
		bars_row "$BARS_SCRIPT" "hits; $s; missed" $((($(slow_uses) - before) * 1000 / (4 * IOS))) o/oo "" "" ""
		printf '%-12s ns above raw: read QD1 %7s QD32 %7s  write QD1 %7s QD32 %7s  of the slow drive: %s I/Os\n' "$s" $((NS[$s-randread-1] - NS[raw-randread-1])) \
			$((NS[$s-randread-32] - NS[raw-randread-32])) $((NS[$s-randwrite-1] - NS[raw-randwrite-1])) $((NS[$s-randwrite-32] - NS[raw-randwrite-32])) \
			$(($(slow_uses) - before))
		if [ "$s" = bcache ]; then echo 1 > $BCACHE/writeback_running; fi
		system_settle "$s"
		system_down "$s"
	done
	[ "${NS[ter-randread-1]:-}" ] || return 0
	for rw in randread randwrite; do
		for qd in 1 32; do
			bars_row "$BARS_SCRIPT" "hits; terrace; ${rw#rand}-$qd" "$(above $rw-$qd raw)" ns "" "" ""
			cheapest=
			for s in ${PEERS//,/ }; do
				word=$((NS[$s-$rw-$qd] - NS[raw-$rw-$qd]))
				[ "${cheapest:-$word}" -lt "$word" ] || cheapest=$word
			done
			word="${rw#rand} hit, QD$qd: the cheapest peer, of terrace's"
			[ "$(wc -w <<< "${PEERS//,/ }")" = 5 ] || word=${word/the cheapest peer/the cheapest of ${PEERS//,/ } alone}
			# of all peers, one at a time: DESIGN's claim
			if [[ $rw = randread && $qd = 1 && $word != *alone* ]]; then
				bar "$word" $((cheapest * 1000 / $(above $rw-$qd raw))) o/oo -4000
			else
				figure "$word" $((cheapest * 1000 / $(above $rw-$qd raw))) o/oo
			fi
		done
	done
}

# ---- new blocks ----

# commits KEY DEVICE PER_SYNC COUNT: into NS[KEY], NS[sync-KEY]
commits() {
	local said
	said=$(from_ram commits "$2" $BLOCKS "$4" "$3" 32) || die "commits $*"
	NS[$1]=$(sed 's/write=\([0-9]*\) .*/\1/' <<< "$said")
	NS[sync-$1]=$(sed 's/.* sync=\([0-9]*\) .*/\1/' <<< "$said")
}

new_blocks() {
	local n count
	for n in 64 256 1; do
		count=$((n == 1 ? 2000 : BLOCKS * 250 / 256))
		commits raw-new-$n /dev/ram/raw $n $count
		commits lin-new-$n /dev/mapper/lin $n $count
		terrace_new
		commits ter-new-$n "$VOL" $n $count
		[ "$(vol_get new)" -ge $count ] || die "$(vol_get new) of $count writes were to new blocks"
		[ $n != 1 ] || commits ter-old-1 "$VOL" 1 $count	# the same blocks again
		vol_down
		if [ $n = 1 ]; then
			figure "new block and its fsync, above raw" "$(above new-1 raw)" ns
			figure "new block and its fsync, above dm-linear" "$(above new-1 lin)" ns
			# the drive has no volatile cache, so there is nothing to do
			bar "fsync after an in-place write, above dm-linear" $((NS[sync-ter-old-1] - NS[sync-lin-new-1])) ns 1000
			continue
		fi
		bar "new block, $n per commit, QD32, above raw" "$(above new-$n raw)" ns 4500
		bar "new block, $n per commit, QD32, above dm-linear" "$(above new-$n lin)" ns 2600
		figure "fsync of $n new blocks (dm-linear's: ${NS[sync-lin-new-$n]})" "${NS[sync-ter-new-$n]}" ns
	done
}

# by_fio PER_SYNC: the same, one by one as well, with an fsync in between or, for 0, with none; fio tells the tails of the writes
by_fio() {
	local depth t dev what="with an fsync of $1 in it" IOS=$((BLOCKS * 250 / 256))
	export PER_SYNC=$1
	[ "$1" != 0 ] || what="no fsync"
	for depth in 1 32; do
		terrace_new
		for t in raw:/dev/ram/raw lin:/dev/mapper/lin ter:$VOL; do
			dev=${t#*:} t=${t%%:*}
			overhead "$t-fio-$depth" new "$dev" ${MB}m $((depth + 1)) $depth
			tail_rows "new blocks at depth $depth $what" "${NAMES[$t]:-$t}"
		done
		[ "$(vol_get new)" -ge $IOS ] || die "$(vol_get new) of $IOS writes were to new blocks"
		vol_down
		if [ "$1" = 0 ]; then
			bar "new block, $what, QD$depth, above raw" "$(above fio-$depth raw)" ns 4500
		else
			figure "new block, $what, QD$depth, above raw" "$(above fio-$depth raw)" ns
		fi
		figure "new block, $what, QD$depth, above dm-linear" "$(above fio-$depth lin)" ns
	done
}

# ---- appends ----

# fsynced 4 KiB appends beside the bare drive, an nvme-tlc model, which is made
# slow by latency and not by instructions. A small journal is full after some 200.
# To a new block an append is two writes, one after the other: data, journal.
append() {	# KEY DEVICE: into NS[KEY], NS[worst-KEY]
	local said
	said=$(from_ram commits "$2" 8192 6000 1 1 order) || die "appends to $2"
	NS[$1]=$(sed 's/write=\([0-9]*\) .*/\1/' <<< "$said")
	NS[worst-$1]=$(sed 's/.* worst=//' <<< "$said")
	echo "# $1: $said"
}

appends() {
	local cache journal what
	for cache in off on; do
		mkdrive fastd nvme-tlc 256 lbs=4096 powercut=$cache cache=$cache
		dd if=/dev/zero of=/dev/mapper/fastd bs=1M count=256 oflag=direct status=none
		append bare /dev/mapper/fastd
		dmc fastlin "0 $((255 * 2048)) linear /dev/mapper/fastd 0"
		append linear /dev/mapper/fastlin
		dmr fastlin
		figure "fsynced appends, dm-linear, volatile cache $cache, of the bare drive's" $((NS[bare] * 1000 / NS[linear])) o/oo
		VOL_DRIVES=(/dev/mapper/fastd /dev/ram/tslow)
		for journal in 1M 16M; do
			what="journal $journal, volatile cache $cache"
			vol_format --tier nvme:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/ram/tslow --journal $journal
			vol_up stream_kb=0
			append new "$VOL"
			append old "$VOL"
			bar "fsynced appends, $what, of the bare drive's" $((NS[bare] * 1000 / NS[new])) o/oo -900
			bar "... the longest fsync" $((NS[worst-new] / 1000)) us 1000
			bar "... once more, in place" $((NS[bare] * 1000 / NS[old])) o/oo -900
			vol_down
		done
		rmdrive fastd
	done
}

set_up
for part in ${PARTS//,/ }; do
	case $part in
	hit)	hits ;;
	peers)	peers ;;
	new)	new_blocks; by_fio 0; by_fio 64 ;;
	append)	appends ;;
	*)	die "no part called $part" ;;
	esac
done
bars_end
