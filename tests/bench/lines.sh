#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Cache misses and shared atomics on a read hit, counted instruction by instruction.
# bench: mode=vtime memory=3G timeout=600 plugin=lines append=noreplace-smp
# seeds: 2 for what is counted, 1 before it
#
# Blocks stand 128 MiB apart in a volume of 1 TiB, each in a region of its own:
# the map's table, regions and places together are ten times the modelled
# cache. Random reads of them are watched from outside (lines/plugin.c).
# New blocks, which take locks, show beside them that the counter counts. (With
# one CPU the kernel takes the lock prefixes out of its code and of ours, unless
# told not to.)
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

REGIONS=${REGIONS:-8192}
READS=${READS:-2000}
STRIDE=$((128 << 20))

PATH=$TERRACE_TREE/build/bench:$PATH in_ram hits
vol_ram 256 9216	# sparse; a volume has room for map pages of four times as many regions as its drives hold
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1T
vol_up stream_kb=0 age_s=86400		# no tick: a region's age byte is written once per tick

# where the module's code lies, for the plugin: with its text.unlikely and init
sections=/sys/module/dm_terrace/sections
start=$(cat $sections/.text)
printf "%x %x\n" "$start" $((start + $(cat /sys/module/dm_terrace/coresize))) > "$OUT/text"

word() { tr ' ' '\n' < "$OUT/lines" | sed -n "s/^$1=//p"; }

from_ram hits "$VOL" write $STRIDE "$REGIONS"
sync "$VOL"
from_ram hits "$VOL" read $STRIDE "$REGIONS" 500 1		# first use of the code
rm -f "$OUT/lines"
from_ram hits "$VOL" new $STRIDE 200
figure "new block: locked instructions" "$(word atomics)" in_200
[ "$(word atomics)" -gt 200 ] || die "the plugin sees no atomics where there are some"
rm -f "$OUT/lines"
from_ram hits "$VOL" read $STRIDE "$REGIONS" 500 3 "$READS" 2
[ -s "$OUT/lines" ] || die "the plugin counted nothing: is the machine run with --plugin?"
[ "$(word ios)" = "$READS" ] || die "the plugin saw $(word ios) of $READS reads"
[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
echo "# $(word ios) read hits: $(word insns) instructions of the module each; mean misses $(word misses)/100, objects missed $(word depth)/100"
bar "read hit: dependent cache misses (99 % of reads)" "$(word depth_max)" misses 3
bar "read hit: missed lines, side by side or not (99 %)" "$(word misses_max)" lines 6
bar "read hit: shared atomics" "$(word atomics)" in_all 0
bar "read hit: missed lines that are written" "$(word stores)" /100 0
vol_down
bars_end
