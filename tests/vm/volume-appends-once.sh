#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Appends that are synced find their places prepared: one write each.
# vm: mode=vtime memory=3G timeout=900
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

appends() { python3 "$TERRACE_TREE/tests/vm/appends.py" "$@"; }
klog_allow 'drive (fast|slow)'

COUNT=1500 PIECE=8	# as append.c writes zeros
for cache in off on; do
	vol_drives 128 256 cache=$cache lat=100us survive=0
	vol_format
	vol_up
	for kb in 0 1024; do
		vol_message set append_kb=$kb
		vol_message commit
		writes=$(drive_get fast writes)
		appends write "$VOL" $COUNT /dev/shm/promised
		more=$(($(drive_get fast writes) - writes - COUNT))
		appends check "$VOL" $COUNT /dev/shm/promised
		used=$(vol_tier 0 used)
		echo "# cache $cache, append_kb=$kb: $more writes more than $COUNT appends, $used used"
		if [ $kb = 0 ]; then
			[ $more -ge $COUNT ] || die "$COUNT appends with nothing prepared took $more writes more"
		else
			more=$((more - $(cat /sys/fs/terrace/*/prepared) / PIECE))	# nobody waits for those
			[ $more -le $((COUNT / 20)) ] || die "$COUNT appends took $more writes more, zeros apart"
			[ $((${used%/*} - COUNT)) -le 320 ] || die "${used%/*} blocks are used for $COUNT appended ones"
		fi
		check_eq "blocks of the log on the disk" "$(vol_tier 1 used | cut -d/ -f1)" 0
		blkdiscard -f "$VOL"
		vol_message commit
	done
	pass "volatile cache $cache: an append is one write when its place is prepared"
	dmr vol
	rmdrive fast
	rmdrive slow
done
