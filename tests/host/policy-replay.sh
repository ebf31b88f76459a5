#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The policies on a simulated volume: hit rates against the offline optimum, costs against each other
#
# host: timeout=1500 long
#
# Each claim is printed with its figure and its bar.
# shellcheck disable=SC2086,SC2154
set -eu
cd "$(dirname "$0")/../.."
. tests/host/policy.bash
tests/replay/build "$work/bin"

# ---- steady state and warm-up, against the optimum of the very same trace ----
for keys in hashed clustered; do
	for load in hotspot zipf; do
		accesses=3000000
		"$work/bin/trace" $load $keys $blocks 0.05 1 1 $accesses >"$work/trace"
		"$work/bin/optimum" $blocks $fast 1 $accesses 60 <"$work/trace" >"$work/optimum"
		best=$(tail -1 "$work/optimum" | sed 's/.* optimum=\([0-9.]*\).*/\1/')
		for heat in ralt clock lru; do
			replay $heat load=trace heat=$heat accesses=$accesses windows=60 <"$work/trace"
			echo "figure   $load $keys $heat: hit rate at the end $(last_window $heat), optimum $best"
		done
		claim "$load $keys: ralt within 2 points of the optimum" "$(last_window ralt)" '>=' "$best - 0.02"
		first=$(grep -m1 '^window' "$work/ralt" | sed 's/.* hit=\([0-9.]*\).*/\1/')
		echo "figure   $load $keys: first window ralt $first, $(head -1 "$work/optimum")"
		if [ $load = zipf ]; then
			claim "zipf $keys: ralt beats clock" "$(last_window ralt)" '>' "$(last_window clock)"
			claim "zipf $keys: clock beats lru" "$(last_window clock)" '>' "$(last_window lru)"
		fi
		ghost=$(total lru ghost_hit)
		claim "$load $keys: ghost cache within 2 points of the lru run" "$ghost" '<=' "$(last_window lru) + 0.02"
		claim "" "$ghost" '>=' "$(last_window lru) - 0.02"
	done
done

# ---- do no harm ----
replay uniform load=uniform accesses=2000000
claim "uniform: promoted per access" "$(total uniform promoted) * $blocks / 2000000" '<' 0.01
claim "uniform: promoted, share of the data, after ten passes" "$(total uniform promoted)" '<' 0.01

# ---- whom to demote (PrismDB Fig. 5) ----
# PrismDB rewrites what lies below at every demotion: so does `random` there.  Ours may append, and MSC says when.
# Like for like no choice of regions does better than twice random (Documentation/policy.md): a figure, no bar.
for heat in clock ralt; do
	for appends in 1 0; do
		for rule in precise approx random oldest hotrap; do
			replay $rule$appends load=zipf keys=clustered writes=0.5 accesses=600000 heat=$heat rule=$rule appends=$appends
			figure "$heat $rule, $([ $appends = 1 ] && echo append or merge || echo always merge): $(grep -o 'hit=.*' "$work/$rule$appends" | tail -1)"
		done
		claim "$heat, appends=$appends: approx writes at most 1.1 x precise below" "$(total approx$appends slow_written)" '<=' "1.1 * $(total precise$appends slow_written)"
		claim "$heat, appends=$appends: approx writes less than random below" "$(total approx$appends slow_written)" '<' "$(total random$appends slow_written)"
		claim "$heat, appends=$appends: approx decides 10 x faster than precise" "$(total precise$appends choice_ns)" '>=' "10 * $(total approx$appends choice_ns)"
	done
	claim "$heat: approx writes at most 1/2.5 of PrismDB's random below" "$(total approx1 slow_written)" '<=' "$(total random0 slow_written) / 2.5"
done
policy_end
