#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl's offline commands leave devices alone that are mounted, stacked or part of an active volume, and work on them afterwards; boot assembles a volume by its labels.
# vm: mode=functional cpus=1 memory=1G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

tiers() { echo --tier nvme="${VOL_DRIVES[0]}" --tier hdd="${VOL_DRIVES[1]}"; }

vol_ram 64 256
fast=${VOL_DRIVES[0]}
dmsetup create stacked --table "0 1000 linear $fast 0"
# shellcheck disable=SC2046 # words
refuses 1 "^terracectl: $fast is in use: part of /dev/dm-" format --force $(tiers)
dmsetup remove stacked
pass "a device below another one is refused"

mkfs.ext4 -q -F "$fast"
mkdir -p /tmp/mounted
mount "$fast" /tmp/mounted
# shellcheck disable=SC2046
refuses 1 "^terracectl: $fast is in use: mounted at /tmp/mounted" format --force $(tiers)
umount /tmp/mounted
# shellcheck disable=SC2046
refuses 1 "^terracectl: $fast holds a filesystem \(ext4\): nothing changed" format $(tiers)
pass "a mounted filesystem is refused, and one that is not as well"

vol_format
vol_up
dd if=/dev/urandom of=/dev/shm/data bs=1M count=4 status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
refuses 1 "is in use: part of /dev/dm-" check "${VOL_DRIVES[@]}"
refuses 1 "is in use: part of /dev/dm-" format --force --tier nvme="$fast" --tier hdd="${VOL_DRIVES[1]}"
terracectl dump "${VOL_DRIVES[@]}" > /tmp/shown
grep -q '^superblock ' /tmp/shown
terracectl dump --all "${VOL_DRIVES[@]}" > /dev/shm/early
refuses 1 "is in use: part of /dev/dm-" restore --force /dev/shm/early "${VOL_DRIVES[@]}"
refuses 1 "is in use: part of /dev/dm-" repair --in-place "${VOL_DRIVES[@]}"
refuses 1 "is in use: part of /dev/dm-" salvage --dry-run "${VOL_DRIVES[@]}"
says "tier 0 of .*'vol'" label "$fast"
check_eq "label --json" "$(terracectl label --json "${VOL_DRIVES[1]}" | json "o['name'], o['tier']")" "('vol', 1)"
says "^[a-z_.]+ " tunables
vol_down
vol_check --owners
check_eq "mapped blocks" "$(terracectl check --full --json "${VOL_DRIVES[@]}" | sed -n 's/.*"mapped_blocks":\([0-9]*\).*/\1/p')" 1024
pass "an active volume is refused, and sound once it is closed"

terracectl dump --all "${VOL_DRIVES[@]}" > /dev/shm/dump
says "certain" salvage --to /dev/shm/image "${VOL_DRIVES[@]}"
cmp -n $((4 << 20)) /dev/shm/image /dev/shm/data
start=$(terracectl dump --json super "${VOL_DRIVES[@]}" | json "[i for i in o['items'] if i['item'] == 'label'][0]['meta_start']")
dd if=/dev/zero of="$fast" bs=4k seek="$start" count=300 oflag=direct status=none
refuses 1 "superblock" activate "${VOL_DRIVES[@]}"
says "." restore --force /dev/shm/dump "${VOL_DRIVES[@]}"
vol_check --owners
says "^/dev/mapper/vol$" activate "${VOL_DRIVES[@]}"
cmp -n $((4 << 20)) "$VOL" /dev/shm/data
says "" deactivate vol
pass "dump, restore and salvage of what a volume has written"

# ---- boot: udev reads labels, what it asks systemd for activates the volume; run here as systemd would
"$TERRACE_TREE/scripts/install" install /tmp/dest /usr/local none > /tmp/installed
for folder in lib usr; do cp -a "/tmp/dest/$folder/." "/$folder/"; done
mkdir -p /run/udev
/lib/systemd/systemd-udevd --daemon 2> /dev/null
properties=
# appears DEVICE: its properties
appears() {
	echo add > "/sys/class/block/$(basename "$(readlink -f "$1")")/uevent"
	udevadm settle
	properties=$(udevadm info --query=property "--name=$(readlink -f "$1")")
}
# what systemd would be asked to start
wanted() { sed -n 's/^SYSTEMD_WANTS=//p' <<< "$properties"; }
# starts UNIT: its command, %i filled in
starts() {
	local file=/lib/systemd/system/${1%%@*}@.service i=${1#*@}
	read -ra command <<< "$(sed -n "s,^ExecStart=,,p" "$file" | sed "s/%i/${i%.*}/")"
	"${command[@]}" > /dev/shm/said 2>&1 || die "${command[*]} ended with $?: $(cat /dev/shm/said)"
}
state() { terracectl list --json | json "o[0]['state']"; }
uuid=$(terracectl list --json | json "o[0]['uuid']")
appears "$fast"
grep -qx "TERRACE_VOLUME=$uuid" <<< "$properties" || die "udev knows of $fast: $properties"
grep -qx "ID_FS_TYPE=terrace_member" <<< "$properties"
number=$(cat "/sys/class/block/$(basename "$(readlink -f "$fast")")/dev")
check_eq "wanted" "$(wanted)" "terrace-activate@$number.service terrace-last-resort@$uuid.timer"
# the other one is not there yet: nothing is active, nothing has failed
slow_label=/dev/shm/slow.label
dd if="${VOL_DRIVES[1]}" of=$slow_label bs=4k count=2 iflag=direct status=none
dd if=/dev/zero of="${VOL_DRIVES[1]}" bs=4k count=2 oflag=direct status=none
starts "terrace-activate@$number.service"
check_eq "state" "$(state)" incomplete
# nor does it come: after 30 seconds without it
starts "terrace-last-resort@$uuid.service"
grep -q "tier 1: is missing" /dev/shm/said || die "said $(cat /dev/shm/said)"
says "MISSING" status vol
terracectl deactivate vol
# it comes after all
dd if=$slow_label of="${VOL_DRIVES[1]}" bs=4k count=2 oflag=direct status=none
appears "${VOL_DRIVES[1]}"
for unit in $(wanted); do [[ $unit != *.service ]] || starts "$unit"; done
check_eq "state" "$(state)" active
cmp -n $((4 << 20)) "$VOL" /dev/shm/data
# late units, and the volume's own device, change nothing
starts "terrace-activate@$number.service"
starts "terrace-last-resort@$uuid.service"
appears "$VOL"
check_eq "wanted by a volume" "$(wanted)" ""
says "" deactivate vol
udevadm control --exit
pass "boot"
