#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl format makes sound volumes, and refuses the rest with the reason, changing nothing.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit

new_images fast 256M slow 1G mid 512M meta 64M tiny 1M

# every arrangement ends in a sound volume
sound() {
	local devices=$1
	shift
	new_images fast 256M slow 1G mid 512M meta 64M
	expect 0 '^dmsetup create ' "$ctl" format "$@"
	# shellcheck disable=SC2086 # a list of files
	expect 0 ': sound$' "$ctl" check --full $devices
}
sound "fast slow" --tier nvme=fast --tier hdd=slow
sound "slow fast" --tier optane=fast --tier nvme=slow
sound "slow mid fast" --tier optane=fast --tier qlc=mid --tier hdd=slow
sound "mid fast" --tier nvme=fast --tier csd=mid
sound "mid fast meta" --tier nvme=fast --tier csd=mid --meta meta
sound "meta slow fast" --tier qlc:slots=fast --tier hdd=slow --meta meta
sound "fast slow" --tier nvme:shelves=fast --tier hdd:slots=slow
for mirror in none lazy sync auto; do
	sound "fast slow" --tier nvme=fast --tier hdd=slow --mirror $mirror
	sound "fast slow meta" --tier nvme=fast --tier hdd=slow --mirror $mirror --meta meta
done
sound "fast slow" --tier nvme:atomic=fast --tier hdd:noatomic:align-64K=slow --journal 2M --reserve 5 --name "db-1"
sound "fast slow" --tier nvme=fast --tier hdd=slow --size 1T --overcommit 1T

# the table and the JSON say the same
new_images fast 256M slow 1G
expect 0 '"table":"0 1024000 terrace - 2 fast nvme slots slow hdd shelves 0"' \
	"$ctl" format --json --dry-run --tier nvme=fast --tier hdd=slow --size 500M
unchanged fast slow -- expect 0 "terrace - 2 fast nvme slots slow hdd shelves 0'" \
	"$ctl" format --dry-run --tier nvme=fast --tier hdd=slow

# what a device holds is named, and stays
refused() {
	local pattern=$1
	shift
	unchanged fast slow -- expect 1 "$pattern" "$ctl" format --tier nvme=fast --tier hdd=slow "$@"
	unchanged fast slow -- one_line "$ctl" format --tier nvme=fast --tier hdd=slow "$@"
}
mkfs.ext4 -q -L precious slow
refused "^terracectl: slow holds a filesystem \(ext4 'precious'\): nothing changed; --force overwrites it$"
new_images slow 1G
mkfs.xfs -q slow
refused "slow holds a filesystem \(xfs\): nothing changed"
new_images slow 1G
# one partition: type 83, from sector 2048, 4096 sectors
printf '\0\0\0\0\x83\0\0\0\0\x08\0\0\0\x10\0\0' | dd of=slow bs=1 seek=446 conv=notrunc status=none
printf '\x55\xaa' | dd of=slow bs=1 seek=510 conv=notrunc status=none
refused "slow holds a dos partition table: nothing changed"
new_images slow 1G
printf x | dd of=slow bs=1 seek=70000 conv=notrunc status=none
refused "slow holds data of an unknown kind .*: 70000\)"
new_images slow 1G
"$ctl" format --name other --tier nvme=fast --tier hdd=slow >/dev/null
unchanged fast slow -- expect 1 "fast holds tier 0 of Terrace volume 'other' \([0-9a-f-]{36}\)" \
	"$ctl" format --tier nvme=fast --tier hdd=slow
mkfs.ext4 -q -F slow
expect 0 '^dmsetup' "$ctl" format --force --tier nvme=fast --tier hdd=slow
expect 0 ': sound$' "$ctl" check --full fast slow
check_eq "old filesystem" "$(blkid -p slow || true)" ""

# an older volume's journal is not taken for the new one's
build_image
./image fast slow >/dev/null
expect 0 ' [1-9][0-9]* journal records' "$ctl" check --full fast slow
"$ctl" format --force --tier nvme=fast --tier hdd=slow >/dev/null
expect 0 ' 0 journal records; 0 map pages' "$ctl" check --full fast slow

# impossible plans
new_images fast 256M slow 1G
refused "size 2 GiB does not fit: the tiers hold 1.03 GiB \([0-9]+ bytes\) after reserves; more is possible with --overcommit" --size 2G
refused "a journal of 4 KiB is too small: it must have 1 MiB to 256 MiB" --journal 4096
refused "a journal of 1 GiB is too large" --journal 1G
one() { unchanged fast slow -- expect 1 "$1" "$ctl" format "${@:2}"; }
one "tier 1 \(nvme, slow\) is faster than the tier before it \(hdd\)" --tier hdd=fast --tier nvme=slow
one "no tier is of kind slots, .* like qlc:slots=fast" --tier qlc=fast --tier hdd=slow
one "tier 1 \(hdd, tiny\) is too small: it has 1 MiB, this volume needs at least " --tier nvme=fast --tier hdd=tiny
one "tier 0 \(nvme, tiny\) is too small" --tier nvme=tiny --tier hdd=slow
one "metadata device \(tiny\) is too small: it has 1 MiB" --tier nvme=fast --tier hdd=slow --meta tiny
one "nowhere: No such file or directory" --tier nvme=fast --tier hdd=nowhere
one "/dev/null is neither a block device nor an image file" --tier nvme=fast --tier hdd=/dev/null

# one at a time
# shellcheck disable=SC2094 # only locked
( flock 9; expect 1 "slow is in use: " "$ctl" format --tier nvme=fast --tier hdd=slow ) 9< slow

# wrong calls
usage() { expect 2 "$1" "$ctl" "${@:2}"; }
usage "no command given"
usage "unknown command 'frmat'" frmat
usage "a volume has at least 2 tiers, 1 given" format --tier nvme=fast
usage "unknown class 'ssd', known are: optane, nvme, qlc, hdd, csd, net" format --tier ssd=fast --tier hdd=slow
usage "no device; write CLASS=DEVICE" format --tier nvme --tier hdd=slow
usage "'fast2' is none of: slots, shelves, home, atomic, noatomic, align-SIZE" format --tier nvme:fast2=fast --tier hdd=slow
usage "fast and ./fast are the same device" format --tier nvme=fast --tier hdd=./fast
ln fast hardlink
usage "fast and hardlink are the same device" format --tier nvme=fast --tier hdd=hardlink
usage "'slow': devices are named with --tier" format --tier nvme=fast slow
for size in 10X x -5 1e9 0x10 "" 1.2.3 99999P; do
	usage "--size $size: (not a size|too large)" format --tier nvme=fast --tier hdd=slow --size "$size"
done
usage "--size 4097: not a multiple of 4 KiB" format --tier nvme=fast --tier hdd=slow --size 4097
usage "--size 0: must be more than 0" format --tier nvme=fast --tier hdd=slow --size 0
usage "--mirror both: must be auto, sync, lazy or none" format --tier nvme=fast --tier hdd=slow --mirror both
usage "--name 'a b': 1 to 63 letters" format --tier nvme=fast --tier hdd=slow --name 'a b'
usage "--uuid 12: not a UUID" format --tier nvme=fast --tier hdd=slow --uuid 12
usage "--reserve 80: must be a percentage" format --tier nvme=fast --tier hdd=slow --reserve 80
usage "unrecognized option '--frce'" format --frce
expect 0 "^usage: terracectl format" "$ctl" format --help
expect 0 "^  check +is this volume sound" "$ctl" --help
