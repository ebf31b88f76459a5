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

# ---- steady state and warm-up, against the optimum of the very same trace: a window is a pass over the hot set ----
# after NAME KEY N: the figure of the window after N passes
after() { sed -n "$(($3 + 1))s/.*[ ]$2=\([0-9.]*\).*/\1/p" <(grep 'stage=0 ' "$work/$1"); }
# passes_until NAME KEY RATE: passes before the first window of that rate
passes_until() { grep 'stage=0 ' "$work/$1" | sed "s/.* $2=\([0-9.]*\).*/\1/" | awk "\$1 >= $3 { print NR - 1; exit }"; }
# below NAME: percentage points that its worst window lacks to exact counts
below() {
	paste <(grep 'stage=0 ' "$work/optimum" | sed 's/.* counted=\([0-9.]*\).*/\1/') <(grep 'stage=0 ' "$work/$1" | sed 's/.* hit=\([0-9.]*\).*/\1/') |
		awk '$1 - $2 > worst { worst = $1 - $2 } END { print 100 * worst }'
}

for keys in hashed clustered; do
	for load in hotspot zipf; do
		windows=150 pass=$fast
		[ $load = zipf ] || windows=300 pass=$((fast / 2))
		accesses=$((windows * pass))
		"$work/bin/trace" $load $keys $blocks 0.05 1 1 $accesses >"$work/trace"
		"$work/bin/optimum" $blocks $fast 1 $accesses $windows $pass <"$work/trace" >"$work/optimum"
		best=$(tail -1 "$work/optimum" | sed 's/.* optimum=\([0-9.]*\).*/\1/')
		for heat in ralt clock lru; do
			replay $heat load=trace heat=$heat accesses=$accesses windows=$windows <"$work/trace"
			figure "$load $keys $heat: hit rate at the end $(last_window $heat), optimum $best"
		done
		claim "$load $keys: ralt within 2 points of the optimum" "$(last_window ralt)" '>=' "$best - 0.02"
		figure "$load $keys: in passes 1 to 6: $(for n in 0 1 2 3 4 5; do echo "$(after ralt hit $n) of $(after optimum reachable $n);"; done | xargs) optimum $best"
		until=$(passes_until ralt hit "$best - 0.02")
		figure "$load $keys: 2 points below the optimum after $until passes; on demand none can before $(passes_until optimum reachable "$best - 0.02"), who counts exactly and moves for nothing is after $(passes_until optimum counted "$best - 0.02")"
		claim "$load $keys: points below who counts exactly and moves for nothing, worst pass" "$(below ralt)" '<=' 2
		claim "$load $keys: by then each hot block has come so often, times" "$(after optimum passes "$until")" '<' 3
		claim "$load $keys: after 3 passes within 2 points of what can be reached on demand" "$(after ralt hit 3)" '>=' "$(after optimum reachable 3) - 0.02"
		claim "$load $keys: after 3 passes 90 % of the steady hit rate" "$(after ralt hit 3)" '>=' "0.9 * $(last_window ralt)"
		if [ $load = zipf ]; then
			claim "zipf $keys: ralt beats clock" "$(last_window ralt)" '>' "$(last_window clock)"
			claim "zipf $keys: clock beats lru" "$(last_window clock)" '>' "$(last_window lru)"
		fi
		ghost=$(total lru ghost_hit)
		claim "$load $keys: ghost cache within 2 points of the lru run" "$ghost" '<=' "$(last_window lru) + 0.02"
		claim "" "$ghost" '>=' "$(last_window lru) - 0.02"
	done
done

# ---- passes in which each hot block comes once (decisions/policy-three-passes.md) ----
for keys in hashed clustered; do
	pass=$((fast * 50 / 95)) windows=300
	"$work/bin/trace" laps $keys $blocks 0.05 1 1 $((windows * pass)) >"$work/trace"
	best=$("$work/bin/optimum" $blocks $fast 1 $((windows * pass)) $windows <"$work/trace" | tail -1 | sed 's/.* optimum=\([0-9.]*\).*/\1/')
	replay laps load=trace heat=ralt accesses=$((windows * pass)) windows=$windows <"$work/trace"
	figure "laps $keys: in passes 1 to 6: $(for n in 0 1 2 3 4 5; do after laps hit $n; done | xargs) optimum $best"
	claim "laps $keys: within 2 points of the optimum in less than 3 passes" "$(passes_until laps hit "$best - 0.02")" '<' 3
done

# ---- do no harm ----
replay uniform load=uniform accesses=2000000
claim "uniform: promoted per access" "$(total uniform promoted) * $blocks / 2000000" '<' 0.01
claim "uniform: promoted, share of the data, after ten passes" "$(total uniform promoted)" '<' 0.01

# ---- whom to demote (PrismDB Fig. 5) ----
# PrismDB rewrites what lies below at every demotion: so does `random` there.  Ours may append, and MSC says when.
# Like for like, both with the same moves, is a figure without a bar beside that of a choice that knows every block:
# decisions/policy-random-victims.md.
demotions() {	# NAME ARGS...
	replay "$@" load=zipf writes=0.5
	figure "$1: $(grep -o 'hit=.*' "$work/$1" | tail -1)"
}
like_for_like() {	# NAME BY
	figure "$1: random writes $(awk "BEGIN { printf \"%.2f\", $(total random$2 slow_written) / $(total approx$2 slow_written) }") x approx below, and $(awk "BEGIN { printf \"%.2f\", $(total random$2 slow_written) / $(total knowing$2 slow_written) }") x a choice that knows every block"
}
for heat in clock ralt; do
	for appends in 1 0; do
		for rule in precise approx random oldest hotrap; do
			demotions $rule$appends keys=clustered accesses=600000 heat=$heat rule=$rule appends=$appends
		done
		claim "$heat, appends=$appends: approx writes at most 1.1 x precise below" "$(total approx$appends slow_written)" '<=' "1.1 * $(total precise$appends slow_written)"
		claim "$heat, appends=$appends: approx writes less than random below" "$(total approx$appends slow_written)" '<' "$(total random$appends slow_written) / 1.4"
		claim "$heat, appends=$appends: approx decides 10 x faster than precise" "$(total precise$appends choice_ns)" '>=' "10 * $(total approx$appends choice_ns)"
	done
	claim "$heat: approx writes at most 1/2.5 of PrismDB's random below" "$(total approx1 slow_written)" '<=' "$(total random0 slow_written) / 2.5"
done
for keys in clustered hashed; do
	for appends in 1 0; do
		for rule in approx random; do
			demotions $rule$appends keys=$keys accesses=2400000 heat=clock rule=$rule appends=$appends
		done
		demotions knowing$appends keys=$keys accesses=2400000 heat=clock knows_all=1 appends=$appends
		like_for_like "$keys, $([ $appends = 1 ] && echo append or merge || echo always merge)" $appends
	done
done
policy_end
