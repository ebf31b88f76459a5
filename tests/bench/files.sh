#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What knowing a database's files is worth: an unmodified RocksDB on xfs, with all uses, without one each, and without any.
# bench: mode=functional memory=3G timeout=5400 cpus=2
#
# Each variant is a fresh volume, whose fast tier holds half of the database: it is filled, and an eighth of
# its keys is read again and again. Then, with that part read before and after:
#
#	scan		all of it is read once
#	churn		a tenth of all keys is written anew, four times, and compacted while the hot part is read
#	compaction	everything is compacted at once
#
#	IBIR	dead blocks among those that orders brought up
#	IBOR	dead blocks in the fast tier, by the filesystem's own list of free space, after all of this
#
# LHR, the share of lookups in the fast tier that find what they look for, needs no measuring: the map is exact, and
# no tier is ever asked for a block that it does not hold.
#
# VARIANTS=all,no-inherit_heat measures these alone. Counts, not times: any machine gives them.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

need_cmd python3 mkfs.xfs db_bench
PATH=$TERRACE_TREE/build:$PATH in_ram terraced db_bench
KEYS=${KEYS:-100000} WARM=${WARM:-90000} PROBE=${PROBE:-3000} FAST=${FAST:-24} ROUNDS=${ROUNDS:-4}
IFS=, read -ra VARIANTS <<< "${VARIANTS:-all,no-inherit_heat,no-pin_tails,no-cold_streams,no-ignore_compactions,no-trim_dead,none}"
LOG=/dev/shm/terraced.log CONF=/dev/shm/terraced.conf STATUS=/dev/shm/status M=/dev/shm/m
daemon=
declare -A GOT
trap 'cp $LOG $STATUS "$OUT/" 2> /dev/null || true' EXIT

answers() { from_ram terraced --config $CONF --status > $STATUS 2> /dev/null; }
number() { answers && sed -n "s/^ *\"$1\": *\([0-9]*\),\?$/\1/p" $STATUS | head -1 | grep .; }
counter() { cat /sys/fs/terrace/*/"$1"; }
followed() { grep -q "the files of $M are followed" $LOG; }

database() {
	from_ram db_bench --db=$M/db --num="$KEYS" --value_size=400 --write_buffer_size=2097152 --target_file_size_base=2097152 \
		--max_bytes_for_level_base=8388608 --max_bytes_for_level_multiplier=4 --compression_type=none --max_background_jobs=2 \
		--bloom_bits=10 --cache_size=262144 --use_direct_reads=1 --compaction_readahead_size=65536 "$@" > /dev/shm/said 2>&1 ||
		{ tail -5 /dev/shm/said; die "db_bench $*"; }
}
# read_some NUMBER SEED [OPTION...]: the first eighth of the keys, evenly
read_some() { database --use_existing_db=1 --benchmarks=readrandom --num=$((KEYS / 8)) --reads="$1" --seed="$2" "${@:3}"; }
probe() { hits read_some "$PROBE" "$1" --disable_auto_compactions=1; }
# hits COMMAND...: reads meanwhile that the fast tier served, per 10,000
hits() {
	local fast slow
	fast=$(counter tier0/reads) slow=$(($(counter tier1/reads) + $(counter packed_reads)))
	"$@"
	fast=$(($(counter tier0/reads) - fast)) slow=$(($(counter tier1/reads) + $(counter packed_reads) - slow))
	HITS=$((10000 * fast / (fast + slow)))
}
quiet() {
	local before tries
	for ((tries = 0; tries < 20; tries++)); do
		before=$(number trims)/$(number "done")/$(number under_way)
		sleep 2
		[ "$before" != "$(number trims)/$(number "done")/0" ] || return 0
	done
}
# churn NAME: hits meanwhile
churn() {
	local round sum=0
	for ((round = 0; round < ROUNDS; round++)); do
		database --use_existing_db=1 --benchmarks=overwrite --writes=$((KEYS / 10)) --seed=$((10 + round)) --disable_auto_compactions=1
		hits read_some "$PROBE" $((20 + round))
		sum=$((sum + HITS))
	done
	quiet
	GOT[$1.churn]=$((sum / ROUNDS))
	echo "# $1: churned, hits meanwhile ${GOT[$1.churn]} of 10000, $(number promoted_dead_blocks) dead blocks brought up"
}
uses=(inherit_heat pin_tails cold_streams ignore_compactions ban_dead trim_dead)

variant() {
	local name=$1 use dead fast
	{
		printf '%s\n' '[daemon]' "state_directory = /dev/shm/state-$name" 'socket = /dev/shm/socket' '[policy]' 'files = yes' 'dead_wait_ms = 300'
		for use in "${uses[@]}"; do
			[ "$name" != none ] && [ "$name" != "no-$use" ] || echo "$use = no"
		done
		[ "$name" != no-trim_dead ] || echo "ban_dead = no"
	} > $CONF
	vol_format
	vol_up stream_kb=0
	mkfs.xfs -qfK "$VOL"
	mount "$VOL" $M
	: > $LOG
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config $CONF --verbose >> $LOG 2>&1 &
	daemon=$!
	for ((i = 0; i < 300; i++)); do if followed; then break; fi; sleep 0.1; done
	followed || { tail $LOG; die "files are not followed"; }

	database --benchmarks=fillrandom
	echo "# $name: filled"
	read_some "$WARM" 1 --disable_auto_compactions=1
	quiet
	echo "# $name: warm, $(number demoted_blocks) blocks demoted so far"
	probe 2
	GOT[$name.warm]=$HITS
	database --use_existing_db=1 --benchmarks=readseq --disable_auto_compactions=1
	probe 3
	GOT[$name.scanned]=$HITS
	echo "# $name: scanned, hits ${GOT[$name.warm]} -> ${GOT[$name.scanned]} of 10000"
	churn "$name"
	probe 4
	GOT[$name.before]=$HITS
	database --use_existing_db=1 --benchmarks=compact
	probe 5
	GOT[$name.after]=$HITS
	quiet
	echo "# $name: compacted"
	read -r dead fast <<< "$(python3 "$TERRACE_TREE/tests/vm/dead.py" /dev/terrace/vol $M)"
	GOT[$name.ibor]=$((10000 * dead / (fast ? fast : 1)))
	answers
	local up
	up=$(($(number promoted_by_flush_blocks) + $(number promoted_by_compaction_blocks) + $(number promoted_by_epoch_blocks) + $(number promoted_as_heirs_blocks)))
	GOT[$name.ibir]=$((10000 * $(number promoted_dead_blocks) / (up ? up : 1)))
	echo "# $name: hits ${GOT[$name.before]} -> ${GOT[$name.after]} of 10000, dead in fast $dead of $fast, dead brought up $(number promoted_dead_blocks) of $up; heirs $(number heirs_blocks) (hot $(number hot_heirs_blocks), raised $(number promoted_as_heirs_blocks)), tails $(number pinned_tails_blocks) kept $(number retained_as_tails_blocks), cold streams $(number cold_streams) ($(number cold_streams_blocks) blocks), warm $(number warm_streams), compactions $(number compactions), mapped $(number mapped), lost $(number events_lost)"
	kill $daemon
	wait $daemon || die "terraced ends with $?"
	umount $M
	cp $LOG "$OUT/$name.log"
	cp $STATUS "$OUT/$name.status"
	vol_down
}

mkdir -p $M
modprobe -q xfs || true
vol_ram "$FAST" 512
for one in "${VARIANTS[@]}"; do variant "$one"; done
drop() { echo $((GOT[$1.before] - GOT[$1.after])); }
scan() { echo $((GOT[$1.warm] - GOT[$1.scanned])); }
for one in "${VARIANTS[@]}"; do
	figure "$one: fast hits when warm" "${GOT[$one.warm]}" "of 10000"
	figure "$one: fast hits while the database compacts" "${GOT[$one.churn]}" "of 10000"
	figure "$one: fast hits before the big compaction" "${GOT[$one.before]}" "of 10000"
	figure "$one: fast hits right after it" "${GOT[$one.after]}" "of 10000"
	if [ "$one" = all ]; then
		bar "all: hits lost by a full scan" "$(scan all)" "of 10000" 100
		bar "all: hits lost by the big compaction" "$(drop all)" "of 10000" 200
		bar "all: IBIR, dead among what was brought up" "${GOT[all.ibir]}" "of 10000" 100
		bar "all: IBOR, dead in the fast tier" "${GOT[all.ibor]}" "of 10000" 100
	else
		figure "$one: hits lost by a full scan" "$(scan "$one")" "of 10000"
		figure "$one: hits lost by the big compaction" "$(drop "$one")" "of 10000"
		figure "$one: IBIR" "${GOT[$one.ibir]}" "of 10000"
		figure "$one: IBOR" "${GOT[$one.ibor]}" "of 10000"
	fi
done
bars_end
