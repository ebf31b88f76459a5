#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A hotspot that grows, shrinks and moves before a disk: seven stages one after the other, each beside its own best static placement.
# bench: mode=vtime memory=4500M timeout=21600 parts=PART:terrace,cache-64,bcache
# seeds: from SEED = 1000 on, a hundred for each stage: + 1 and up for its passes, - 1 to measure
# packages: fio bcache-tools
#
# 95 % of the reads go to so much of the volume, as HotRAP, section 4.6, has it: 2, 4, 6, 4, 2 %, then 2 and 5 %
# elsewhere. A stage: $PASSES passes, then $IOS reads are measured. The systems stay up all
# through; "ideal" is made anew for each stage, with the hot part first on the volume, which is the same to it.
# A system takes a machine of its own for some hours; ideal, which needs no warm-up, is in terrace's, where the bars compare them.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd-simple}
SYSTEMS=${SYSTEMS:-ideal cache-64 bcache terrace}
case ${PART:-} in
'')		;;
terrace)	SYSTEMS="ideal terrace" ;;
*)		SYSTEMS=$PART ;;
esac
. "$TERRACE_TREE/tests/bench/tier.bash"

LOAD="shift"
# hot part, in per cent: zones as fio has them
STAGES="2=zoned:95/2:5/98 4=zoned:95/4:5/96 6=zoned:95/6:5/94 4=zoned:95/4:5/96 2=zoned:95/2:5/98
	2-moved=zoned:3/50:95/2:2/48 5-moved=zoned:4/70:95/5:1/25"
export ZONES

row() {	# NUMBER NAME SYSTEM
	local word
	printf 'stage %s, %-8s %-10s %7s IOPS  p99 %7s  p99.9 %7s us  slow reads %4s o/oo\n' "$1" "$2 %" "$3" "${GOT[$3-iops]}" "${GOT[$3-p99]}" \
		"${GOT[$3-p999]}" "${GOT[$3-slow_reads]}"
	for word in iops p99 p999 slow_reads; do bars_row "$BARS_SCRIPT" "$TABLE; $3; $word" "${GOT[$3-$word]}" "$(unit_of $word)" "" "" ""; done
	GOT[stage-$1-$3]=${GOT[$3-iops]}
	if [ -z "${GOT[stage-$1-ideal]:-}" ] || [ -z "${GOT[stage-$1-terrace]:-}" ]; then return; fi
	bar "stage $1: terrace, of the best static placement" $((GOT[stage-$1-terrace] * 1000 / GOT[stage-$1-ideal])) o/oo -950
}

stages() {	# SYSTEM
	local s=$1 stage number=0 hot
	[ "$s" = ideal ] || system_up "$s"
	for stage in $STAGES; do
		number=$((number + 1)) ZONES=${stage#*=} hot=${stage%%=*}
		TABLE="stage $number (${hot/-/ } %)"	# each has passes from 1 on
		if [ "$s" = ideal ]; then
			IDEAL=zoned:95/${hot%-*}:5/$((100 - ${hot%-*}))
			ZONES=$IDEAL
			system_up ideal
		fi
		SEED=$((SEED + 100))
		warm_up "$s"
		measure "$s"
		row $number "${hot/-/ }" "$s"
		[ "$s" != ideal ] || system_down ideal
	done
	SEED=$((SEED - 100 * number))
	[ "$s" != ideal ] || return 0
	system_settle "$s"
	echo "# $s: $(system_settings "$s")"
	system_down "$s"
}

echo "# $(models)"
echo "# $FAST_MB MiB before $VOLUME_MB MiB, depth $DEPTH; each stage: $PASSES passes of $PASS_IOS accesses, then $IOS measured; seeds from $((SEED + 100)), another hundred for each stage"
for s in ${SYSTEMS//,/ }; do stages "$s"; done
bars_end
