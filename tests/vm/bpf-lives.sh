#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tables whose deaths are easily missed: older than the daemon, in hundreds of pieces, cut short, of a database while thousands of other files are read; and many deaths in a row.
# vm: mode=functional memory=2G timeout=900 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4
CROWD=${CROWD:-9000}	# more than are remembered

# trimmed_by BYTES COMMAND...: so much, at least, in consequence
trimmed_by() {
	local before=$1
	before=$(($(number trimmed_bytes) + $1))
	"${@:2}"
	until_ "$(($1 >> 10)) KiB trimmed" at_least trimmed_bytes "$before"
}

vol_ram 448 256
vol_format
vol_up stream_kb=0
make_fs ext4
mount "$VOL" $M
mkdir $M/db
mkdir $M/db/crowd
python3 "$TERRACE_TREE/tests/vm/tables.py" $M/db/crowd crowd 1 "$CROWD"
tables write 1 2 4
sync
follows 'evaluate = yes'
follow

# ---- there before the daemon ----
trimmed_by $((8 << 20)) tables compact 1,2 11,12
pass "tables from before the daemon's start are trimmed when they have been compacted"

# ---- in many pieces ----
mapped=$(number mapped)
tables holes 20 4
until_ "its place" at_least mapped $((mapped + 1))
check_eq "tables with more pieces than are kept" "$(number extents_cut)" 0
trimmed_by $((512 << 12)) rm $M/db/000020.ldb
pass "of a table in 512 pieces all are trimmed"

# ---- cut by who never opens it ----
mapped=$(number mapped)
tables write 25 1 2
until_ "its place" at_least mapped $((mapped + 1))
python3 -c "import os; os.truncate('$M/db/000025.ldb', 1 << 20)"
until_ "it is asked for again" at_least mapped $((mapped + 2))
dead=$(number dead_blocks)
rm $M/db/000025.ldb
until_ "its death" at_least dead_blocks $((dead + 1))
check_eq "blocks of its own when it died" $(($(number dead_blocks) - dead)) 256
pass "what truncate(2) took from a table is not its own when it dies"

# ---- begun again and again ----
sleep 1
events=$(number events)
python3 - $M/db/000011.ldb <<-'PY'
	import os, sys
	fd = os.open(sys.argv[1], os.O_RDONLY)
	for _ in range(5000):
	    os.pread(fd, 4096, 0)
	    os.pread(fd, 4096, 1 << 20)
PY
sleep 1
events=$(($(number events) - events))
[[ $events -ge 1 && $events -lt 500 ]] || die "5000 reads of a table's beginning are $events events"
pass "5000 reads of a table's beginning, between others, are $events events"

# ---- many deaths in a row ----
printf 'dead_wait_ms = 3000\n' >> "$CONF"
kill -HUP "$daemon"
mapped=$(number mapped)
tables write 30 20 1
until_ "their places" at_least mapped $((mapped + 20))
batches=$(number batches)
one_by_one() {
	for n in $(seq 30 49); do
		rm "$M/db/0000$n.ldb"
		sleep 0.15
	done
}
trimmed_by $((20 << 20)) one_by_one
batches=$(($(number batches) - batches))
[ $batches -le 6 ] || die "20 deaths, 150 ms apart, took $batches times syncfs"
printf 'dead_wait_ms = 200\n' >> "$CONF"
kill -HUP "$daemon"
pass "20 deaths, 150 ms apart, are trimmed in $batches batches"

# ---- between two ticks ----
cp "$CONF" "$CONF.fast"
sed -i '/^\[daemon\]/a tick_ms = 10000' "$CONF"
kill -HUP "$daemon"
sleep 1
ticks=$(number ticks)
for n in 61 62 63; do
	mapped=$(number mapped)
	tables write $n 1 1
	until_ "its place" at_least mapped $((mapped + 1))
	trimmed_by $((1 << 20)) rm "$M/db/0000$n.ldb"
done
ticks=$(($(number ticks) - ticks))
[ $ticks -le 2 ] || die "three tables that were written and deleted took $ticks ticks"
cp "$CONF.fast" "$CONF"
kill -HUP "$daemon"
pass "what is written or deleted is heard of at once: three tables came and went in $ticks ticks of 10 s"

# ---- while thousands of other files are read ----
mapped=$(number mapped)
tables write 51 2 4
until_ "tables' places" at_least mapped $((mapped + 2))
sync
find $M/db/crowd -type f -exec cat {} + > /dev/null
until_ "more files than are remembered" at_least files_forgotten $((CROWD - 8192))
trimmed_by $((8 << 20)) rm $M/db/000051.ldb $M/db/000052.ldb
pass "the deaths of tables are heard of after $CROWD other files were read"

unmounted
daemon_stop
check_fs ext4
vol_down
vol_check
