#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What knowing a database's files is worth: an unmodified RocksDB on xfs, with all uses, without one each, and without any.
# bench: mode=functional memory=3G timeout=2400 cpus=2 parts=VARIANTS:all,no-inherit_heat,no-pin_tails,no-cold_streams,no-bottom_share,no-database_logs,no-ignore_compactions,no-trim_dead,only-ban_dead,no-ban_dead,none,blind
# seeds: in the calls of db_bench: 10, 20, 60 and up for writes and probes
# packages: rocksdb-tools librocksdb7.8 xfsprogs
# two runs: . => real time: when RocksDB's and terraced's threads get a CPU decides what is compacted and moved when
#
# Each variant is a fresh volume, whose fast tier holds half of the database: it is filled, and an eighth of
# its keys is read again and again. Then
#
#	scan		all of it is read once
#	churn		a tenth of all keys is written anew, four times, and compacted while the hot part is read
#	compacts	half of all keys is written anew, four times, and compacted meanwhile
#	compaction	a tenth of all keys is written anew, and everything is compacted at once
#
# A scan and a compaction start from a steady state: the hot part has been read for a while, and nothing moves. The hot
# part is read for a moment before and after each; the difference is what it has lost. One moment more tells what of that
# was only on its way up. TIMES of each, of which the
# median is compared and the worst is shown, for one difference of two such moments errs by half a per cent.
#
# The slow tier has shelves enough: where they are short the kernel's janitor is let in to clean, and makes room by age.
#
# At the end keys anywhere are looked up with the tables' indexes and filters read from the drives, not kept in memory.
#
# A hit is a read of the drives that the fast one serves, while keys are looked up: not what RocksDB reads of each table
# when it is opened.
#
# The dead are trimmed after the product's own dead_wait_ms.
#
#	IBIR	dead blocks among those that orders brought up, of those deaths that terraced knew of; beside it, while the
#		database compacts, by the filesystem's own list of free space and the volume's map, looked at each
#		second: of what lay below then and is fast now, what was nobody's then and is nobody's now (tools/dead.c)
#	kept	dead blocks among those that orders left up, when they made room around them
#	IBOR	dead blocks in the fast tier, by the filesystem's own list of free space: while the database compacts, the
#		median, mean and worst of all looks, ten a second, and the worst of what was dead a second before as
#		well, for which a trim was late; and at rest, after all of this. All of a tenth of the tier and more dies
#		at once, and is trimmed a moment later: one look a second errs by as much as the mean is
#
#	LHR	reads of the fast tier that found their block, among all that its drive was asked for: keys anywhere are
#		looked up, three quarters of which lie below, while terraced is stopped, so that nothing else reads.
#		The metadata have been checkpointed before, and mirrored, which reads the fast drive; nothing is
#		written meanwhile, and no new generation may come. What was asked for and found no block is an index of a pack, or the run fails.
#		Once more without the indexes of packs in memory, whose copies lie on the fast tier: lookups in vain
#
# no-trim_dead has no invalidation at all; in only-ban_dead nothing is trimmed either, but the marks last; no-ban_dead has
# the trims alone. none still follows the files, for what it knows of the dead, and uses nothing of it; blind follows no files.
#
# Each use has a bar without it as well: what it is there for has to get so much worse, or it does nothing.
#
# VARIANTS=all,no-inherit_heat measures these alone. Counts, not times: any machine gives them.
# shellcheck disable=SC2016,SC2034,SC2119,SC2154
M=/dev/shm/m
DEAD_WAIT=${DEAD_WAIT-}
. "$TERRACE_TREE/tests/vm/files.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

need_cmd mkfs.xfs db_bench
PATH=$TERRACE_TREE/build/bench:$TERRACE_TREE/build:$PATH in_ram db_bench dead
KEYS=${KEYS:-100000} WARM=${WARM:-90000} AGAIN=${AGAIN:-15000} PROBE=${PROBE:-5000} FAST=${FAST:-28} ROUNDS=${ROUNDS:-4} TIMES=${TIMES:-3}
IFS=, read -ra VARIANTS <<< "${VARIANTS:-all,no-inherit_heat,no-pin_tails,no-cold_streams,no-bottom_share,no-database_logs,no-ignore_compactions,no-trim_dead,only-ban_dead,no-ban_dead,none,blind}"
declare -A GOT
# found NAME: of the status that was asked for last; nothing is known of files that are not followed
found() { sed -n "s/^ *\"$1\": *\([0-9]*\),\?$/\1/p" /dev/shm/status | head -1 | grep . || { [ "$name" = blind ] && echo 0; }; }
# raised: all that orders have brought up
raised() { echo $(($(found promoted_by_flush_blocks) + $(found promoted_by_compaction_blocks) + $(found promoted_by_epoch_blocks) + $(found promoted_as_heirs_blocks))); }
counter() { cat /sys/fs/terrace/*/"$1"; }

database() {
	from_ram db_bench --db=$M/db --num="$KEYS" --value_size=400 --write_buffer_size=2097152 --target_file_size_base=2097152 \
		--max_bytes_for_level_base=8388608 --max_bytes_for_level_multiplier=4 --compression_type=none --max_background_jobs=2 \
		--bloom_bits=10 --cache_size=262144 --use_direct_reads=1 --compaction_readahead_size=65536 "$@" > /dev/shm/said 2>&1 ||
		{ tail -5 /dev/shm/said; die "db_bench $*"; }
}
# read_some NUMBER SEED [OPTION...]: the first eighth of the keys, evenly
read_some() { database --use_existing_db=1 --benchmarks=readrandom --num=$((KEYS / 8)) --reads="$1" --seed="$2" "${@:3}"; }
# hits NUMBER SEED [OPTION...]: of the drives' reads meanwhile, per 10,000; a packed read is one of the slow tier's
hits() {
	local fast slow reader
	rm -f /dev/shm/report
	read_some "$@" --report_interval_seconds=1 --report_file=/dev/shm/report &
	reader=$!
	# it is made when the tables have been opened
	until [ -s /dev/shm/report ] || ! kill -0 $reader 2> /dev/null; do sleep 0.02; done
	fast=$(counter tier0/reads) slow=$(counter tier1/reads)
	wait $reader || die "reading"
	fast=$(($(counter tier0/reads) - fast)) slow=$(($(counter tier1/reads) - slow))
	HITS=$((10000 * fast / (fast + slow)))
}
probe() { hits "$PROBE" "$1" --disable_auto_compactions=1; }
# counts: of what terraced does
counts() {
	answers
	echo "$([ "$name" = blind ] || found trims)/$(found "done")/$(found under_way)"
}
quiet() {
	local before tries
	for ((tries = 0; tries < 20; tries++)); do
		before=$(counts)
		sleep 2
		[[ $before != */0 || $before != "$(counts)" ]] || return 0
	done
}
# moved: into MOVED, what has gone where since the last call, and into CAME, what has come up and was no heir; `janitor` is what the kernel moved by itself
seen=(promoted_by_flush_blocks promoted_by_compaction_blocks promoted_by_epoch_blocks promoted_as_heirs_blocks demoted_blocks dropped_blocks)
declare -A WAS
moved() {
	local one now
	MOVED=''
	CAME=0
	answers
	for one in "${seen[@]}"; do
		now=$(found "$one")
		MOVED+=" ${one%_blocks} $((now - ${WAS[$one]:-0})),"
		case $one in promoted_as_heirs*) ;; promoted_*) CAME=$((CAME + now - ${WAS[$one]:-0})) ;; esac
		WAS[$one]=$now
	done
	now=$(counter moved)
	MOVED+=" janitor $((now - ${WAS[moved]:-0})); fast $(counter tier0/used_blocks) of $(counter tier0/blocks), free shelves $(counter tier1/free_shelves)"
	WAS[moved]=$now
}
steady() {
	read_some "$AGAIN" "$1" --disable_auto_compactions=1
	quiet
}
# share A B: of 10,000
share() { echo $((10000 * $1 / ($2 ? $2 : 1))); }
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }
mean() { printf '%s\n' "$@" | awk '{ sum += $1 } END { print int(sum / NR) }'; }
worst() { printf '%s\n' "$@" | sort -n | tail -1; }
# lost NAME SEED WHAT COMMAND...: what the hot part has lost by it, TIMES times
lost() {
	local name=$1 seed=$2 what=$3 time before after fast slow
	local -a all=() befores=() afters=() laters=() came=() fasts=() slows=()
	for ((time = 0; time < TIMES; time++)); do
		[ "$what" = scan ] || database --use_existing_db=1 --benchmarks=overwrite --writes=$((KEYS / 10)) --seed=$((seed + 50 + time)) --disable_auto_compactions=1
		steady $((seed + 3 * time))
		moved
		probe $((seed + 3 * time + 1))
		before=$HITS
		fast=$(written 0) slow=$(written 1)
		"${@:4}"
		fasts+=($(($(written 0) - fast))) slows+=($(($(written 1) - slow)))
		probe $((seed + 3 * time + 2))
		after=$HITS
		moved
		# what was only not up yet is not lost
		probe $((seed + 3 * time + 30))
		came+=("$CAME")
		befores+=("$before") afters+=("$after") all+=($((before - after))) laters+=("$HITS")
		echo "# $name: $what, hits $before -> $after -> $HITS of 10000; written to the fast drive ${fasts[-1]} MiB, the slow one ${slows[-1]};$MOVED"
	done
	GOT[$name.$what.fast]=$(median "${fasts[@]}")
	GOT[$name.$what.slow]=$(median "${slows[@]}")
	GOT[$name.$what.before]=$(median "${befores[@]}")
	GOT[$name.$what.after]=$(median "${afters[@]}")
	GOT[$name.$what]=$(median "${all[@]}")
	GOT[$name.$what.later]=$(median "${laters[@]}")
	GOT[$name.$what.worst]=$(worst "${all[@]}")
	GOT[$name.$what.came]=$(median "${came[@]}")
}
# churn NAME: hits meanwhile
churn() {
	local round sum=0 fast slow
	moved
	fast=$(written 0) slow=$(written 1)
	for ((round = 0; round < ROUNDS; round++)); do
		database --use_existing_db=1 --benchmarks=overwrite --writes=$((KEYS / 10)) --seed=$((10 + round)) --disable_auto_compactions=1
		hits "$PROBE" $((20 + round))
		sum=$((sum + HITS))
		moved
		echo "# $1: churning, hits $HITS of 10000;$MOVED"
	done
	quiet
	GOT[$1.churn]=$((sum / ROUNDS))
	GOT[$1.churn.fast]=$(($(written 0) - fast))
	GOT[$1.churn.slow]=$(($(written 1) - slow))
}
# compacts NAME: what is dead in the fast tier meanwhile, and what of that orders have brought up
compacts() {
	local round looker up known dead fast came now before last
	local -a looks seconds lasts all=() lasting=() sums
	answers
	up=$(raised) known=$(found promoted_dead_blocks)
	sums=(0 0 0)
	for ((round = 0; round < ROUNDS; round++)); do
		: > /dev/shm/looks
		LD_LIBRARY_PATH=$RAM/lib "$RAM/dead" /dev/terrace/vol $M 10 >> /dev/shm/looks &
		looker=$!
		until [ -s /dev/shm/looks ] || ! kill -0 $looker; do sleep 0.1; done
		: > /dev/shm/looks
		database --use_existing_db=1 --benchmarks=overwrite --writes=$((KEYS / 2)) --seed=$((60 + round))
		kill $looker
		wait $looker 2> /dev/null || true
		looks=() seconds=() lasts=()
		while read -r dead fast came now before last; do
			[ "$fast" ] || continue
			looks+=($((10000 * dead / (fast ? fast : 1))))
			[ "$last" ] || continue
			seconds+=("${looks[-1]}")
			lasts+=("$(share "$last" "$fast")")
			sums=($((sums[0] + came)) $((sums[1] + now)) $((sums[2] + before)))
		done < /dev/shm/looks
		[ ${#seconds[@]} -gt 0 ] || die "no look at what is dead while the database compacts"
		moved
		echo "# $1: compacting, dead in fast second by second, of 10000: ${seconds[*]}; of that since the second before: ${lasts[*]}; in the mean of ${#looks[@]} looks $(mean "${looks[@]}");$MOVED"
		all+=("${looks[@]}") lasting+=("${lasts[@]}")
	done
	quiet
	answers
	up=$(($(raised) - up)) known=$(($(found promoted_dead_blocks) - known))
	echo "# $1: compacting, of $up blocks that orders brought up terraced knows $known dead ones; by looking, of ${sums[0]} that came to be fast ${sums[1]} are dead a second later, ${sums[2]} were before; $(found batches) batches of $(found trims) trims, tried again $(found tried_again), given up $(found given_up)"
	GOT[$1.ibir_known]=$(share $known $up)
	GOT[$1.ibir_seen]=$(share "${sums[2]}" "${sums[0]}")
	GOT[$1.ibir_most]=$(share "${sums[1]}" "${sums[0]}")
	GOT[$1.ibor_busy]=$(median "${all[@]}")
	GOT[$1.ibor_worst]=$(worst "${all[@]}")
	GOT[$1.ibor_mean]=$(mean "${all[@]}")
	GOT[$1.ibor_lasting]=$(worst "${lasting[@]}")
	GOT[$1.ibor_over]=$(share "$(printf '%s\n' "${all[@]}" | awk '$1 > 100' | wc -l)" ${#all[@]})
}
# drive N EXPRESSION: of what drive N's own queue counts
drive() { awk "{ print $2 }" "/sys/block/$(basename "$(readlink -f "${VOL_DRIVES[$1]}")")/stat"; }
drive_reads() { drive 0 '$1 + $2'; }	# whole bios, merged or not
written() { drive "$1" 'int($7 / 2048)'; }	# MiB
# still: all is written, checkpointed and mirrored, and the drives have rested for two seconds
still() {
	local before tries at='$1 + $5 + $12 + $16'
	sync
	vol_message commit
	vol_message checkpoint
	for ((tries = 0; tries < 60; tries++)); do
		before="$(drive 0 "$at") $(drive 1 "$at")"
		sleep 2
		[ "$before" != "$(drive 0 "$at") $(drive 1 "$at")" ] || return 0
	done
	die "the drives do not come to rest"
}
# lookups NAME WHAT SEED: into GOT[NAME.WHAT], the reads among the drive's that found a block, per 10,000; again if the
# metadata got a new generation meanwhile, which reads the fast drive as well: xfs writes by itself twice a minute
lookups() {
	local asked found slow all generation indexes headers writes tries
	for ((tries = 0; tries < 4; tries++)); do
		look_up "$@"
		[ "$(counter generation)" != "$generation" ] || break
		echo "# $1: $2: generation $generation -> $(counter generation) meanwhile, again"
	done
	check_eq "generation of the metadata, while keys are looked up" "$(counter generation)" "$generation"
	echo "# $1: $2: generation $generation; of indexes $indexes were read on the fast drive, $headers below; $(($(counter tier0/writes) - writes)) writes"
	((asked > 0 && slow > 0)) || die "$asked reads of the fast drive, $slow of the slow tier: nothing to measure"
	check_eq "reads of the fast drive that found no block, and are no indexes" $((asked - found - indexes)) 0
	GOT[$1.$2]=$((10000 * found / asked))
	all=$((found + slow))
	GOT[$1.$2.fast]=$((10000 * found / all))
	echo "# $1: $2: the fast drive was asked $asked times, $found found their block; $slow reads went below"
}
look_up() {
	still
	[ "$2" = lhr ] || vol_message evict_indexes
	writes=$(counter tier0/writes)
	generation=$(counter generation) indexes=$(counter index_lookups) headers=$(counter index_reads)
	asked=$(drive_reads) found=$(counter tier0/reads) slow=$(counter tier1/reads)
	database --use_existing_db=1 --benchmarks=readrandom --reads="$PROBE" --seed="$3" --readonly=1 --cache_index_and_filter_blocks=1
	asked=$(($(drive_reads) - asked)) found=$(($(counter tier0/reads) - found)) slow=$(($(counter tier1/reads) - slow))
	indexes=$(($(counter index_lookups) - indexes)) headers=$(($(counter index_reads) - headers))
}
uses=(inherit_heat pin_tails cold_streams ignore_compactions ban_dead trim_dead database_logs)

variant() {
	local name=$1 use dead fast
	local -a off=()
	for use in "${uses[@]}"; do
		[ "$name" != none ] && [ "$name" != "no-$use" ] || off+=("$use = no")
	done
	[ "$name" != no-trim_dead ] || off+=("ban_dead = no")
	[ "$name" != only-ban_dead ] || off+=("trim_dead = no" "dead_wait_ms = 3600000")
	[ "$name" != no-bottom_share ] || off+=("bottom_share = 0")
	[ "$name" != blind ] || off+=("files = no")
	export STATE=/dev/shm/state-$name
	follows "${off[@]}"
	WAS=()
	vol_format
	vol_up stream_kb=0
	make_fs xfs
	mount -o noatime "$VOL" $M
	# mkfs zeroes the device's ends: nobody's, but no file has died there
	fstrim $M
	if [ "$name" = blind ]; then daemon_start --verbose; else follow; fi
	database --benchmarks=fillrandom
	moved
	echo "# $name: filled;$MOVED"
	read_some "$WARM" 1 --disable_auto_compactions=1
	quiet
	moved
	echo "# $name: warm;$MOVED"
	lost "$name" 100 scan database --use_existing_db=1 --benchmarks=readseq --disable_auto_compactions=1
	churn "$name"
	compacts "$name"
	lost "$name" 200 compaction database --use_existing_db=1 --benchmarks=compact
	quiet
	read -r dead fast <<< "$(from_ram dead /dev/terrace/vol $M)"
	kill -STOP "$daemon"
	lookups "$name" lhr 300
	lookups "$name" lhr_evicted 301
	kill -CONT "$daemon"
	GOT[$name.ibor]=$(share "$dead" "$fast")
	answers
	local up
	up=$(raised)
	GOT[$name.ibir]=$(share "$(found promoted_dead_blocks)" "$up")
	GOT[$name.streams]=$(found cold_streams_blocks)
	GOT[$name.by_level]=$(found cold_by_level_streams)
	GOT[$name.ignored]=$(found ignored)
	GOT[$name.kept]=$((10000 * $(found retained_dead_blocks) / ($(found retained_blocks) + 1)))
	echo "# $name: dead in fast $dead of $fast, dead brought up $(found promoted_dead_blocks) of $up, dead kept $(found retained_dead_blocks) of $(found retained_blocks), sent down $(found not_retained_dead_blocks); heirs $(found heirs_blocks) (hot $(found hot_heirs_blocks), raised $(found promoted_as_heirs_blocks)), tails $(found pinned_tails_blocks) kept $(found retained_as_tails_blocks), cold streams $(found cold_streams) ($(found cold_streams_blocks) blocks, $(found cold_by_level_streams) by level), warm $(found warm_streams), compactions $(found compactions), mapped $(found mapped), lost $(found events_lost)"
	grep -E 'stop for|go on, as a trial|driver' "$LOG" | sed "s/^/# $name: /" || true
	daemon_stop
	umount $M
	cp "$LOG" "$OUT/$name.log"
	cp /dev/shm/status "$OUT/$name.status"
	vol_down
}

# worse NAME: what its use is there for
worse() {
	case $1 in
	no-inherit_heat) bar "$1: hits lost by the big compaction" "${GOT[$1.compaction]}" "of 10000" -500 ;;
	no-pin_tails) bar "$1: fast hits of keys anywhere, indexes and filters read as well" "${GOT[$1.lhr.fast]}" "of 10000" 5000 ;;
	no-cold_streams) bar "$1: written straight to the slow tier" "${GOT[$1.streams]}" "blocks" 0 ;;
	no-bottom_share | no-database_logs) bar "$1: streams that are cold by their level" "${GOT[$1.by_level]}" "streams" 0 ;;
	no-ignore_compactions) bar "$1: reads that heat nothing" "${GOT[$1.ignored]}" "reads" 0 ;;
	no-trim_dead)
		bar "$1: IBIR" "${GOT[$1.ibir]}" "of 10000" -500
		bar "$1: IBOR at rest" "${GOT[$1.ibor]}" "of 10000" -1000
		bar "$1: IBOR while it compacts, mean" "${GOT[$1.ibor_mean]}" "of 10000" -1000 ;;
	only-ban_dead)
		bar "$1: IBIR" "${GOT[$1.ibir]}" "of 10000" 100
		bar "$1: IBOR at rest" "${GOT[$1.ibor]}" "of 10000" -1000
		bar "$1: IBOR while it compacts, mean" "${GOT[$1.ibor_mean]}" "of 10000" -1000 ;;
	none | blind)
		bar "$1: IBOR while it compacts" "${GOT[$1.ibor_busy]}" "of 10000" -1000
		[ "$1" = blind ] || bar "$1: IBIR while it compacts" "${GOT[$1.ibir_known]}" "of 10000" -500 ;;
	esac
}

# told NAME: its rows; a run that does not come to its end has told those that it had
told() {
	local one=$1 what
	figure "$one: fast hits when warm" "${GOT[$one.scan.before]}" "of 10000"
	figure "$one: fast hits while the database compacts" "${GOT[$one.churn]}" "of 10000"
	figure "$one: written to the fast drive meanwhile" "${GOT[$one.churn.fast]}" "MiB"
	figure "$one: written to the slow drive meanwhile" "${GOT[$one.churn.slow]}" "MiB"
	figure "$one: fast hits before the big compaction" "${GOT[$one.compaction.before]}" "of 10000"
	figure "$one: fast hits right after it" "${GOT[$one.compaction.after]}" "of 10000"
	figure "$one: fast hits in the moment after that" "${GOT[$one.compaction.later]}" "of 10000"
	figure "$one: written to the fast drive by the big compaction" "${GOT[$one.compaction.fast]}" "MiB"
	figure "$one: written to the slow drive by it" "${GOT[$one.compaction.slow]}" "MiB"
	figure "$one: dead among what was left up where room was made" "${GOT[$one.kept]}" "of 10000"
	figure "$one: LHR when no index of a pack is in memory" "${GOT[$one.lhr_evicted]}" "of 10000"
	for what in scan compaction; do figure "$one: hits lost by the worst $what of $TIMES" "${GOT[$one.$what.worst]}" "of 10000"; done
	figure "$one: IBIR while it compacts" "${GOT[$one.ibir_known]}" "of 10000"
	figure "$one: ... and what has died within that second" "${GOT[$one.ibir_most]}" "of 10000"
	figure "$one: IBOR in the worst moment while it compacts" "${GOT[$one.ibor_worst]}" "of 10000"
	figure "$one: moments while it compacts with an IBOR above 1 %" "${GOT[$one.ibor_over]}" "of 10000"
	for what in scan compaction; do figure "$one: blocks that came up with a $what, heirs apart" "${GOT[$one.$what.came]}" "blocks"; done
	if [ "$one" = all ]; then
		bar "all: fast hits of keys anywhere, indexes and filters read as well" "${GOT[all.lhr.fast]}" "of 10000" -5500
		bar "all: written straight to the slow tier" "${GOT[all.streams]}" "blocks" -1
		bar "all: streams that are cold by their level" "${GOT[all.by_level]}" "streams" -1
		bar "all: reads that heat nothing" "${GOT[all.ignored]}" "reads" -1
		bar "all: hits lost by a full scan" "${GOT[all.scan]}" "of 10000" 100
		bar "all: hits lost by the big compaction" "${GOT[all.compaction]}" "of 10000" 100
		bar "all: LHR, found among what the fast drive was asked for" "${GOT[all.lhr]}" "of 10000" -10000
		bar "all: IBIR, dead among what was brought up" "${GOT[all.ibir]}" "of 10000" 100
		bar "all: IBIR while it compacts by looking" "${GOT[all.ibir_seen]}" "of 10000" 100
		bar "all: IBOR while it compacts, median" "${GOT[all.ibor_busy]}" "of 10000" 100
		bar "all: IBOR while it compacts, mean" "${GOT[all.ibor_mean]}" "of 10000" 100
		figure "all: ... of what was dead a second before as well, in the worst" "${GOT[all.ibor_lasting]}" "of 10000"
		bar "all: IBOR at rest, dead in the fast tier" "${GOT[all.ibor]}" "of 10000" 100
	else
		figure "$one: fast hits of keys anywhere, indexes and filters read as well" "${GOT[$one.lhr.fast]}" "of 10000"
		figure "$one: hits lost by a full scan" "${GOT[$one.scan]}" "of 10000"
		figure "$one: hits lost by the big compaction" "${GOT[$one.compaction]}" "of 10000"
		figure "$one: LHR" "${GOT[$one.lhr]}" "of 10000"
		figure "$one: IBIR" "${GOT[$one.ibir]}" "of 10000"
		figure "$one: IBIR while it compacts by looking" "${GOT[$one.ibir_seen]}" "of 10000"
		figure "$one: IBOR while it compacts" "${GOT[$one.ibor_busy]}" "of 10000"
		figure "$one: IBOR while it compacts, mean" "${GOT[$one.ibor_mean]}" "of 10000"
		figure "$one: ... of what was dead a second before as well, in the worst" "${GOT[$one.ibor_lasting]}" "of 10000"
		figure "$one: IBOR at rest" "${GOT[$one.ibor]}" "of 10000"
		worse "$one"
	fi
}

vol_ram "$FAST" "${SLOW:-1536}"
for one in "${VARIANTS[@]}"; do
	variant "$one"
	told "$one"
done
# no-ban_dead alone has nothing to judge
[ "$bars_all" = 0 ] || bars_end
