#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The power goes while terraced works, its state on ext4 on a drive that loses it too: after each reboot what was hot is hot, until it is discarded; damaged files are set aside.
# vm: mode=functional cpus=1 memory=2G timeout=400 build=daemon,orders
#
# CUTS= power cuts, at a random write or barrier of the state's drive. LIMIT= seconds for them.
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

need ext4
need_cmd mkfs.ext4 blkdiscard
SEED=${SEED:-1}
CUTS=${CUTS:-5}
LIMIT=${LIMIT:-100}
RANDOM=$SEED
STATE=/dev/shm/state
UP=(stream_kb=0 commit_ms=200 heat_sample=1)
in_ram dmsetup blkdiscard
dmsetup() { from_ram dmsetup "$@"; }
discard() { from_ram blkdiscard -o "$1" -l "$2" "$VOL"; }
klog_allow 'drive (fast|slow|state)'
klog_allow '(EXT4-fs|JBD2|Buffer I/O error|Aborting journal).*'

# ---- what is hot: the first region ----

hot() { terracectl explain --json --socket /dev/shm/socket vol 0 2> /dev/null | sed -n 's/^ *"hot_blocks_of_region": *\([0-9]*\),\?$/\1/p;T;q' | grep .; }
hot_is() { [ "$(hot)" -ge "$1" ] && [ "$(hot)" -le "$2" ]; }
heat_up() { dd if="$VOL" of=/dev/null bs=64k count=64 iflag=direct status=none; }
heat_up_to() { heat_up && hot_is "$1" 1024; }
# reads of what is hot and of what is not, writes, and discards, whose heat is forgotten with a commit a second
load() {
	while heat_up 2> /dev/null; do
		dd if="$VOL" of=/dev/null bs=64k skip=$((64 + RANDOM % 512)) count=4 iflag=direct status=none 2> /dev/null || return 0
		dd if=/dev/zero of="$VOL" bs=64k seek=$((640 + RANDOM % 64)) count=1 oflag=direct conv=notrunc status=none 2> /dev/null || return 0
		discard $((40 << 20)) $((1 << 20)) 2> /dev/null || return 0
	done
}

# ---- the power ----

# cut_at KIND N: of the state's drive, while terraced works; false: that never came
cut_at() {
	local worker tries
	drive state arm "$1" "$2"
	start load
	worker=$JOB
	for ((tries = 0; tries < 150; tries++)); do
		[ "$(drive_get state state)" != off ] || break
		sleep 0.1
	done
	[ "$(drive_get state state)" = off ] || { drive state disarm; drive_cut state; cut_by_hand=$((cut_by_hand + 1)); }
	daemon_kill
	kill_all "$worker"
	umount $STATE || umount -l $STATE
	dmr vol
	drive_revive state
	drive state disarm
}
reboot() {
	vol_up "${UP[@]}"
	mount -t ext4 /dev/mapper/state $STATE
	: > $LOG
	daemon_start
	logged "vol: driving.*: heat by ralt" || { cat $LOG; die "$1: heat is not kept on disk"; }
	! logged "starts cold|set aside|cannot be|tried again" || { cat $LOG; die "$1: the heat did not survive"; }
}

conf_written 50 <<-END
	sense = auto
	evaluate = yes
	ralt.buffer_records = 256
	ralt.initial_hot_share = 0.2
END
vol_models "$SEED" fast:64 slow:448 state:64 write_lat=100us flush_lat=500us channels=8
VOL_DRIVES=("${VOL_DRIVES[@]:0:2}")
vol_format
mkfs.ext4 -q -F -b 4096 /dev/mapper/state
mkdir -p $STATE
mount -t ext4 /dev/mapper/state $STATE
vol_up "${UP[@]}"
dd if=/dev/urandom of="$VOL" bs=1M count=44 oflag=direct status=none
daemon_start
until_ "the first region is hot" heat_up_to 1000
sleep 1

began=$SECONDS
cut_by_hand=0
for ((n = 0; n < CUTS && SECONDS - began < LIMIT; n++)); do
	kinds=(write flush barrier)
	kind=${kinds[RANDOM % 3]}
	at=$((RANDOM % 40 + 4))
	cut_at "$kind" "$at"
	reboot "cut $n at $kind $at"
	# nobody has read anything since
	hot_is 900 1024 || { cat $LOG; die "cut $n at $kind $at (seed $SEED): $(hot) of 1024 blocks are still hot"; }
	echo "cut $n at $kind $at: $(hot) of 1024 blocks are hot"
	until_ "the first region is hot" heat_up_to 1000
done
[ "$n" = "$CUTS" ] || die "only $n of $CUTS cuts in $LIMIT s"
[ "$cut_by_hand" -lt "$CUTS" ] || die "no cut came at a write of the heat's: this shows nothing"
pass "$n power cuts, $cut_by_hand of them at no write of the state's drive: the heat is there after each"

# ---- discards that terraced does not hear ----

sleep 1
cut_at write 10
vol_up "${UP[@]}"
discard 0 $((2 << 20))
vol_message commit
dmr vol
reboot "discarded meanwhile"
until_ "the heat of what was discarded while it was down goes" hot_is 400 512
pass "half of it was discarded meanwhile: $(hot) blocks are hot"

# ---- files that are not what they were ----

has_run() { find $STATE -name 'run-*.ralt' | grep -q .; }
damaged() {
	case $1 in
	zeros)	dd if=/dev/zero of="$2" bs=1 count="$(stat -c %s "$2")" conv=notrunc status=none ;;
	short)	truncate -s $(($(stat -c %s "$2") / 2)) "$2" ;;
	empty)	: > "$2" ;;
	esac
}
for what in zeros short empty; do
	for of in 'run-*.ralt' MANIFEST; do
		for ((i = 0; i < 6; i++)); do heat_up; done
		# all files that are there then count
		daemon_stop
		has_run || die "no heat is kept"
		file=$(find $STATE -name "$of" | sort | tail -1)
		damaged $what "$file"
		: > $LOG
		daemon_start
		logged "heat store: .* is damaged and was set aside as .bad" || { cat $LOG; die "$what $file: not told"; }
		find $STATE -name '*.bad' | grep -q . || die "$what $file: not set aside"
		find $STATE -name '*.bad' -delete
	done
done
until_ "it works on" heat_up_to 1
daemon_stop
umount $STATE
e2fsck -fn /dev/mapper/state > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "e2fsck"; }
vol_down
vol_check
pass "damaged files are set aside"
