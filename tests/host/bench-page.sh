#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The page of benchmarks says what was missed, what was not run, which switch changes nothing, and where two runs disagree.
# host: timeout=180
. "$TERRACE_TREE/tests/host/lib.sh"

# what papers have: four words a line, and no ratio that is neither a number nor said to be not known
! grep -v '^#' tests/bench/papers | grep -vE '^.* => .* => (not known|-?[0-9]+) => .+$' || die "tests/bench/papers has such lines"

mkdir -p "$OUT/tree/tests/drive" "$OUT/tree/build/bench"
cp -r tests/bench "$OUT/tree/tests/"
cp -r fio-jobs "$OUT/tree/"
cp tests/drive/preset.c "$OUT/tree/tests/drive/"
cd "$OUT/tree" || exit
printf '%s\n' 'policy: made up => it is made up' 'policy: ^rule-oldest: => it is not done' > tests/bench/analysis
printf '%s\n' '# one' 'on xfs: C; terrace$ => a paper, Figure 3 => 640 => its page 7' '; paths$ => none => not known => no more' > tests/bench/papers
PAGE=Documentation/benchmarks/README.md

# ran NAME[/PART] STATUS: what tests/bench/run leaves of it; its rows from standard input
ran() {
	mkdir -p "build/bench/$1"
	cat > "build/bench/$1/bars.csv"
	echo "$2" > "build/bench/$1/status"
	echo "TERRACE_BENCH_ENV=\"VOLUME_MB=256\" tests/bench/run ${1/\//:}" > "build/bench/$1/command"
	echo 1234567 > "build/bench/$1/source"
	printf '%s\n' 'QEMU emulator version 7.2.22' 'fio 3.33-3' > "build/bench/$1/versions"
	echo "[    0.000000] Linux version 6.1.0-1-amd64 (x)" > "build/bench/$1/kernel.log"
	printf '# fast: 256 MiB on the fast drive alone\n%s: 1 of 2 bars missed\n' "${1%%/*}" > "build/bench/$1/output"
	[[ $1 != */* ]] || tests/bench/run -n "${1%%/*}" > /dev/null || true	# its parts together
}
has() { grep -qE -e "$1" $PAGE || { cat $PAGE; die "the page has no line like '$1'"; }; }
has_not() { ! grep -qE -e "$1" $PAGE || die "the page has a line like '$1'"; }

ran tier-nvme-hdd/zipf-read 1 <<'TEXT'
tier-nvme-hdd,zipf-read; bcache; iops,500,a second,,,
tier-nvme-hdd,zipf-read; bcache; p99,9000,us,,,
tier-nvme-hdd,zipf-read; terrace; iops,700,a second,,,
tier-nvme-hdd,zipf-read: terrace; of the best static placement,800,o/oo,>=,950,MISSED
tier-nvme-hdd,zipf-read: made up,7,o/oo,>=,5,met
TEXT
ran tier-nvme-hdd/hotspot-mixed 1 <<'TEXT'
tier-nvme-hdd,hotspot-mixed; terrace; iops,4321,a second,,,
tier-nvme-hdd,hotspot-mixed: warming up; gain above the slow drive in pass 2,800,o/oo,>=,900,MISSED
TEXT
ran policy/default 0 <<'TEXT'
policy,zipf-mixed; default; iops,1000,a second,,,
policy,zipf-mixed; default; slow_reads,100,o/oo,,,
TEXT
ran policy/heat-lru 0 <<'TEXT'
policy,zipf-mixed; heat-lru; iops,900,a second,,,
policy,zipf-mixed; heat-lru; slow_reads,100,o/oo,,,
TEXT
ran policy/rule-oldest 0 <<'TEXT'
policy,zipf-mixed; rule-oldest; iops,1009,a second,,,
policy,zipf-mixed; rule-oldest; slow_reads,100,o/oo,,,
policy,made up,3,o/oo,<=,2,MISSED
TEXT
ran policy/no-clean-slots 0 <<'TEXT'
policy,zipf-mixed; no-clean-slots; iops,1001,a second,,,
policy,zipf-mixed; no-clean-slots; slow_reads,100,o/oo,,,
TEXT
ran db/rocksdb-xfs 1 <<'TEXT'
db,rocksdb on xfs: C; slow; rate,100,a second,,,
db,rocksdb on xfs: C; fast; rate,1100,a second,,,
db,rocksdb on xfs: C; terrace; rate,600,a second,,,
db,rocksdb on xfs: C: terrace; of the slow drive alone,900,o/oo,>=,1000,MISSED
TEXT
ran moves 0 <<'TEXT'
moves,cold reads at depth 1; terrace; p99_ns,16768,ns,,,
moves,cold reads at depth 1; terrace; p999_ns,32384,ns,,,
moves,clean_slots=1: 8 blocks go down again: written to the disk,0,KiB,,,
moves,clean_slots=1: time they take,100,us,,,
moves,clean_slots=0: 8 blocks go down again: written to the disk,32,KiB,,,
moves,clean_slots=0: time they take,100,us,,,
moves,early_termination=1: reading it,100,us,,,
moves,early_termination=0: reading it,100,us,,,
TEXT
printf '%s\n' 'zipf-read; bcache; iops,500,503' 'zipf-read; terrace; iops,700,720' > build/bench/tier-nvme-hdd/zipf-read/again.csv

expect 0 'README.md: 9 bars, 6 missed, 2 of them switches that change nothing' tests/bench/page
has '^\| tier-nvme-hdd \| zipf-read: terrace; of the best static placement \| 800 o/oo \| >= 950 \| not analysed yet \|$'
has '^\| zipf-read: made up \| 7 o/oo \| >= 5 \| met \|$'
has '^    TERRACE_BENCH_ENV="VOLUME_MB=256" tests/bench/run tier-nvme-hdd:zipf-read$'
has '^Kernel 6.1.0-1-amd64, source 1234567, vtime mode'
has '^- versions: QEMU emulator version 7.2.22, fio 3.33-3$'
has '^- seeds: SEED \+ 1 and up'
for script in tests/bench/*.sh; do grep -q '^# seeds: ' "$script" || die "$script does not say its seeds"; done
has '^\| bcache \| 500 \| 9000 \|$'
has '^\| terrace \| 700 \*\*MISSED\*\* \| +\|$'
has '^\| cache-32 \| not run \|'
# a bar of warming up is not one of what the table shows
has '^\| tier-nvme-hdd \| hotspot-mixed: warming up; gain above the slow drive in pass 2 \| 800 o/oo \| >= 900 \|'
has '^\| terrace \| 4321 \|$'
has '^\| policy \| made up \| 3 o/oo \| <= 2 \| it is made up \|$'
has '^\| terrace \| 600 \*\*MISSED\*\* \| 500 \| 640 \(a paper, Figure 3\) \|$'
has '^\| paths \| not run \|'
has '^\| fast \| 1100 \| 1000 \| +\|$'
has '^- in a paper: a paper, Figure 3: its page 7$'
has_not 'other rows: no more'
has '^\| scale \| .* \| \*\*not run\*\* \|$'
has '^\| heat-lru .*IOPS 1000 → 900 \|$'
has '^\| rule-oldest .*\*\*changes no figure by 1 %\*\* \*\*MISSED\*\* \|$'
# a technique that does nothing counts: among the defects, with its analysis, in the script's count, and in what make bench says
has '^\| policy \| rule-oldest: figures that its switch changes by 1 % \| 0 figures \| >= 1 \| it is not done \|$'
has '^\| \[policy\].*; 4 bars, 2 missed;'
has_not '^\| policy \| heat-lru: figures'
has '^\| rule-random .*not run \|$'
has '^\| no-inherit_heat .*not run \|$'
has '^\| no-clean_slots \(table: clean_slots=0\) \| moves \| 8 blocks go down again: written to the disk 0 → 32 \|$'
has '^\| cold reads at depth 1 \| p99, ns \| p99.9, ns \|$'
has '^\| terrace \| 16768 \| 32384 \|$'
has '^\| no-early_termination .*\| moves \| \*\*changes no figure by 1 %\*\* \*\*MISSED\*\* \|$'
has '^\| no-early-termination \(table: early_termination=0\) .*not run \|$'
has '^\| moves \| no-early-termination: figures that its switch changes by 1 % \| 0 figures \|'
# one that does nothing in one script and something in the other is at work
has '^\| no-clean-slots .*\*\*changes no figure by 1 %\*\* \|$'
has_not 'no-clean-slots: figures'
has '1 of 2 figures agree within 1 %'
# which runs nobody has repeated
has '^\| \[tier-nvme-hdd\].*; 3 bars, 2 missed; \*\*two runs not compared\*\* of hotspot-mixed \|$'
has '^\| \[moves\].*; \*\*two runs not compared\*\* \|$'
has '^\| zipf-read; terrace; iops \| 700 \| 720 \| \*\*has to\*\* \|$'
check_eq "variants of policy.sh and its parts" "$(sed -n '/^variants="/,/^"/s/^\([a-z][a-z0-9-]*\)\(\t.*\)\?$/\1/p' tests/bench/policy.sh | grep -v '^variants' | xargs)" \
	"$(sed -n 's/^# bench:.*parts=VARIANTS://p' tests/bench/policy.sh | tr ',' ' ')"
# parts_of NAME: what has a machine of its own
parts_of() { sed -n 's/^# bench:.*parts=[A-Z]*://p' "tests/bench/$1.sh" | tr ',' '\n' | sort | xargs; }
check_eq "parts of tier-share, each share and load" "$(parts_of tier-share)" "$(printf '%s\n' {2,5,10,20}-{zipf-read,hotspot-mixed} | sort | xargs)"
check_eq "parts of tier-shift, each system but ideal, which is in terrace's" "$(parts_of tier-shift)" \
	"$(sed -n 's/^SYSTEMS=.*:-ideal \(.*\)}/\1/p' tests/bench/tier-shift.sh | tr ' ' '\n' | sort | xargs)"
has_not 'bcache; iops \| 500 \| 503'
has '^- \*\*optane\*\*: .*read_lat_ns'

# a script that was stopped says so, and its rows stay
echo 124 > build/bench/tier-nvme-hdd/zipf-read/status
: > build/bench/tier-nvme-hdd/zipf-read/output
expect 0 'README.md' tests/bench/page
has 'ended early with status 124'
has '^\| bcache \| 500 \| 9000 \|$'
# of a script in parts: each that was stopped, and those that were not run
ran db/sqlite-ext4 124 < /dev/null
: > build/bench/db/sqlite-ext4/output
expect 0 'README.md' tests/bench/page
has '^\| \[db\].*sqlite-ext4 ended early with status 124.*not run: rocksdb-ext4, sqlite-xfs, postgres-xfs, postgres-ext4'
has_not 'rocksdb-xfs ended early'
# what was run elsewhere stays, until it is run here
cp $PAGE build/before
mv build/bench/policy build/bench/db build/
expect 0 'README.md' tests/bench/page
cmp $PAGE build/before || die "measuring less loses what was measured before"
ran policy/default 0 <<'TEXT'
policy,zipf-mixed; default; iops,1234,a second,,,
TEXT
expect 0 'README.md' tests/bench/page
has '1234'
has 'IOPS 1234 → 900'

# a page of several sessions: what each part left stays, with its picture and its warm-up, until that part is run anew
rm -r build/bench
ran db/sqlite-ext4 0 <<'TEXT'
db,sqlite on ext4: C; slow; rate,21,a second,,,
TEXT
mkdir -p build/bench/db
echo '<svg' > build/bench/db/sqlite-ext4.svg
ran tier-nvme-hdd/zipf-mixed 0 <<'TEXT'
tier-nvme-hdd,zipf-mixed; bcache; iops,77,a second,,,
TEXT
printf '%s\n' load,system,pass,iops zipf-mixed,bcache,1,31 > build/bench/tier-nvme-hdd/zipf-mixed/warm.csv
expect 0 'README.md' tests/bench/page
rm -r build/bench
ran db/postgres-xfs 0 <<'TEXT'
db,postgres on xfs: select; slow; rate,34,a second,,,
TEXT
echo 89abcde > build/bench/db/postgres-xfs/source
ran tier-nvme-hdd/hotspot-read 0 <<'TEXT'
tier-nvme-hdd,hotspot-read; bcache; iops,78,a second,,,
TEXT
expect 0 'README.md' tests/bench/page
has '^\| rocksdb on xfs: C \|'
has '^\| terrace \| 600 \*\*MISSED\*\* \| 500 \| 640 \(a paper, Figure 3\) \|$'
has '^\| slow \| 21 \|$'
has '^\| slow \| 34 \|$'
has 'tests/bench/run db:rocksdb-xfs$'
has 'tests/bench/run db:postgres-xfs$'
has '^- rocksdb-xfs, sqlite-ext4: Kernel .*source 1234567'
has '^- postgres-xfs: Kernel .*source 89abcde'
has '^!\[db-sqlite-ext4\]'
[ -e Documentation/benchmarks/db-sqlite-ext4.svg ] || die "the picture of a part that was not run anew is gone"
grep -q zipf-mixed,bcache,1,31 Documentation/benchmarks/tier-nvme-hdd.json || die "the warm-up of a part that was not run anew is gone"
has '^\| zipf-read: made up \|'
ran db/sqlite-ext4 0 <<'TEXT'
db,sqlite on ext4: C; slow; rate,22,a second,,,
TEXT
expect 0 'README.md' tests/bench/page
has '^\| slow \| 22 \|$'
has_not '^\| slow \| 21 \|$'
has '^\| slow \| 34 \|$'
has_not 'db-sqlite-ext4.svg'

# a system that a script would not run is not missing
ran tier-harm/zipf-read 0 <<'TEXT'
tier-harm,zipf-read; janitor; iops,5,a second,,,
tier-harm,zipf-read; terrace; iops,6,a second,,,
TEXT
expect 0 'README.md' tests/bench/page
section() { sed -n "/^## $1\$/,/^## /p" $PAGE; }
section tier-harm | grep -q '^| frozen | not run |' || die "tier-harm does not say that frozen was not run"
! section tier-harm | grep -q '^| bcache ' || die "tier-harm has a row of bcache, which it never runs"

# which figures need not agree in two runs, and why; twice compares each part that was run, by the command it left
ran smp 0 <<'TEXT'
smp,8-way; dm-linear; 1 CPU,100,IOPS,,,
TEXT
printf '%s\n' '8-way; dm-linear; 1 CPU,100,200' > build/bench/smp/again.csv
expect 0 'README.md' tests/bench/page
has '^Two runs need not agree in any figure: real time'
has '^\| 8-way; dm-linear; 1 CPU \| 100 \| 200 \| need not \|$'
has '^\| \[smp\].*\| no bars \|$'
# second NAME[/PART] FIGURE: what its command is to leave
second() { echo "sed -i 's/,[0-9]*,a second/,$2,a second/' build/bench/$1/bars.csv" > "build/bench/$1/command"; }
second db/postgres-xfs 34
second db/sqlite-ext4 44
expect 0 '1 of 1 figures agree' tests/bench/twice db:postgres-xfs
expect 1 'sqlite on ext4: C; slow; rate: 22, then 44' tests/bench/twice db
[ -s build/bench/db/sqlite-ext4/again.csv ] || die "twice leaves nothing for the page"
expect 2 'run tests/bench/run db:rocksdb-ext4 first' tests/bench/twice db:rocksdb-ext4
expect 2 'first' tests/bench/twice tier-shift
# make bench-twice: all that were run, or those that are named
cp "$TERRACE_TREE/Makefile" .
expect 0 '^tests/bench/twice db smp tier-harm tier-nvme-hdd;' make -n bench-twice
expect 0 '^tests/bench/twice io;' make -n bench-twice SCRIPTS=io
rm Makefile
second smp 300
sed -i 's/100,IOPS/100,a second/' build/bench/smp/bars.csv
expect 0 'need not agree' tests/bench/twice smp

echo "ok: the page says what there is, and what is not"
