#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/run tells passed, failed and skipped apart, and what it was asked wrongly.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"

unset SEED TERRACE_RESULTS
# a tree with toy tests
mkdir -p "$OUT/tree/tests/host" "$OUT/tree/tests/vm"
cp -r tests/run "$OUT/tree/tests/"
cp -r scripts "$OUT/tree/"
cd "$OUT/tree" || exit
toy() { printf '#!/bin/bash\n# %s\n%s\n' "$2" "$3" > "tests/host/$1.sh"; }
toy good "This one passes." 'true'
toy bad "This one fails." 'seq 100; echo the reason; exit 3'
toy away "This one skips." 'echo "skip: no such drive"; exit 77'
toy mute "This one skips without a reason." 'exit 77'
toy slow "host: timeout=1" 'sleep 30'
toy good-more "host: long" 'true'

expect 0 '^1 passed, 0 failed, 0 skipped$' tests/run --no-build host/good
expect 0 '^2 passed, 0 failed, 0 skipped$' tests/run --no-build good
expect 1 '^FAIL  host/bad .*\(exit status 3\)$' tests/run --no-build bad
expect 1 '\| the reason$' tests/run --no-build bad
expect 1 'whole log: build/test/host/bad.log' tests/run --no-build bad
expect 0 '^SKIP  host/away .*\(no such drive\)$' tests/run --no-build away
expect 0 '^0 passed, 0 failed, 1 skipped$' tests/run --no-build away
expect 1 'skipped without a line' tests/run --no-build mute
expect 1 'time limit of 1 s' tests/run --no-build slow
expect 1 '^1 passed, 3 failed, 1 skipped$' tests/run --no-build all
expect 1 '^2 passed, 3 failed, 1 skipped$' tests/run --no-build --long all
expect 1 '^failed: .*host/bad' tests/run --no-build all

expect 2 "no test called 'goood'; near: .*good" tests/run goood
expect 2 "no test called 'zzzz'; tests/run -l lists them" tests/run zzzz
expect 2 'no vm tests exist yet' tests/run vm
expect 2 'say what to run: unit host vm' tests/run
expect 2 'option --fast not recognized' tests/run --fast all
expect 2 "bad number of jobs '0'" tests/run -j 0 all
expect 2 "no installed kernel matches '4.19'" tests/run -k 4.19 all
expect 2 "no installed kernel matches '4.19'; run: scripts/setup --kernel 4.19" env TERRACE_KERNEL=4.19 tests/run all
expect 0 'host/bad +This one fails.' tests/run -l
# the longest of the last time comes first
printf 'host/good 5\nhost/good-more 9\n' > build/test/times
tests/run --no-build --long -j1 host/good host/good-more > "$OUT/order"
check_eq "order" "$(grep -o 'host/[a-z-]*' "$OUT/order" | xargs)" "host/good-more host/good"
grep -q '^host/good 0\.' build/test/times || die "the time of host/good was not noted"
for bad in fast=1 timeout=soon; do
	toy odd "host: $bad" 'true'
	expect 2 "tests/host/odd.sh: (unknown word|bad timeout)" tests/run odd
done
rm tests/host/odd.sh
# an end from outside is one for what runs, too
toy long "host: timeout=100" 'sleep 90'
tests/run --no-build long > /dev/null 2>&1 & run=$!
while ! pgrep -f "$OUT/tree/tests/host/long.sh" > /dev/null; do sleep 0.1; done
kill $run
SECONDS=0
wait $run || true
[ $SECONDS -lt 60 ] || die "tests/run waited $SECONDS s for a test that it was told to stop"
rm tests/host/long.sh
# each run is on record
[ "$(cut -f 1,2,3,4,6 build/test/results.tsv | sort | uniq -c | awk '$2 == "host/slow" { print $1, $3, $4, $5, $6 }')" = "4 - - - FAIL" ] ||
	die "results.tsv: $(cat build/test/results.tsv)"
SEED=7 TERRACE_RESULTS=$OUT/results tests/run --no-build good > /dev/null
check_eq "seeds" "$(cut -f 4 "$OUT/results" | sort -u)" 7
expect 0 '^host/bad  .* [1-9][0-9]* runs, 0 passed, [1-9][0-9]* failed, 0 skipped; 1 commits, kernels -' tests/run --made bad
expect 0 '^host/mute .* 0 runs, 0 passed, 0 failed, 0 skipped$' env TERRACE_RESULTS="$OUT/none" tests/run --made host
# what was counted is added up, a test's runs of one seed once, and what was so in runs that passed
counts() { toy counts "Counts." "echo 'counted: $1 $2, seed $3'; $4"; TERRACE_RESULTS=$OUT/counted tests/run --no-build counts > /dev/null || [ "$4" != true ]; }
counts 40 cuts 1 true
counts 30 cuts 1 true
counts 5 cuts 2 true
counts 1000 states 1 true
counts 7 faults 1 true
counts 900 cuts 3 false
toy counts "Counts twice." "echo 'counted: 60 cuts, seed 9'; echo 'counted: 4 cuts, seed 9'"
TERRACE_RESULTS=$OUT/counted tests/run --no-build counts > /dev/null
said='survived: 2009, of which 1000 states .*, 1009 cuts recovered by the module; failed writes and flushes: 7$'
expect 0 "$said" env TERRACE_RESULTS="$OUT/counted" tests/run --made
expect 0 'in runs that passed: 1109, of which 1000 states .*, 109 cuts .*: 7$' env TERRACE_RESULTS="$OUT/counted" tests/run --made counts
