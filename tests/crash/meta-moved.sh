#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Metadata that terracectl repair --to moved to a new device: once the volume was used with it, nobody goes on with the old ones, which still lie on a tier; add and restore find the new ones.
# vm: mode=functional cpus=1 memory=3G timeout=300
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

put() { head -c 4096 /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=4k oflag=direct conv=fsync seek="$1" status=none; }
get() { dd if="$VOL" bs=4k iflag=direct skip="$1" count=1 status=none | head -c 1; }
check() { says ': sound$' check --full "$@"; }
# the volume with its tiers alone, by hand and by terracectl
refused() {
	refuses 1 "its metadata is stale .*: the volume went on without it" check "${tiers[@]}"
	refuses 1 "metadata is stale" activate "${tiers[@]}"
	klog_expect 'metadata copy 0 is stale'
	if dmsetup create vol --table "$VOL_TABLE" 2> /dev/null; then die "the old metadata were believed"; fi
}

for mirror in none sync lazy; do
	vol_ram 64 256
	mkram next 64
	mkram meta 16
	tiers=("${VOL_DRIVES[0]}" /dev/ram/next "${VOL_DRIVES[1]}")
	vol_format --tier "optane:slots:atomic=${tiers[0]}" --tier "nvme:slots:atomic=${tiers[1]}" --tier "hdd:shelves:atomic=${tiers[2]}" --mirror $mirror
	vol_up
	put 1 a
	vol_down
	says "nothing lost" repair --to /dev/ram/meta "${tiers[@]}"
	# not used yet: it can be taken back
	check "${tiers[@]}"

	says "" activate "${tiers[@]}" /dev/ram/meta
	check_eq "$mirror: block 1" "$(get 1)" a
	put 1 b
	says "" deactivate vol
	check "${tiers[@]}" /dev/ram/meta
	refused

	# a running volume keeps its metadata device
	says "" activate "${tiers[@]}" /dev/ram/meta
	table=$(dmsetup table vol)
	read -ra words <<< "$table"
	words[3]=-
	expect_fail "reload ioctl on vol .*failed" dmsetup load vol --table "${words[*]}"
	klog_has "Metadata device is not the running volume's" || die "no word why the metadata device cannot be taken out"
	dmsetup load vol --table "$table"
	dmsetup suspend --noudevsync vol
	dmsetup resume --noudevsync --noudevrules vol
	check_eq "$mirror: block 1 after reload" "$(get 1)" b
	says "" deactivate vol

	# what changes and copies metadata finds the new ones
	terracectl dump --all --json "${tiers[@]}" /dev/ram/meta > /dev/shm/dump
	says "" restore --force /dev/shm/dump "${tiers[@]}" /dev/ram/meta
	check "${tiers[@]}" /dev/ram/meta
	says "" activate "${tiers[@]}" /dev/ram/meta
	check_eq "$mirror: block 1 after restore" "$(get 1)" b
	mkram more 256
	# what the volume went on without need not even have superblocks
	[ $mirror != sync ] || dd if=/dev/zero of=/dev/ram/next bs=4k seek=16 count=2 oflag=direct conv=notrunc status=none
	says "" add vol --yes --tier hdd:shelves:atomic=/dev/ram/more
	check_eq "$mirror: tiers" "$(dmsetup table vol | cut -d' ' -f5)" 4
	put 2 c
	check_eq "$mirror: block 1 after add" "$(get 1)" b
	says "" deactivate vol
	check "${tiers[@]}" /dev/ram/more /dev/ram/meta
	for d in fast slow next meta more; do rmram $d; done
	pass "mirror $mirror"
done
