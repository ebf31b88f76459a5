#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terraced trims what dead tables leave behind, and the power fails: after the filesystem's own recovery every table that is there is whole, also one whose deletion was not durable yet; ext4 and xfs.
# vm: mode=functional memory=3G timeout=900 build=daemon,orders
# debug-kernel: not, it has no BTF, which fentry programs need
#
# At least CUTS= of each filesystem, and until one table came back.
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs
CUTS=${CUTS:-4}
SEED=${SEED:-1}
RANDOM=$SEED
LEDGER=/dev/shm/ledger
klog_allow 'drive (fast|slow)'
cp "$TERRACE_TREE/tests/crash/dying.py" /dev/shm/
dying() { /usr/bin/python3 /dev/shm/dying.py "$@"; }
deaths() { grep -c '^-' $LEDGER || true; }

for fs in ${FILESYSTEMS:-ext4 xfs}; do
	vol_drives 448 256 seed="$SEED" lat=100us
	vol_format
	vol_up stream_kb=0
	make_fs "$fs"
	mount "$VOL" $M
	mkdir $M/db
	sync
	: > $LEDGER
	back=0 trimmed=0
	for ((cut = 0; cut < CUTS || (back == 0 && cut < 8 * CUTS); cut++)); do
		follows
		follow
		start /usr/bin/python3 /dev/shm/dying.py live $M/db $LEDGER $((SEED * 1000 + cut))
		most=$((RANDOM % 20 + 10))
		for ((i = 0; i < 600 && $(deaths) < most; i++)); do sleep 0.1; done
		[ "$(deaths)" -ge "$most" ] || die "only $(deaths) deaths in a minute"
		sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
		trimmed=$((trimmed + $(number trimmed_bytes)))
		cp $LEDGER /dev/shm/at-cut
		drive_cut fast
		status=0
		wait "$JOB" || status=$?
		check_eq "how who writes ends without power" $status 3
		daemon_kill
		umount $M || umount -l $M
		dmr vol
		drive_revive fast
		vol_up stream_kb=0
		mount "$VOL" $M
		dying check $M/db $LEDGER /dev/shm/at-cut > /dev/shm/checked || die "$fs, cut $cut (seed $SEED): $(cat /dev/shm/checked)"
		read -r present came < /dev/shm/checked
		back=$((back + came))
		echo "# $fs, cut $cut after $most deaths: $present tables, $came came back; trimmed so far: $trimmed bytes"
	done
	[ "$back" -gt 0 ] || die "each deletion was durable: nothing was shown"
	[ "$trimmed" -ge $((1 << 20)) ] || die "only $trimmed bytes were trimmed"
	umount $M
	check_fs "$fs"
	vol_down
	vol_check
	rmdrive fast
	rmdrive slow
	pass "$fs: $cut cuts, $back tables came back and were whole, $trimmed bytes were trimmed"
done
