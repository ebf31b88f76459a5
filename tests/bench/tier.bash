# SPDX-License-Identifier: GPL-2.0-or-later
# Loads on all systems of systems.bash, in one boot; sourced by tests/bench/tier-*.sh,
# which name the drives and the bars.
#
# tier_table LOAD	runs fio-jobs/tier-LOAD.fio on every one of $SYSTEMS: warms up for $PASSES passes (a
#			pass: as many accesses as the fast tier has blocks), and for $WARM_S seconds at least; then
#			measures $IOS accesses with a seed of their own; then has everything dirty written down; its
#			rows are those of the table $TABLE, or LOAD
# got SYSTEM WORD		what the last table had: $WORDS; "" if it was not measured
# best_peer, least_written	the best IOPS of the peers that were measured; the fewest MiB they wrote to the slow drive
# beside_peers LOAD	the bars of a load that also writes: twice the best of them, half of the least written
# warm_bar LOAD		the bar of warming up: what terrace gains above the slow drive in three passes over the hot set (warm.bash)
# of_peers WHAT FIGURE LIMIT	a bar; when only some peers were measured it can be missed, not met
#
# PROFILE=yes, in a machine with the plugin (scripts/vm --plugin build/bench/profile.so), counts what the measured part consists of:
# $OUT/profile-LOAD-SYSTEM, for tests/bench/apart, with $OUT/symbols and, of terraced, $OUT/maps-LOAD-SYSTEM.
#
# The same seeds for all systems, others for measuring. Figures of each pass are
# lines of $OUT/warm.csv: load,system,pass,iops.
#
# shellcheck shell=bash

. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/systems.bash"
. "$TERRACE_TREE/tests/bench/warm.bash"

PEERS=${PEERS:-cache-32 cache-64 cache-256 writecache bcache}
SYSTEMS=${SYSTEMS:-fast slow ideal $PEERS janitor terrace}
SYSTEMS=${SYSTEMS//,/ }
PASSES=${PASSES:-10}
WARM_S=${WARM_S:-60}
IOS=${IOS:-50000}
DEPTH=${DEPTH:-1}
SEED=${SEED:-1000}
PROFILE=${PROFILE:-}
[ -z "$PROFILE" ] || PATH=$TERRACE_TREE/build/bench:$PATH in_ram around
PASS_IOS=$((FAST_MB * 256))
WORDS="iops p99 p999 slow_reads user fast slow wa fast_erases slow_erases"
LOAD=
declare -A GOT SETTINGS_SHOWN

mkdir -p /dev/shm/jobs
cp "$TERRACE_TREE"/fio-jobs/tier-*.fio /dev/shm/jobs/
echo load,system,pass,iops > "$OUT/warm.csv"

# job SEED IOS: the load on $DEV, into TERSE
job() {
	DEV=$DEV SIZE=${VOLUME_MB}m SEED=$1 IOS=$2 DEPTH=$DEPTH COMPRESS=${COMPRESS:-0} ${3:-fio_} --output-format=terse --terse-version=3 \
		--output=/dev/shm/terse "/dev/shm/jobs/tier-$LOAD.fio" 2> /dev/shm/e > /dev/null || die "fio on $DEV: $(head -3 /dev/shm/e)"
	IFS=';' read -ra TERSE < <(grep '^3;' /dev/shm/terse)
	[ "${TERSE[4]}" = 0 ] || die "fio ended with error ${TERSE[4]}"
}
# reads and writes together; runtimes are milliseconds
job_iops() { echo $((TERSE[7] + TERSE[48])); }
percentile() {	# 99.900000: the worse of reads and writes, us
	local word most=0
	for word in "${TERSE[@]}"; do
		[[ $word != "$1%="* ]] || [ "${word#*=}" -le "$most" ] || most=${word#*=}
	done
	echo "$most"
}

up_s() { cut -d. -f1 /proc/uptime; }

warm_up() {	# SYSTEM
	local pass begin left kb=0
	begin=$(up_s)
	USER_KB=0
	# nothing to warm up: each I/O is as the first
	case $1 in fast|slow|ideal) return ;; esac
	for ((pass = 1; pass <= PASSES; pass++)); do
		job $((SEED + pass)) "$PASS_IOS"
		echo "${TABLE:-$LOAD},$1,$pass,$(job_iops)" >> "$OUT/warm.csv"
		kb=$((kb + TERSE[46]))
		# what works by the clock gets its time as well
		left=$((WARM_S * pass / PASSES - $(up_s) + begin))	# (once: it may be a second later the next time)
		[ $left -le 0 ] || sleep $left
	done
	USER_KB=$kb
}

# as fio_, between the marks of the plugin
counted() { from_ram around "$RAM/fio" "$@"; }

profiled() {	# SYSTEM
	[ -s "$OUT/profile" ] || die "the plugin counted nothing: is the machine run with --plugin?"
	mv "$OUT/profile" "$OUT/profile-$LOAD-$1"
	grep -E ' [tTwW] ' /proc/kallsyms > "$OUT/symbols"
	[ -z "$daemon" ] || cp "/proc/$daemon/maps" "$OUT/maps-$LOAD-$1"
}

measure() {	# SYSTEM
	local s=$1 slow_reads
	slow_reads=$(drive_get slowd reads)
	job $((SEED - 1)) "$IOS" ${PROFILE:+counted}
	[ -z "$PROFILE" ] || profiled "$s"
	GOT[$s-iops]=$(job_iops)
	GOT[$s-p99]=$(percentile 99.000000)
	GOT[$s-p999]=$(percentile 99.900000)
	GOT[$s-slow_reads]=$((($(drive_get slowd reads) - slow_reads) * 1000 / IOS))
	USER_KB=$((USER_KB + TERSE[46]))
}

# What the drives programmed since the system was set up, folding out of an SLC buffer included, when all that was dirty
# has been written down: of what users wrote, and in erase units.
wear() {	# SYSTEM
	local s=$1 programmed
	programmed=$(($(drive_get fastd programmed) + $(drive_get slowd programmed)))
	[ -z "$MID" ] || programmed=$((programmed + $(drive_get midd programmed)))
	GOT[$s-wa]=
	[ "$USER_KB" = 0 ] || GOT[$s-wa]=$((programmed * 1000 / 1024 / USER_KB))
	GOT[$s-fast_erases]=$(drive_get fastd erases)
	GOT[$s-slow_erases]=$(drive_get slowd erases)
}

run_system() {
	local s=$1
	SECONDS=0
	system_up "$s"
	warm_up "$s"
	measure "$s"
	system_settle "$s"
	GOT[$s-fast]=$(($(drive_get fastd write_bytes) / 1048576))
	GOT[$s-slow]=$(($(drive_get slowd write_bytes) / 1048576))
	GOT[$s-user]=$((USER_KB / 1024))
	wear "$s"
	[ "$s" != slow ] || GOT[$s-fast]=0 GOT[$s-fast_erases]=0
	[ "$s" != fast ] || GOT[$s-slow]=0 GOT[$s-slow_erases]=0
	[ "${SETTINGS_SHOWN[$s]:-}" ] || echo "# $s: $(system_settings "$s")"
	SETTINGS_SHOWN[$s]=yes
	system_down "$s"
}

tier_table() {
	local s lacks
	LOAD=$1
	IDEAL=$(sed -n 's/^random_distribution=//p' "/dev/shm/jobs/tier-$LOAD.fio")
	GOT=()
	[ "${SETTINGS_SHOWN[models]:-}" ] || echo "# $(models)"
	SETTINGS_SHOWN[models]=yes
	echo "# $LOAD: $FAST_MB MiB before $VOLUME_MB MiB, depth $DEPTH; warmed up by $PASSES passes of $PASS_IOS accesses, seeds $((SEED + 1)) to $((SEED + PASSES)); measured: $IOS, seed $((SEED - 1))"
	for s in $SYSTEMS; do
		[ "$s" != ideal ] || [[ $IDEAL = z* ]] || continue
		lacks=$(system_lacks "$s")
		[ -z "$lacks" ] || { printf '%-18s %-12s not available here: %s\n' "$LOAD" "$s" "$lacks"; continue; }
		run_system "$s"
		printf '%-18s %-12s %7s IOPS  p99 %7s  p99.9 %7s us  slow reads %4s o/oo  written, MiB: user %6s fast %6s slow %6s, amplified %5s o/oo\n' "$LOAD" "$s" \
			"${GOT[$s-iops]}" "${GOT[$s-p99]}" "${GOT[$s-p999]}" "${GOT[$s-slow_reads]}" "${GOT[$s-user]}" "${GOT[$s-fast]}" "${GOT[$s-slow]}" "${GOT[$s-wa]:--}"
		system_rows "${TABLE:-$LOAD}" "$s" "$s"
	done
}

unit_of() { case $1 in iops) echo a second ;; p9*) echo us ;; slow_reads | wa) echo o/oo ;; *_erases) echo erases ;; *) echo MiB ;; esac; }

# system_rows TABLE NAME SYSTEM: what there is of it, as NAME's
system_rows() {
	local word
	for word in $WORDS; do
		[ -z "${GOT[$3-$word]}" ] || bars_row "$BARS_SCRIPT" "$1; $2; $word" "${GOT[$3-$word]}" "$(unit_of "$word")" "" "" ""
	done
}

got() { echo "${GOT[$1-$2]:-}"; }

# the peer with the most IOPS that was measured
best_peer() {
	local s best=0
	for s in $PEERS; do [ "${GOT[$s-iops]:-0}" -le "$best" ] || best=${GOT[$s-iops]}; done
	echo "$best"
}
# the_peers: if all of them were measured; else the names of those that were
the_peers() {
	local s had=
	for s in $PEERS; do [ -z "${GOT[$s-iops]:-}" ] || had+="${had:+ }$s"; done
	if [ "$had" = "$PEERS" ]; then echo "the peers"; else echo "${had// / and } alone"; fi
}
# WHAT has the words "the peers", FIGURE is in o/oo. Who beats one peer has not beaten the best of five; who does not, has
# missed that as well.
of_peers() {
	local what=${1/the peers/$(the_peers)} met=yes
	case $3 in
	-*)	[ "$2" -ge "${3#-}" ] || met= ;;
	*)	[ "$2" -le "$3" ] || met= ;;
	esac
	if [ "$met" ] && [ "$what" != "$1" ]; then figure "$what" "$2" o/oo; else bar "$what" "$2" o/oo "$3"; fi
}
# the fewest MiB that a peer which caches writes wrote to the slow drive
least_written() {
	local s least=
	for s in $PEERS; do
		[ "${GOT[$s-slow]:-}" ] || continue
		[ "$least" ] && [ "${GOT[$s-slow]}" -ge "$least" ] || least=${GOT[$s-slow]}
	done
	echo "$least"
}

# where both sides were measured
beside_peers() {
	[ "$(best_peer)" = 0 ] || of_peers "$1: terrace, of the best of the peers" $(($(got terrace iops) * 1000 / $(best_peer))) -2000
	[ -z "$(least_written)" ] || of_peers "$1: written to the slow drive, of the least of the peers" \
		$(($(got terrace slow) * 1000 / ($(least_written) + 1))) 500
}

warm_bar() {
	local hot pass gain
	[ "$(got slow iops)" ] || { echo "# $1: warming up is not judged, for the slow drive alone was not measured"; return; }
	hot=$(hot_blocks "$IDEAL" $((VOLUME_MB * 256)) "$PASS_IOS")
	pass=$(warm_pass "$hot" "$PASS_IOS")
	gain=$(warm_gain "$OUT/warm.csv" "${TABLE:-$1}" terrace "$pass" "$(got slow iops)")
	[ "$gain" ] || { echo "# $1: warming up is not judged: $PASSES passes are too few, $((pass + WARM_LAST)) would do"; return; }
	bar "$1: warming up, gain above the slow drive in pass $pass (each $PASS_IOS accesses, as many as the fast tier has blocks; three over the $hot hot blocks end there), of the last $WARM_LAST passes' gain" \
		"$gain" o/oo -900
}
