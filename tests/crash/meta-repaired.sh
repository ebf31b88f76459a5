#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Metadata repaired in place while the drive of the lazy mirror is away: what that drive brings back is never believed, the data are right with it and without it, and it is copied anew.
# vm: mode=functional cpus=1 memory=2G timeout=900
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

klog_allow 'drive (fast|next|slow)'
klog_allow 'metadata copy 0'
klog_allow 'lazy metadata mirror'
klog_allow 'map page of region'
RANDOM=${SEED:-1}
REGION=$((4 << 20))
LOST=5		# the region whose pages are damaged

without() { VOL_TABLE=${whole/\/dev\/mapper\/$1/missing}; [ "$VOL_TABLE" != "$whole" ] || die "no $1 in $whole"; }
# at REGION [AVOID]: 1 MiB somewhere in it is new, on tiers that are not avoided; the model has it, too
at() {
	local first=$(($1 * 1024 + RANDOM % 768))
	vol_message set avoid_tiers="${2:-0}"
	head -c 1M /dev/urandom > /dev/shm/new
	dd if=/dev/shm/new of="$VOL" bs=64k seek=$((first * 4096)) oflag=direct,dsync,seek_bytes status=none
	dd if=/dev/shm/new of=/dev/shm/model bs=4k seek=$first conv=notrunc status=none
}
# region 0 in slots, 2 and 3 on the slow drive, where what is read without the fast one is: the mirror's drive has no data
version() {
	at 0 2
	at 2 3
	at 3 3
	vol_message checkpoint
}
# same WHEN REGION...: as in the model
same() {
	local r
	for r in "${@:2}"; do
		dd if="$VOL" bs=1M skip=$((r * 4)) count=4 iflag=direct status=none 2> /dev/null | cmp - <(tail -c +$((r * REGION + 1)) /dev/shm/model | head -c $REGION) ||
			die "$what, $1: region $r"
	done
}
# the mirror's drive keeps what is copied there, but for superblocks, until the power fails
hold() { drive next error add write "$mirror" $((64 << 11)) hold; }
cut_held() {
	drive_cut fast
	drive next error clear
	drive next release
	dmr vol
	drive_revive fast
}
# refused WHEN: without the fast drive only the mirror is left, and it is not to be believed
refused() {
	without fast
	dmesg -C
	if vol_up read_only 2> /dev/null; then die "$what, $1: the lazy mirror was believed"; fi
	klog_has 'it is behind: salvage the volume|No readable superblock on any device' || die "$what, $1: why is it refused? $(dmesg)"
	if said=$(terracectl salvage --dry-run /dev/mapper/next /dev/mapper/slow 2>&1); then die "$what, $1: $said"; fi
	VOL_TABLE=$whole
}
# served WHEN: in step again
served() {
	without fast
	vol_up read_only
	same "$1" 2 3
	vol_down
	VOL_TABLE=$whole
}

# a volume whose mirror is CLEAN: format has made it so, and a clean stop since
make() {
	local d
	for d in fast:64 next:256 slow:256; do mkdrive ${d%:*} ram ${d#*:} lbs=4096 group=pc; done
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/next /dev/mapper/slow)
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M
	whole=$VOL_TABLE
	read -r mirror superblocks < <(vol_layout next super)
	mirror=$((mirror + superblocks))
	truncate -s 0 /dev/shm/model
	truncate -s 32M /dev/shm/model
	vol_up commit_ms=100
	check_eq "mirror" "$(vol_get mirror)" lazy
	version
	at $LOST 2
	vol_down
}
# how the volume goes on until it is damaged: the mirror's drive
clean() { vol_up commit_ms=100; version; vol_down; }		# is up to date
away() { without next; vol_up commit_ms=100; version; version; vol_cut; }
held() {							# takes nothing more from some generation on
	vol_up commit_ms=100
	version
	hold
	for ((i = 0; i < 4; i++)); do version; done
	cut_held
}
damage() {
	local page pages
	pages=$(vol_map_pages /dev/mapper/fast $LOST)
	[ "$pages" ] || die "no map page of region $LOST found"
	for page in $pages; do dd if=/dev/urandom of=/dev/mapper/fast bs=4k seek="$page" count=1 oflag=direct conv=notrunc status=none; done
	VOL_TABLE=$whole
	vol_up read_only
	expect_fail 'Input/output error' dd if="$VOL" of=/dev/null bs=4k skip=$((LOST * 1024)) count=1 iflag=direct status=none
	vol_down
}
repaired() {
	local status=0
	said=$(terracectl repair --in-place /dev/mapper/fast /dev/mapper/slow 2>&1) || status=$?
	grep -q 'blocks mapped' <<< "$said" || die "$what: nothing was repaired: $said"
	grep -q "blocks are not kept\|lost" <<< "$said" || die "$what: not a word of losses: $said"
	echo "$what: repair: status $status, ${said##*$'\n'}"
}
# what was lost reads as zeros, and as nothing else
same_lost() {
	dd if="$VOL" bs=1M skip=$((LOST * 4)) count=4 iflag=direct of=/dev/shm/got status=none
	python3 - $LOST <<- 'PYTHON' || die "$what, $1: the region that was lost has something else"
		import sys
		region, size = int(sys.argv[1]), 4 << 20
		model, got = open('/dev/shm/model', 'rb').read()[region * size:][:size], open('/dev/shm/got', 'rb').read()
		block = lambda data, at: data[at:at + 4096]
		sys.exit(any(block(got, at) not in (bytes(4096), block(model, at)) for at in range(0, size, 4096)))
	PYTHON
}
all_same() { same "$1" 0 1 2 3 4 6 7; same_lost "$1"; }

# what follows the repair
used_without() {	# the drive is away still, and comes back beside a volume that went on
	without next
	vol_up commit_ms=100
	all_same "without the drive"
	version
	all_same "without the drive, written"
	vol_down
	refused "used without the drive"
}
used_with() {		# the drive is back, the power fails before the mirror is whole again
	VOL_TABLE=$whole
	hold
	vol_up commit_ms=100
	all_same "with the drive"
	version
	cut_held
	refused "used with the drive, cut"
}

# one BEFORE AFTER
one() {
	what="$1, $2"
	make
	"$1"
	damage
	repaired
	# not used yet: what a clean stop left is true, as nothing followed it; everything else is behind
	if [ "$1" = clean ]; then served "not used yet"; else refused "not used yet"; fi
	"$2"
	VOL_TABLE=$whole
	vol_up commit_ms=100
	all_same "the drive came back"
	version
	vol_down
	vol_check
	served "copied anew"
	# and without it once more
	without next
	vol_up commit_ms=100
	all_same "without the drive again"
	version
	vol_cut
	refused "without the drive again"
	vol_up
	all_same "with it once more"
	vol_down
	vol_check
	served "copied anew once more"
	for d in fast next slow; do rmdrive $d; done
}

for how in ${HOW:-clean:used_without away:used_with held:used_without held:used_with}; do
	one "${how%:*}" "${how#*:}"
	pass "the mirror before, the drive after: $how"
done
