#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Emulated NVMe drives: their class and kind by what they say of themselves, their SMART log and how full they say they are in terraced's account, a zoned one refused.
# vm: mode=functional memory=2G timeout=300 build=daemon,orders nvme=64,640,128:zoned
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

need nvme
until_ "the drives" test -b /dev/nvme2n1
zoned=/dev/nvme2n1 fast=/dev/nvme0n1 back=/dev/nvme1n1
# which controller is which number is up to the order of probing
for disk in /dev/nvme?n1; do
	if [ "$(cat "/sys/block/${disk##*/}/queue/zoned")" != none ]; then zoned=$disk
	elif [ "$(sectors "$disk")" = $((64 * 2048)) ]; then fast=$disk
	else back=$disk; fi
done
export VOL_DRIVES=("$fast" "$back")

# ---- classes and kinds ----
# taken_for CLASS:KIND:REASON of the fast drive, and of the other
taken_for() {
	local disks=("$fast" "$back") n=0 said class kind
	terracectl create vol --dry-run --tier "$fast" --tier "$back" > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "create --dry-run"; }
	for said; do
		IFS=: read -r class kind _ <<< "$said"
		grep -qxF "${disks[n]} is taken for $said" /dev/shm/said || { cat /dev/shm/said; die "${disks[n]} is not taken for $said"; }
		grep -qE "^  tier $n +$class +$kind +.* ${disks[n]}:" /dev/shm/said || { cat /dev/shm/said; die "${disks[n]} is not planned as $class:$kind"; }
		n=$((n + 1))
	done
}
taken_for "nvme:slots: an NVMe drive" "nvme:slots: an NVMe drive"
echo 1 > "/sys/block/${back##*/}/queue/rotational"
taken_for "nvme:slots: an NVMe drive" "hdd:shelves: it rotates"
# one of both guesses may be what is wrong; a class that was given is none
expect_fail "tier 1 .nvme, $fast. is faster than the tier before it .hdd.: name the tiers from fast to slow" terracectl create vol --dry-run --tier "$back" --tier "$fast"
expect_fail "that $back is of class hdd is a guess: if it is wrong, write --tier CLASS=$back" terracectl create vol --dry-run --tier "$back" --tier "$fast"
expect_fail "that $fast is of class nvme is a guess: if it is wrong, write --tier CLASS=$fast" terracectl create vol --dry-run --tier "$back" --tier "$fast"
said=$(terracectl create vol --dry-run --tier "hdd=$back" --tier "$fast" 2>&1) && die "a wrong order is taken"
[[ $said != *"that $back is"* && $said == *"that $fast is"* ]] || die "a class that was given is called a guess: $said"
echo 0 > "/sys/block/${back##*/}/queue/rotational"
expect_fail "$zoned is a zoned drive, which takes writes only in the order of its zones" terracectl create vol --dry-run --tier "$fast" --tier "$zoned"
expect_fail "$zoned is a zoned drive" terracectl format --name vol --tier "nvme:slots:atomic=$fast" --tier "hdd:shelves:atomic=$zoned"
pass "classes"

# ---- what the drive itself has counted ----
conf_written <<-EOF
	endurance.drive_writes_per_day = 1
EOF
dd if=/dev/zero of="$back" bs=1M count=40 oflag=direct status=none
vol_format --tier "nvme:slots:atomic=$fast" --tier "qlc:shelves:atomic=$back"
vol_up stream_kb=0
daemon_start
told() { [ "$(number drive_written_bytes)" ] && [ "$(grep -c drive_written_bytes /dev/shm/status)" = 2 ]; }
until_ "both drives tell what they have written" told
most=$(sed -n 's/^ *"drive_written_bytes": *\([0-9]*\).*/\1/p' /dev/shm/status | sort -n | tail -1)
if [ "$most" -lt $((40 << 20)) ] || [ "$most" -ge $((200 << 20)) ]; then die "the drive is said to have written $most bytes, of 40 MiB and the metadata"; fi
check_eq "percentage used" "$(number drive_percent_used)" 0
check_eq "critical warning" "$(number drive_critical_warning)" 0
dd if=/dev/urandom of="$VOL" bs=1M count=16 oflag=direct status=none
dd if="$VOL" of=/dev/null bs=1M count=16 iflag=direct status=none
daemon_stop
vol_down
vol_check

# ---- how full it says it is: NUSE of QEMU's drives is always NCAP, which is no report ----
conf_written <<-EOF
	sense = none
EOF
: > "$LOG"
vol_format --tier "nvme:slots:atomic=$fast" --tier "csd:home:atomic=$back"
vol_up stream_kb=0
blocks=$(($(sectors "$back") / 8))
tier=$(echo /sys/fs/terrace/*/tier1)
dd if=/dev/urandom of=/dev/shm/noise bs=1M count=96 status=none
dd if=/dev/shm/noise of="$VOL" bs=1M oflag=direct status=none
used=$(vol_tier 1 used)
[ "${used%/*}" -gt 0 ] || die "96 MiB fit the 64 MiB of the fast drive"
daemon_start
until_ "that the drive says nothing is told" logged "tier 1: its drive does not say how full it is inside \\(NUSE is $blocks of NCAP $blocks blocks, without thin provisioning\\): taken for never full"
sleep 5		# it is asked every two seconds
check_eq "times that is told" "$(grep -c 'does not say how full' "$LOG")" 1
check_eq "physical use and limit" "$(cat "$tier/physical_used")/$(cat "$tier/physical_limit")" 0/0
daemon_stop
cmp -n $((96 << 20)) "$VOL" /dev/shm/noise || die "what went home is not what was written"
vol_down
vol_check
pass "emulated drives have written $most bytes"
