#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The bar of warming up: the right pass is judged, against what comes in the end, above the slow drive, and not where passes are too few.
# host: timeout=60
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/bench/warm.bash"

CSV=$OUT/warm.csv
# passes LOAD SYSTEM IOPS...: in the file, behind what is there
passes() {
	local load=$1 system=$2 pass=0 iops
	shift 2
	for iops in "$@"; do
		pass=$((pass + 1))
		echo "$load,$system,$pass,$iops" >> "$CSV"
	done
}
echo load,system,pass,iops > "$CSV"
passes zipf terrace 150 200 460 480 500 500 500 500 500 500
passes zipf bcache 500 500 500 500 500 500 500 500 500 500
passes hot terrace 100 280 400 490 500 500 510
passes short terrace 100 200 300 400 500
passes useless terrace 100 90 90 90 80 80 90

# what is hot: a twentieth of the volume, the tier where all of it would not fit, the tier for Zipf
check_eq "hot blocks of a hotspot" "$(hot_blocks zoned:95/5:5/95 524288 52428)" 26214
check_eq "hot blocks of one that does not fit" "$(hot_blocks zoned:95/5:5/95 524288 10485)" 10485
check_eq "hot blocks of Zipf" "$(hot_blocks zipf:0.99:0.25 524288 52428)" 52428
check_eq "hot blocks of anything anywhere" "$(hot_blocks '' 524288 52428)" 52428
# three passes over it: three of ours, or one and a half, or a few accesses more than two
check_eq "the pass of Zipf" "$(warm_pass 52428 52428)" 3
check_eq "the pass of a hotspot" "$(warm_pass 26214 52428)" 2
check_eq "the pass where a third does not quite do" "$(warm_pass 667 1000)" 3
check_eq "the pass of very little" "$(warm_pass 1 52428)" 1

# (460 - 100) / (500 - 100), and not 460 / 500, nor another pass, system or load
check_eq "gain in the third pass" "$(warm_gain "$CSV" zipf terrace 3 100)" 900
check_eq "gain in the second" "$(warm_gain "$CSV" zipf terrace 2 100)" 250
check_eq "gain of the other" "$(warm_gain "$CSV" zipf bcache 3 100)" 1000
# in the end: the mean of 500, 500, 510
check_eq "gain with a rising end" "$(warm_gain "$CSV" hot terrace 2 0)" 556
# passes too few for an end that is later than what is judged
check_eq "gain in too few passes" "$(warm_gain "$CSV" short terrace 3 100)" ""
check_eq "gain in just enough" "$(warm_gain "$CSV" short terrace 2 100)" 333
check_eq "gain of what was not run" "$(warm_gain "$CSV" zipf cache-64 3 100)" ""
# who ends at the slow drive's speed, or below, has warmed up to nothing
check_eq "gain of no gain" "$(warm_gain "$CSV" useless terrace 3 100)" 0

echo "ok: the third pass over the hot set, of the steady gain"
