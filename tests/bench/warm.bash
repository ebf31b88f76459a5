# SPDX-License-Identifier: GPL-2.0-or-later
# How fast a system warms up, from warm.csv (load,system,pass,iops); sourced by tier.bash.
#
# A pass of ours is as many accesses as the fast tier has blocks. DESIGN §12 counts passes over the hot set, as many
# accesses as that has blocks, which may be fewer: three of those over half of the fast tier are one and a half of ours.
#
# hot_blocks DISTRIBUTION VOLUME FAST	of the set that accesses go to, as fio describes them: a first zone's share of the volume; of
#					Zipf, or where more is hot than the fast tier holds, the fast tier's
# warm_pass HOT FAST			in which of our passes the third over the hot set ends
# warm_gain FILE LOAD SYSTEM PASS BASE	IOPS in that pass, above BASE, of what they come to in the end, above BASE: o/oo. In the
#					end: the mean of the last three passes, all of them later. 0 where there is
#					no gain, "" where the file has too few passes
#
# shellcheck shell=bash

WARM_LAST=3

hot_blocks() {
	local share=0
	[[ $1 != zoned:* ]] || { share=${1#*/}; share=${share%%:*}; }
	if [ "$share" -gt 0 ] && [ $(($2 * share / 100)) -lt "$3" ]; then echo $(($2 * share / 100)); else echo "$3"; fi
}

warm_pass() { echo $(((3 * $1 + $2 - 1) / $2)); }

warm_gain() {
	awk -F, -v table="$2" -v name="$3" -v at="$4" -v base="$5" -v last=$WARM_LAST '
		$1 == table && $2 == name { iops[$3] = $4; if ($3 > most) most = $3 }
		END {
			if (most + 0 < at + last || !(at in iops)) exit
			for (pass = most - last + 1; pass <= most; pass++) steady += iops[pass] / last
			print (steady > base) ? int((iops[at] - base) * 1000 / (steady - base)) : 0
		}' "$1"
}
