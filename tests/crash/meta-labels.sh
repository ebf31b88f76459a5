#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A sector of a label that cannot be read takes no device away; a lazy mirror that was clean when the volume went on without it is not believed.
# vm: mode=functional cpus=1 memory=2G timeout=600
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

klog_allow 'drive (fast|slow)'
klog_allow 'lazy metadata mirror'
dd if=/dev/urandom of=/dev/shm/written bs=4k count=8 status=none
vol_drives 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none
vol_up
dd if=/dev/shm/written of="$VOL" bs=4k oflag=direct status=none
vol_down

# a sector of a label that cannot be read: the other copy serves
for sector in 0 8; do
	drive slow error add read $sector 8
	said=$(terracectl list 2>&1) || die "list: $said"
	[[ $said != *missing* && $said = */slow* ]] || die "list does not find the drive: $said"
	said=$(terracectl check "${VOL_DRIVES[@]}" 2>&1) && die "check does not see sector $sector: $said"
	[[ $said = *"label copy $((sector / 8)) "*"Input/output error"* ]] || die "check: $said"
	said=$(terracectl salvage --dry-run "${VOL_DRIVES[@]}" 2>&1) || die "salvage: $said"
	[[ $said = *" 0 lost"* ]] || die "salvage: $said"
	vol_up
	cmp -n 32768 /dev/shm/written "$VOL"
	vol_down
	drive slow error clear
done
vol_check
pass "a sector of a label that cannot be read"

# the volume was used without the drive of its lazy mirror, which was CLEAN: the other drives know
for d in fast slow; do rmdrive $d; done
for d in fast:64 next:256 slow:256; do mkdrive ${d%:*} ram ${d#*:} lbs=4096 group=pc; done
VOL_DRIVES=(/dev/mapper/fast /dev/mapper/next /dev/mapper/slow)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M
whole=$VOL_TABLE
without() { VOL_TABLE=${whole/\/dev\/mapper\/$1/missing}; [ "$VOL_TABLE" != "$whole" ] || die "no $1 in $whole"; }
certain() { terracectl salvage --dry-run /dev/mapper/next /dev/mapper/slow 2>&1 | sed -n 's/.* \([0-9]*\) blocks certain.*/\1/p'; }
vol_up stream_kb=64 avoid_tiers=1
dd if=/dev/urandom of="$VOL" bs=1M count=4 oflag=direct status=none
vol_down
[ "$(certain)" -gt 0 ] || die "a lazy mirror of a clean stop is not believed"
without next
vol_up commit_ms=100
dd if=/dev/shm/written of="$VOL" bs=4k oflag=direct,dsync status=none
vol_down
without fast
klog_allow 'metadata copy 0'
dmesg -C
if vol_up read_only 2> /dev/null; then die "a lazy mirror that the volume went on without was believed"; fi
klog_has 'it is behind: salvage the volume' || die "a lazy mirror that is behind is not named: $(dmesg)"
check_eq "blocks that are certain" "$(certain)" 0
VOL_TABLE=$whole
vol_up
cmp -n 32768 /dev/shm/written "$VOL"
vol_down
vol_check
without fast
vol_up read_only
vol_down
[ "$(certain)" -gt 0 ] || die "a lazy mirror that is in step again is not believed"
pass "a lazy mirror that the volume went on without"

# either superblock of the mirror is damaged: the other is not taken for the volume's last state. format marks both CLEAN
VOL_TABLE=$whole
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M
whole=$VOL_TABLE
mirror=/dev/mapper/next		# tier 1 has it
start=$(terracectl dump super "${VOL_DRIVES[@]}" | sed -n "s|^label device=$mirror .* meta_start=\([0-9]*\).*|\1|p")
[ "$start" ] || die "where is the lazy mirror's metadata?"
dd if="$mirror" of=/dev/shm/formatted bs=4k skip="$start" count=2 iflag=direct status=none
vol_up commit_ms=100
dd if=/dev/shm/written of="$VOL" bs=4k oflag=direct,dsync status=none
vol_cut
newest=$(terracectl dump super "${VOL_DRIVES[@]}" | sed -n "s|^superblock device=$mirror .* generation=\([0-9]*\) .*|\1|p" | sort -n | tail -1)
without fast
klog_allow 'superblock . of metadata copy 2'
for k in 0 1 marked; do
	# as a module left it that took the mark off the newer one alone
	if [ $k = marked ]; then
		k=$((newest % 2))
		dd if=/dev/shm/formatted of="$mirror" bs=4k skip=$((!k)) seek=$((start + !k)) count=1 oflag=direct conv=notrunc status=none
	fi
	dd if="$mirror" of=/dev/shm/super bs=4k skip=$((start + k)) count=1 iflag=direct status=none
	dd if=/dev/urandom of="$mirror" bs=4k seek=$((start + k)) count=1 oflag=direct status=none
	dmesg -C
	if vol_up read_only 2> /dev/null; then die "a lazy mirror that the volume went on without was believed, without its superblock $k"; fi
	klog_has 'it is behind: salvage the volume' || die "superblock $k of the lazy mirror: $(dmesg)"
	if said=$(terracectl salvage --dry-run /dev/mapper/next /dev/mapper/slow 2>&1); then die "superblock $k of the lazy mirror: $said"; fi
	dd if=/dev/shm/super of="$mirror" bs=4k seek=$((start + k)) count=1 oflag=direct status=none
done
VOL_TABLE=$whole
vol_up
cmp -n 32768 /dev/shm/written "$VOL"
vol_down
vol_check
pass "the mark of a clean stop is taken off both superblocks"
