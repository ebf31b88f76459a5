#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files of a table-writing database, followed from below: compactions, deaths, and what a dead file leaves behind, trimmed; ext4 and xfs.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs xfs_io
reads() { answers && awk '/"reads_told"/ { gsub(/[^0-9]/, ""); n += $0 } END { print n }' /dev/shm/status; }
reads_grown() { [ "$(reads)" -ge "$1" ]; }
# as if the fast tier were full, and whatever a compaction reads cold
configure() { follows 'evaluate = yes' 'admit.fill = 0' 'cold_share = 1'; }
rights=$(sed -n 's/^CapabilityBoundingSet=//p' "$TERRACE_TREE/packaging/terraced.service" | tr '[:upper:]' '[:lower:]' | sed 's/ \?cap_/,+/g; s/^,//')
used() {
	vol_message commit
	vol_tier 0 used | cut -d/ -f1
}
# as a user of its own, as databases run
cp "$TERRACE_TREE/tests/vm/tables.py" /dev/shm/
tables() { setpriv --reuid=65534 --regid=65534 --clear-groups python3 /dev/shm/tables.py $M/db "$@"; }
adds_up() { [ $(($(number "$2") + $(number "$3"))) -eq "$1" ]; }
at_most_used() { [ "$(used)" -le "$1" ]; }
sums() { (cd $M/db && md5sum "$@") >> /dev/shm/sums; }

vol_ram 448 256
for fs in ${FILESYSTEMS:-ext4 xfs}; do
	vol_format
	vol_up stream_kb=0 heat_sample=1
	make_fs "$fs"
	mount "$VOL" $M
	mkdir $M/db
	chown 65534:65534 $M/db
	rm -f /dev/shm/sums
	configure
	# no more rights than its unit gives
	follow setpriv --bounding-set="-all,$rights" --inh-caps=-all

	# ---- a compaction: two tables into two, which take their place ----
	tables write 1 3 4
	until_ "tables' places" at_least mapped 3
	sums 000003.ldb
	sync
	before=$(used)
	# what it reads comes from the volume, and heats nothing
	echo 3 > /proc/sys/vm/drop_caches
	ignored=$(number ignored)
	tables compact 1,2 11,12
	until_ "a compaction's reads are ignored" at_least ignored $((ignored + 10))
	sums 000011.ldb 000012.ldb
	until_ "a compaction" is compactions 1
	logged "compaction: 000001.ldb 000002.ldb -> 000011.ldb 000012.ldb" || { grep compaction: "$LOG"; die "another compaction"; }
	until_ "8 MiB trimmed" at_least trimmed_bytes $((8 << 20))
	sync
	until_ "hardly more room taken than the $before blocks of before" at_most_used $((before + 256))
	pass "$fs: a compaction is seen, $(number trimmed_bytes) bytes of its inputs are trimmed, and $(number trimmed_beside_bytes) beside them"

	# ---- what it was recognised for, and that switched off by SIGHUP ----
	until_ "heat is passed on" is bequests 1
	until_ "both outputs were sent past the fast tier" at_least cold_streams 2
	until_ "tails are kept" at_least pinned_tails_blocks 32
	printf '%s = no\n' inherit_heat pin_tails cold_streams >> "$CONF"
	kill -HUP "$daemon"
	until_ "tails are let go" is pinned_tails_blocks 0
	cold=$(number cold_streams)
	pass "$fs: heat is passed on, $cold streams are cold, tails are kept; all until SIGHUP"

	# ---- alive: with another name, or open ----
	died=$(number died)
	tables compact 11,12 21,22 keep
	sums 000021.ldb 000022.ldb
	ln $M/db/000011.ldb $M/db/other
	exec 7< $M/db/000012.ldb
	rm $M/db/000011.ldb $M/db/000012.ldb
	sync
	sleep 1
	check_eq "compactions" "$(number compactions)" 1
	check_eq "deaths" "$(number died)" "$died"
	exec 7<&-
	until_ "dead when closed" is died $((died + 1))
	rm $M/db/other
	until_ "dead with its last name" is died $((died + 2))
	until_ "now it was a compaction" is compactions 2
	check_eq "bequests" "$(number bequests)" 1
	check_eq "cold streams" "$(number cold_streams)" "$cold"
	check_eq "tails" "$(number pinned_tails_blocks)" 0
	sed -i '/00001[12]/d' /dev/shm/sums
	pass "$fs: links and open files keep a table alive"

	# ---- shared blocks are not its own ----
	if [ "$fs" = xfs ]; then
		sums 000021.ldb
		ranges=$(number ranges)
		# a table that is all reflink from the start: written by cloning, then synced
		xfs_io -f -c "reflink $M/db/000021.ldb" -c fsync $M/db/000032.ldb > /dev/null
		until_ "its extents are refused" at_least extents_shared 1
		rm $M/db/000032.ldb
		until_ "its death" at_least died $((died + 3))
		sleep 1
		check_eq "ranges of dead tables" "$(number ranges)" "$ranges"
		pass "$fs: shared extents are refused"
	fi

	# ---- a compaction that is over before the daemon hears of it ----
	tables write 41 2 4
	sync
	echo 3 > /proc/sys/vm/drop_caches
	ignored=$(number ignored) reads=$(reads)
	tables compact 41,42 51,52 fast
	sums 000051.ldb 000052.ldb
	until_ "a fast compaction" is compactions 3
	sleep 1
	ignored=$(($(number ignored) - ignored)) reads=$(($(reads) - reads))
	# whether the daemon heard of them in time or not, none is forgotten
	until_ "all outputs since the switch are accounted for" adds_up 4 warm_streams cold_streams_too_late
	[ $((100 * ignored)) -ge $((85 * reads)) ] || die "only $ignored of $reads reads of a fast compaction are ignored"
	# a thread that was marked and is none any more is heard again
	echo 3 > /proc/sys/vm/drop_caches
	ignored=$(number ignored) reads=$(reads)
	cat $M/db/000051.ldb > /dev/null
	until_ "reads of another" reads_grown $((reads + 8))
	check_eq "ignored reads of another" "$(number ignored)" "$ignored"
	pass "$fs: a compaction is ignored from its start"

	# ---- a thread that compacts again: what it reads before its first output, too ----
	tables write 43 1 4
	tables write 44 1 16
	sums 000044.ldb
	sync
	echo 3 > /proc/sys/vm/drop_caches
	tables again 43 53 44 /dev/shm/go > /dev/shm/again &
	thread=$!
	until_ "another compaction" is compactions 4
	sums 000053.ldb
	sleep 2		# no mark of that is left
	ignored=$(number ignored) reads=$(reads)
	touch /dev/shm/go
	until_ "what it reads" grep -q begun /dev/shm/again
	until_ "what it reads, told" reads_grown $((reads + 1))
	sleep 1
	check_eq "reads that are ignored, of all" "$(($(number ignored) - ignored))" "$(($(reads) - reads))"
	# one that goes on without an output is a scan
	rm /dev/shm/go
	wait $thread || die "no scan"
	sleep 1
	ignored=$(($(number ignored) - ignored)) reads=$(($(reads) - reads))
	[ $((reads - ignored)) -ge 50 ] || die "of $reads reads of a scan $ignored are ignored"
	pass "$fs: what a thread that has compacted reads first is ignored, and all but the first of a scan is not"

	# ---- names that are nobody's: a profile that is switched off marks nothing in the kernel either ----
	printf 'profiles = cassandra\n' >> "$CONF"
	kill -HUP "$daemon"
	tables write 61 2 4
	sync
	sleep 2		# and marks of before are gone
	echo 3 > /proc/sys/vm/drop_caches
	ignored=$(number ignored) reads=$(reads)
	tables compact 61,62 71,72 fast
	sums 000071.ldb 000072.ldb
	until_ "its reads" reads_grown $((reads + 10))
	sleep 1
	check_eq "reads that are ignored where .ldb is no table" "$(number ignored)" "$ignored"
	check_eq "compactions" "$(number compactions)" 4
	pass "$fs: names of profiles that are switched off mean nothing"

	# ---- nothing else was touched, nothing is kept open ----
	unmounted
	daemon_stop
	check_fs "$fs"
	echo 3 > /proc/sys/vm/drop_caches
	mount "$VOL" $M
	(cd $M/db && md5sum --quiet -c /dev/shm/sums) || die "a table changed"
	umount $M
	vol_down
	vol_check
	pass "$fs: checksums and fsck"
done
