#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the daemon's loop foretells of other heat sources, pinning thresholds and fast sizes, beside what comes of them on a simulated volume.
#
# host: timeout=2400 long
#
# The hotspot's half fast tier is exactly as large as its hot set: a cliff, off which a small error falls far.
# SEED: another sample of the load's blocks.
# shellcheck disable=SC2154
set -eu
cd "$(dirname "$0")/../.."
. tests/host/policy.bash
tests/replay/build "$work/bin" whatif

# foretells LOAD KEYS WRITES
foretells() {
	local setting foretold real
	"$work/bin/whatif" "$1" "$2" "$3" "${ACCESSES:-1500000}" 0 ralt "${SEED:-0}" > "$work/said"
	[ "$(wc -l < "$work/said")" = 8 ] || { cat "$work/said"; exit 1; }
	while read -r setting foretold real; do
		foretold=${foretold#*=} real=${real#*=}
		claim "$1 $2, writes $3, $setting: foretold, within 2 points of what comes" "$foretold" '>=' "$real - 0.02"
		claim "" "$foretold" '<=' "$real + 0.02"
	done < "$work/said"
}

while read -r load keys writes; do foretells "$load" "$keys" "$writes"; done <<< "${LOADS:-zipf hashed 0
zipf clustered 0.5
hotspot hashed 0
hotspot hashed 0.5
hotspot clustered 0
uniform hashed 0}"
policy_end
