#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What must never become a wrong trim: tables mapped, shared or inline when they die, thousands of files, lost events, files elsewhere; BPF or BTF refused.
# vm: mode=functional memory=2G timeout=900 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs
CROWD=${CROWD:-9000}	# more than are remembered; their deaths, more than its ring holds

begin() {
	vol_format
	vol_up stream_kb=0
	if [ $# = 1 ]; then make_fs "$1"; else "${@:2}" "$VOL"; fi
	mount "$VOL" $M
	mkdir "$M/db"
	rm -f /dev/shm/sums
	follows 'evaluate = yes'
}
# write_tables FIRST COUNT MB: until their places are known
write_tables() {
	local before
	before=$(number mapped)
	tables write "$@"
	until_ "tables' places" at_least mapped $((before + $2))
}
sums() { (cd $M && md5sum "$@") >> /dev/shm/sums; }
# finish FS: nothing was lost
finish() {
	unmounted
	daemon_stop
	check_fs "$1"
	echo 3 > /proc/sys/vm/drop_caches
	mount "$VOL" $M
	(cd $M && md5sum --quiet -c /dev/shm/sums) || die "a file changed"
	umount $M
	vol_down
	vol_check
}
# blocks_of FILE: into /dev/shm/blocks
blocks_of() {
	sync
	where "$1" "0:$(($(sectors "$VOL") / 8)):0" > /dev/shm/blocks
}
# still_there: "MAPPED ALL" of them
still_there() {
	local mapped all
	sync
	vol_message commit
	read -r mapped _ all <<< "$(where --state /dev/terrace/vol /dev/shm/blocks)"
	echo "$mapped $all"
}

# said_of_shared: given up. xfs of later kernels discards free room that only touches the range as well, and counts it
said_of_shared() { at_least given_up 1 || { [[ $(uname -r) != 6.1.* ]] && at_least trimmed_bytes $((8 << 20)); }; }
# living_beside: of the two blocks before and behind those in /dev/shm/blocks, how many are mapped
living_beside() {
	sort -n /dev/shm/blocks | sed -n '1p;$p' | awk '{ print NR == 1 ? $1 - 1 : $1 + 1 }' > /dev/shm/beside
	where --state /dev/terrace/vol /dev/shm/beside | cut -d' ' -f1
}

vol_ram 448 256

# ---- a database is expected, and lies elsewhere ----
vol_format
vol_up stream_kb=0
follows 'evaluate = yes'
daemon_start
until_ "a line about it" logged "vol: no filesystem of this volume is mounted: no files are followed until one is"
daemon_stop
check_eq "lines about it" "$(grep -c 'no filesystem of this volume' "$LOG")" 1
vol_down
pass "who waits for files to be followed hears that none can be"

for fs in ${FILESYSTEMS-ext4 xfs}; do
	begin "$fs"
	follow
	# ---- deleted while it is mapped: it lives until the map goes ----
	write_tables 1 4 4
	sums db/000002.ldb db/000004.ldb
	blocks_of $M/db/000001.ldb
	sum=$(md5sum < $M/db/000001.ldb)
	rm -f /dev/shm/go
	tables hold 1 /dev/shm/go > /dev/shm/held &
	holder=$!
	until_ "the table is held" grep -q held /dev/shm/held
	[ ! -e $M/db/000001.ldb ] || die "it has not been deleted"
	for open in /proc/"$holder"/fd/*; do
		[[ $(readlink "$open") != *000001.ldb* ]] || die "it is open"
	done
	sync
	sleep 2
	check_eq "deaths while it is mapped" "$(number died)" 0
	check_eq "bytes asked to trim" "$(number ranges)" 0
	check_eq "its blocks" "$(still_there)" "1024 1024"
	echo 3 > /proc/sys/vm/drop_caches
	touch /dev/shm/go
	wait $holder || die "the holder"
	check_eq "what was mapped" "$(tail -1 /dev/shm/held)" "${sum%% *}"
	until_ "dead with its last use" is died 1
	until_ "trimmed" at_least trimmed_bytes $((4 << 20))
	read -r mapped _ <<< "$(still_there)"
	[ "$mapped" -le 64 ] || die "$mapped of its blocks are still mapped"
	pass "$fs: a mapped table lives until its last use is gone, then its blocks go"

	# ---- shared after it was written, between others: its death frees nothing ----
	if [ "$fs" = xfs ]; then
		cp --reflink=always $M/db/000003.ldb $M/other
		blocks_of $M/other
		until_ "that it is shared is heard of" at_least places_changed 1
		sums other
		rm $M/db/000003.ldb
		until_ "its death" is died 2
		until_ "the trim is over" said_of_shared
		check_eq "blocks of the other" "$(still_there)" "1024 1024"
		at_least given_up 1 || [ "$(living_beside)" -lt 2 ] || die "no free room touches it, and $(number trimmed_bytes) bytes are said to be trimmed"
		at_least given_up 1 && check_eq "trims of each shared range, after the first" "$(number tried_again)" $((3 * $(number given_up)))
		pass "xfs: what lives on in another file is not trimmed: tried $(number tried_again) times more, $(number given_up) given up"
	fi

	# ---- a database elsewhere ----
	mkdir -p /dev/shm/m2
	[ -e /dev/ram/other ] || mkram other 64
	make_fs ext4 /dev/ram/other
	mount /dev/ram/other /dev/shm/m2
	mkdir /dev/shm/m2/db
	sleep 3		# mounts are looked at every two seconds
	events=$(number events)
	python3 "$TERRACE_TREE/tests/vm/tables.py" /dev/shm/m2/db write 1 2 4
	python3 "$TERRACE_TREE/tests/vm/tables.py" /dev/shm/m2/db compact 1,2 11,12
	umount /dev/shm/m2
	sleep 1
	check_eq "events of another filesystem" "$(number events)" "$events"
	check_eq "compactions" "$(number compactions)" 0
	check_eq "filesystems" "$(number filesystems)" 1
	pass "$fs: files of another filesystem are none of ours"
	finish "$fs"
done

# ---- data within the inode have no blocks ----
begin ext4 mkfs.ext4 -q -O inline_data -I 256 -E nodiscard,lazy_itable_init=0
follow
python3 - $M/db/000001.ldb <<-'PY'
	import os, sys
	fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
	os.write(fd, b'x' * 40)
	os.fsync(fd)
	os.close(fd)
PY
write_tables 2 1 4
sums db/000001.ldb db/000002.ldb
until_ "its extent is refused" at_least extents_unaligned 1
check_eq "tables without a place" "$(number unmapped)" 1
sed -i /000001/d /dev/shm/sums
rm $M/db/000001.ldb
until_ "its death" is died 1
sleep 1
check_eq "ranges of dead tables" "$(number ranges)" 0
pass "a table within its inode has no place, and leaves nothing to trim"

# ---- thousands of files: the oldest are forgotten, a compaction among them is seen ----
tables crowd 100000 "$CROWD"
sync		# else these are given blocks later, those of dead tables perhaps
until_ "more files than are remembered" at_least files_forgotten $((CROWD - 8192))
check_eq "events lost" "$(number events_lost)" 0
write_tables 11 2 4
tables compact 11,12 21,22
sums db/000021.ldb db/000022.ldb
until_ "a compaction" is compactions 1
until_ "8 MiB trimmed" at_least trimmed_bytes $((8 << 20))
pass "$CROWD files: $(number files_forgotten) are forgotten, a compaction among them is seen"

# ---- more cursors than the kernel keeps (32,768): a table's writer is forgotten, and its close is heard all the same ----
# each of them is used twice: what comes by once, as in a scan, pushes out nothing that has been used again
closed=$(number closed) mapped=$(number mapped)
rm -f /dev/shm/go
tables slow 25 4 /dev/shm/go > /dev/shm/slow &
writer=$!
until_ "a table is being written" grep -q written /dev/shm/slow
tables glance 100000 "$CROWD" 12
touch /dev/shm/go
wait $writer || die "the writer"
until_ "its close" at_least closed $((closed + 1))
check_eq "writers forgotten" "$(number writers_forgotten)" 1
check_eq "tables with a place, for all that" "$(number mapped)" "$mapped"
sums db/000025.ldb
pass "a writer that the kernel has forgotten is not waited for"

# ---- more events than its ring holds, while nobody drains it: who died unheard is asked for, and trimmed where it is free ----
write_tables 31 2 4
trimmed=$(number trimmed_bytes)
kill -STOP "$daemon"
tables desert 100000 "$CROWD"
tables compact 31,32 41,42
sums db/000041.ldb db/000042.ldb
kill -CONT "$daemon"
until_ "it drains again" at_least events_lost 1
lost=$(number events_lost)
until_ "deaths of tables that were not heard" at_least died_unheard 2
until_ "they are trimmed all the same" at_least trimmed_bytes $((trimmed + (8 << 20)))
check_eq "compactions of which all was lost" "$(number compactions)" 1
looked=$(number looked_again)
[ "$looked" -ge 1 ] || die "no table that lives was looked at again"
trimmed=$(number trimmed_bytes)
write_tables 51 2 4
tables compact 51,52 61,62
sums db/000061.ldb db/000062.ldb
until_ "the next compaction" is compactions 2
until_ "its inputs are trimmed" at_least trimmed_bytes $((trimmed + (8 << 20)))
check_eq "events lost after that" "$(number events_lost)" "$lost"
pass "$lost events lost are told; $(number died_unheard) tables that died unheard are trimmed, $looked others were looked at again, and the next compaction is seen"

# ---- a kernel that refuses ----
daemon_stop
: > "$LOG"
LD_LIBRARY_PATH=$RAM/lib setpriv --bounding-set=-bpf,-sys_admin --inh-caps=-bpf,-sys_admin "$RAM/terraced" --config "$CONF" >> "$LOG" 2>&1 &
daemon=$!
until_ "terraced answers" answers
until_ "it drives the volume" logged "vol: driving"
sleep 3
check_eq "lines about it" "$(grep -c 'vol: files are not followed: the kernel refuses the BPF programs for files: Operation not permitted' "$LOG")" 1
daemon_stop
# and one without types
mount --bind /dev/null /sys/kernel/btf/vmlinux
built=/lib/modules/$(uname -r)/build/vmlinux	# the headers of 6.12 have them as well, and libbpf looks there
[ ! -e "$built" ] || mount --bind /dev/null "$built"
: > "$LOG"
LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config "$CONF" >> "$LOG" 2>&1 &
daemon=$!
until_ "terraced answers" answers
until_ "it drives the volume" logged "vol: driving.*sensed by bpf"
sleep 3
check_eq "lines about it" "$(grep -c 'vol: files are not followed: the kernel refuses the BPF programs for files' "$LOG")" 1
umount /sys/kernel/btf/vmlinux
[ ! -e "$built" ] || umount "$built"
tables compact 61,62 71,72
sed -i '/00006[12]/d' /dev/shm/sums
sums db/000071.ldb db/000072.ldb
finish ext4
pass "without BPF, or without BTF, files are not followed: one line says so, and all else works"
