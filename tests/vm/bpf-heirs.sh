#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Heat goes where a compaction took the blocks: no farther off than what is told at once, or read ahead; only what was read is hot, not its neighbours.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4
hot() { where "$M/db/$1" "0:$((BLOCKS)):0" | python3 "$TERRACE_TREE/tests/vm/hot.py" show /dev/shm/socket vol > "/dev/shm/hot-$1"; }
span() { awk -v from="$2" -v end="$3" '$1 >= from && $1 < end { n++ } END { print n + 0 }' "/dev/shm/hot-$1"; }

vol_ram 96 256
vol_format
vol_up stream_kb=0 heat_sample=1
BLOCKS=$(blockdev --getsz "$VOL")
BLOCKS=$((BLOCKS / 8))
make_fs ext4
mount "$VOL" $M
mkdir $M/db
# what tables.py reads ahead of each of two inputs, in blocks of the output
STEP=$((2 * 64 / 4))
follows 'evaluate = yes' 'heat = clock'
follow

# two tables of 4 MiB; of the first 64 blocks are hot, from its 512th on
tables write 1 2 4
sync
until_ "the tables' places" at_least mapped 2
python3 "$TERRACE_TREE/tests/vm/hot.py" read $M/db/000001.ldb 512 64 "${TIMES:-20}"
is_hot() { hot 000001.ldb; [ "$(span 000001.ldb 512 576)" -ge 60 ]; }
until_ "they are hot" is_hot
check_eq "hot beside them" "$(span 000001.ldb 0 512) $(span 000001.ldb 576 1024)" "0 0"
pass "64 blocks are hot, and none beside them"

# merged side by side, 64 KiB of each in turn: they are the output's blocks 1024 to 1152, every other 16 of these.
# The inputs are in memory: what the compaction itself reads heats nothing.
tables compact 1,2 11
until_ "its heat is passed on" is bequests 1
sleep 1
hot 000011.ldb
all=$(wc -l < /dev/shm/hot-000011.ldb)
in=$(span 000011.ldb 1024 1152) near=$(span 000011.ldb $((1024 - STEP)) $((1152 + STEP)))
echo "hot in the output: $all blocks from $(head -1 /dev/shm/hot-000011.ldb) to $(tail -1 /dev/shm/hot-000011.ldb), $in where the hot ones went"
[ "$all" -gt 0 ] || die "nothing is hot in the output"
check_eq "hot farther off than is told at once" $((all - near)) 0
[ "$in" -ge 64 ] || die "only $in of 128 blocks inherited"
pass "heat lands within what is told at once: $((1024 - $(head -1 /dev/shm/hot-000011.ldb))) blocks before, $(($(tail -1 /dev/shm/hot-000011.ldb) - 1151)) behind where it belongs"
daemon_stop
umount $M
check_fs ext4
vol_down
vol_check
