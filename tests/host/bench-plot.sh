#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The pictures of benchmarks: each table of a tier script has its systems and its own warm-up, under a name that may stand in a link.
# host: timeout=60
. "$TERRACE_TREE/tests/host/lib.sh"

mkdir -p "$OUT/tree/tests/bench" "$OUT/bin"
cp tests/bench/plot "$OUT/tree/tests/bench/"
cd "$OUT/tree" || exit

# draws nothing: notes what would be drawn, with the points, and makes the files
cat > "$OUT/bin/gnuplot" <<'SH'
#!/bin/bash
while read -r line; do
	echo "$line"
	[[ $line != *"set output '"* ]] || { file=${line##*set output \'}; : > "${file%%\'*}"; }
	for word in $line; do [[ $word != *"'/"*"'" ]] || sed 's/^/point /' "$(cut -d"'" -f2 <<< "$word")"; done
done >> "$DRAWN"
SH
chmod +x "$OUT/bin/gnuplot"
export DRAWN=$OUT/drawn PATH=$OUT/bin:$PATH

mkdir -p build/bench/tier-{shift,share}
cat > build/bench/tier-shift/bars.csv <<'TEXT'
tier-shift,stage 1 (2 %); ideal; iops,900,a second,,,
tier-shift,stage 1 (2 %); terrace; iops,800,a second,,,
tier-shift,stage 6 (2 moved %); terrace; iops,700,a second,,,
tier-shift,stage 1: terrace; of the best static placement,888,o/oo,>=,950,MISSED
TEXT
cat > build/bench/tier-shift/warm.csv <<'TEXT'
load,system,pass,iops
stage 1 (2 %),terrace,1,111
stage 1 (2 %),terrace,2,112
stage 6 (2 moved %),terrace,1,611
TEXT
echo 'tier-share,20 % zipf-read; terrace; iops,5,a second,,,' > build/bench/tier-share/bars.csv
printf '%s\n' load,system,pass,iops '20 % zipf-read,terrace,1,4' > build/bench/tier-share/warm.csv

expect 0 'build/bench/tier-shift/stage-1-2-systems.svg' tests/bench/plot
# of tests/bench/tier-share.sh the part is called 20-zipf-read, and so are its pictures: the page knows by that whose they are
check_eq "the pictures" "$(cd build/bench && printf '%s\n' */*.svg | xargs)" "$(printf '%s\n' tier-share/20-zipf-read-{systems,warm}.svg \
	tier-shift/stage-{1-2,6-2-moved}-{systems,warm}.svg | xargs)"
# drawn are the table's own figures, not those of another stage: each twice, as SVG and as PNG
check_eq "points of stage 1" "$(grep -c '^point 1,111$' "$DRAWN") $(grep -c '^point 2,112$' "$DRAWN")" "2 2"
check_eq "points of stage 6" "$(grep -c '^point 1,611$' "$DRAWN")" 2
check_eq "bars of stage 1" "$(grep '^point ideal,\|^point terrace,8' "$DRAWN" | sort | uniq -c | xargs)" "2 point ideal,900 2 point terrace,800"

echo "ok: one picture a table, and its warm-up"
