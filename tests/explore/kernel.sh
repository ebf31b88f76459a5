#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The module recovers what build/explore --save left in $STATES (one folder for each
# state: DRIVE.img and ledger); what it finds must be what a power cut may leave.
# Runs inside the machine.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup dd
dmsetup() { from_ram dmsetup "$@"; }

load_drive
load_terrace
nr=0
for state in "$STATES"/*/; do
	VOL_DRIVES=()
	for image in "$state"*.img; do
		# no label yet: it is still to come
		[ "$(head -c 8192 "$image" | tr -d '\0' | wc -c)" -gt 0 ] || continue
		name=${image##*/} name=${name%.img}
		mkdrive "$name" ram $(($(stat -c %s "$image") >> 20)) lbs=4096 group=pc
		from_ram dd if="$image" of="/dev/mapper/$name" bs=1M conv=sparse oflag=direct status=none
		VOL_DRIVES+=("/dev/mapper/$name")
	done
	cp "$state/ledger" "$LEDGER"
	terracectl activate --as vol "${VOL_DRIVES[@]}" > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "$state: does not come up"; }
	oracle_crash > /dev/shm/said || { cat /dev/shm/said; die "$state"; }
	dmr vol
	for d in "${VOL_DRIVES[@]}"; do rmdrive "${d##*/}"; done
	nr=$((nr + 1))
done
pass "$nr states recovered by the module"
