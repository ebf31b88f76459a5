#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A filesystem that hangs in the middle of a write (xfs: who asks where a file lies waits for who writes it) holds up no volume, and what it was asked is put to use later.
# vm: mode=functional memory=2G timeout=300 build=daemon,orders
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.xfs
TOP=/dev/mapper/top

answers_soon() { LD_LIBRARY_PATH=$RAM/lib timeout 20 "$RAM/terraced" --config "$CONF" --status > /dev/shm/status; }

vol_ram 448 256
vol_format
vol_up stream_kb=0
echo "0 $(sectors "$VOL") linear $VOL 0" | DM_DISABLE_UDEV=1 dmsetup create top
make_fs xfs $TOP
mount $TOP $M
mkdir $M/db
follows 'evaluate = yes' 'admit.fill = 0' 'cold_share = 1'
follow
tables write 1 1 4
until_ "its place" at_least mapped 1
export PAUSE=8
tables stuck 1 11 /dev/shm/go > /dev/shm/said &
writer=$!
until_ "an output" grep -q ready /dev/shm/said
cat $M/db/000001.ldb > /dev/null
dmsetup suspend --noflush --nolockfs top
touch /dev/shm/go
sleep 4
grep -q written /dev/shm/said && die "the writer does not hang: this shows nothing"
for ((n = 0; n < 5; n++)); do
	answers_soon || { dmsetup resume top; die "terraced hangs with the filesystem"; }
	sleep 0.5
done
check_eq "cold streams" "$(number cold_streams)" 0
DM_DISABLE_UDEV=1 dmsetup resume top
until_ "its output is hinted all the same" is cold_streams 1
wait $writer || die "the writer"
unmounted
daemon_stop
check_fs xfs $TOP
dmr top
vol_down
vol_check
pass "a writer that hangs holds up only what is said of its own file"
