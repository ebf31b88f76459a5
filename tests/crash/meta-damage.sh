#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Damaged superblocks, map pages and a lost fast drive: the error is precise, the rest is served, nothing old is called current. The lazy mirror is complete at any time.
# vm: mode=functional cpus=1 memory=3G timeout=600 build=oracle,scribble
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
META=16		# first block of the metadata area: geometry.h

work() { oracle_run --seed "$SEED" --ops 150 --depth 4 --max-kb 64 --max-discard-kb 256 "$@"; }
# scribble DEVICE BLOCK: what was there is gone
scribble() { dd if=/dev/urandom of="$1" bs=4k seek="$2" count=1 oflag=direct conv=notrunc status=none; }
save() { dd if="$1" of="/dev/shm/block$2" bs=4k skip="$2" count=1 iflag=direct status=none; }
restore() { dd if="/dev/shm/block$2" of="$1" bs=4k seek="$2" count=1 oflag=direct conv=notrunc status=none; }
generation() { vol_get generation; }

vol_drives 64 256
fast=/dev/mapper/fast
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M
vol_up commit_ms=100
check_eq "mirror" "$(vol_get mirror)" lazy
oracle_new "$SEED"
work
vol_down

# the newest superblock is gone: the one before and the longer journal say the same
vol_up
newest=$(($(generation) % 2))
vol_down
scribble $fast $((META + newest))
klog_expect 'superblock . of metadata copy 0 is not usable'
vol_up commit_ms=100
oracle_clean
work
vol_down
vol_check
vol_up
oracle_clean
vol_down
pass "the older superblock serves when the newest is damaged"

# both gone: only the lazy mirror is left, which is certain after a clean stop
lose() {
	save $fast $META
	save $fast $((META + 1))
	scribble $fast $META
	scribble $fast $((META + 1))
}
regain() {
	restore $fast $META
	restore $fast $((META + 1))
}

klog_allow 'lazy metadata mirror'
lose
expect_fail . vol_up
klog_has 'Only the lazy metadata mirror is left: the volume can be opened read-only' || die "no word about the superblocks"
vol_up read_only
oracle_clean --keep
vol_down
regain
pass "the lazy mirror serves who reads, after a clean stop"

# and behind after anything else: refused
vol_up commit_ms=100
work
vol_cut
lose
expect_fail . vol_up read_only
klog_has 'it is behind: salvage the volume' || die "a lazy mirror that is behind is not named"
regain
vol_up commit_ms=100
oracle_crash
work
vol_down
vol_check
pass "a lazy mirror that is behind is refused"

# one map page: its region reads as errors, its neighbours are served
REGION=$((4 << 20))
dd if=/dev/urandom of=/dev/shm/data bs=1M count=12 status=none
vol_up
dd if=/dev/shm/data of="$VOL" bs=1M count=12 oflag=direct status=none
vol_down
# every page of region 1 there is, older ones included
pages=$(vol_map_pages $fast 1)
[ "$pages" ] || die "no map page of region 1 found"
for page in $pages; do scribble $fast "$page"; done
klog_expect 'map page of region 1 is damaged'
vol_up
at() { dd if="$VOL" bs=4k iflag=count_bytes,skip_bytes,direct skip="$1" count="$2" status=none; }
at 0 $REGION | cmp -n $REGION - /dev/shm/data
at $((2 * REGION)) $REGION | cmp -i 0:$((2 * REGION)) -n $REGION - /dev/shm/data
expect_fail 'Input/output error' at $REGION 4096
expect_fail 'Input/output error' dd if=/dev/shm/data of="$VOL" bs=4k seek=1024 count=1 oflag=direct
check_eq "mode" "$(vol_get mode)" write
dd if=/dev/shm/data of="$VOL" bs=1M count=4 oflag=direct status=none
vol_message checkpoint
vol_down
vol_up
at 0 $REGION | cmp -n $REGION - /dev/shm/data
expect_fail 'Input/output error' at $REGION 4096
vol_down
pass "a damaged map page fails its own region only"

# ---- the lazy mirror is complete at any time ----

# The mirror gets generation G while the volume goes on to G + 2, which belongs
# where G stands. The power fails at the superblock of that, if it comes; then
# again before the mirror is complete anew; then the fast drive is lost.
at_block() { head -c 4096 /dev/urandom | dd of="$VOL" bs=4k seek="$1" count=1 oflag=direct conv=notrunc status=none; }
rmdrive fast
rmdrive slow
vol_drives 64 320 survive=0 tear=0	# the superblock that is under way does not arrive
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M
vol_up commit_ms=60000
for ((i = 0; i < 8; i++)); do at_block $((i << 10)); done
vol_message commit		# which takes the mirror's mark of a clean stop away
drive slow error add write 128 8000 hold
for ((i = 0; i < 6 && $(drive_get slow held) == 0; i++)); do	# not every generation goes to the mirror
	at_block $((i + 1))
	vol_message checkpoint
	sleep 0.3
done
drive_wait_held slow
at_block 11
vol_message checkpoint
at_block 12
vol_message checkpoint
fuas=$(drive_get slow fuas)
drive slow error clear
drive slow arm fua 2
drive slow release
for ((i = 0; i < 300 && $(drive_get slow fuas) == fuas; i++)); do sleep 0.1; done
[ "$(drive_get slow fuas)" != "$fuas" ] || die "the mirror was not written"
for ((i = 0; i < 15; i++)); do	# for a second generation to come, which must not
	[ "$(drive_get slow state)" = on ] || break
	sleep 0.1
done
vol_cut
drive slow disarm
drive slow arm fua 3
vol_up commit_ms=60000
for ((i = 0; i < 10 && $(drive_get fast cuts) < 2; i++)); do sleep 0.1; done
vol_cut
drive slow disarm
status=0
said=$(terracectl salvage --to /dev/shm/salvaged --map /dev/shm/salvaged.json "${VOL_DRIVES[1]}" 2>&1) || status=$?
check_eq "salvage's exit status ($said)" $status 1
grep -q "unmapped blocks: zeros; blocks may have been written after" <<< "$said" || die "no metadata are left without the fast drive: $said"
pass "the lazy mirror is complete at any time"

# the newest superblock of a volume that was stopped cleanly: the lazy mirror has it, and its mark says that nothing followed
rmdrive fast
rmdrive slow
vol_ram 32 256
vol_format
vol_up
dd if=/dev/urandom of=/dev/shm/stopped bs=1M count=4 status=none
dd if=/dev/shm/stopped of="$VOL" bs=64k oflag=direct,dsync status=none
vol_down
for copy in 0 1; do
	dd if="${VOL_DRIVES[0]}" of=/dev/shm/super bs=4k skip=$((META + copy)) count=1 iflag=direct status=none
	printf damage | dd of="${VOL_DRIVES[0]}" bs=4k seek=$(((META + copy) * 4096 + 500)) oflag=seek_bytes conv=notrunc,fsync status=none
	said=$(terracectl repair --dry-run "${VOL_DRIVES[@]}" 2>&1) || die "superblock $copy: $said"
	[[ $said = *"nothing lost"* ]] || die "superblock $copy: $said"
	dd if=/dev/shm/super of="${VOL_DRIVES[0]}" bs=4k seek=$((META + copy)) oflag=direct conv=notrunc,fsync status=none
done
vol_check
pass "either superblock of a volume that was stopped cleanly may be lost"

# a record that is intact, of regions that the volume does not have
for d in fast slow; do rmram $d; done
vol_drives 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none
vol_up commit_ms=100
dd if=/dev/urandom of="$VOL" bs=4k count=8 oflag=direct,dsync status=none
vol_cut
"$TERRACE_TREE/build/scribble" beyond /dev/mapper/fast
klog_expect 'Journal has a record of blocks or places that do not exist'
if dmsetup create vol --table "$VOL_TABLE" 2> /dev/null; then die "a discard of regions that do not exist was replayed"; fi
for type in 1 9; do	# MAP, CLEAN: a reader would go there, too
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none
	vol_up commit_ms=100
	dd if=/dev/urandom of="$VOL" bs=4k count=8 oflag=direct,dsync status=none
	vol_cut
	"$TERRACE_TREE/build/scribble" nowhere $type /dev/mapper/fast
	for how in "" read_only; do
		if vol_up $how 2> /dev/null; then die "a record of type $type that leads to no tier was replayed ($how)"; fi
	done
done
pass "a journal that names what does not exist is refused"

# pages that contain records which the journal does not reach: older ones would be laid over them
klog_expect 'journal ends at block [0-9]+, before record [0-9]+, pages contain newer ones'
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none
vol_up commit_ms=100
dd if=/dev/urandom of="$VOL" bs=4k count=8 oflag=direct,dsync status=none
vol_message checkpoint
dd if=/dev/urandom of="$VOL" bs=4k count=8 oflag=direct,dsync seek=20 status=none
vol_cut
"$TERRACE_TREE/build/scribble" ahead /dev/mapper/fast
for how in "" read_only; do
	if vol_up $how 2> /dev/null; then die "a journal that ends before what pages contain was taken ($how)"; fi
done
pass "a journal that ends before what pages contain is refused"

# a block of the journal that is damaged without a word: writes behind it were acknowledged, by it or by later ones
journal_blocks() { terracectl dump journal "${VOL_DRIVES[@]}" | sed -n 's/^journal .* meta_block=\([0-9]*\) .*/\1/p'; }
klog_expect 'journal ends at block [0-9]+, before record [0-9]+, but block [0-9]+ was written later'
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 1M
vol_up commit_ms=100
dd if=/dev/urandom of=/dev/shm/written bs=4k count=24 status=none
write_them() {	# [AT]; not in order: places of appends are prepared for many at once
	for ((k = 0; k < 24; k++)); do dd if=/dev/shm/written of="$VOL" bs=4k count=1 skip=$k seek=$((${1:-0} + (k * 7) % 24)) oflag=direct,dsync status=none; done
}
write_them
vol_cut
mapfile -t blocks < <(journal_blocks)
[ ${#blocks[@]} -ge 20 ] || die "only ${#blocks[@]} journal blocks: not a commit a write"
for at in "${blocks[0]}" "${blocks[${#blocks[@]} / 2]}" "${blocks[-2]}"; do
	save $fast $((META + at))
	dd if=/dev/shm/written of=$fast bs=1 count=5 seek=$(((META + at) * 4096 + 100)) conv=notrunc,fsync status=none
	before=$(sha256sum < $fast)
	for how in "" read_only; do
		if vol_up $how 2> /dev/null; then die "a journal with a hole was taken for one that ends ($how)"; fi
	done
	check_eq "the fast drive" "$(sha256sum < $fast)" "$before"
	expect_fail 'is damaged: block [0-9]+ was written when it was durable' terracectl check "${VOL_DRIVES[@]}"
	restore $fast $((META + at))
done
vol_up
for ((k = 0; k < 24; k++)); do dd if="$VOL" bs=4k count=1 skip=$(((k * 7) % 24)) iflag=direct status=none; done | cmp - /dev/shm/written
# a suspend leaves a clean superblock as well; what is written after the resume comes first then
dmsetup suspend vol
dmsetup resume vol
write_them 24
vol_cut
mapfile -t blocks < <(journal_blocks)
[ ${#blocks[@]} -ge 20 ] || die "only ${#blocks[@]} journal blocks after a resume"
save $fast $((META + blocks[0]))
dd if=/dev/shm/written of=$fast bs=1 count=5 seek=$(((META + blocks[0]) * 4096 + 100)) conv=notrunc,fsync status=none
for how in "" read_only; do
	if vol_up $how 2> /dev/null; then die "a journal that begins with a hole was taken for an empty one ($how)"; fi
done
expect_fail 'is damaged: block [0-9]+ was written when it was durable' terracectl check "${VOL_DRIVES[@]}"
restore $fast $((META + blocks[0]))
vol_up
for ((k = 0; k < 24; k++)); do dd if="$VOL" bs=4k count=1 skip=$((24 + (k * 7) % 24)) iflag=direct status=none; done | cmp - /dev/shm/written
vol_down
vol_check
pass "a journal with a hole is refused"

# and can be repaired: what is not certain is lost, and said; nothing reads as anything else; no old block of the ring is taken for proof again
vol_up commit_ms=100
dd if=/dev/urandom of=/dev/shm/written bs=4k count=24 status=none
blkdiscard "$VOL"
write_them
vol_cut
mapfile -t blocks < <(journal_blocks)
at=${blocks[${#blocks[@]} / 2]}
dd if=/dev/shm/written of=$fast bs=1 count=5 seek=$(((META + at) * 4096 + 100)) conv=notrunc,fsync status=none
if said=$(terracectl repair --in-place "${VOL_DRIVES[@]}" 2>&1); then die "nothing is said to be lost: $said"; fi
grep -q 'later ones up to [0-9]* are there' <<< "$said" || die "repair says nothing of the hole: $said"
vol_check
vol_up commit_ms=100
for ((k = 0; k < 24; k++)); do
	at=$(((k * 7) % 24))
	dd if="$VOL" of=/dev/shm/got bs=4k count=1 skip=$at iflag=direct status=none
	cmp -s /dev/shm/got <(dd if=/dev/shm/written bs=4k count=1 skip=$k status=none) || cmp -s -n 4096 /dev/shm/got /dev/zero ||
		die "block $at is neither what was written nor lost"
done
write_them
vol_cut
vol_up
for ((k = 0; k < 24; k++)); do dd if="$VOL" bs=4k count=1 skip=$(((k * 7) % 24)) iflag=direct status=none; done | cmp - /dev/shm/written
vol_down
vol_check
pass "a journal with a hole is repaired"

# a sector of the journal that cannot be read: behind its end it is nobody's business; where it ends, what was acknowledged may be in it
journal_end() { echo $((META + 1 + $(terracectl dump journal "${VOL_DRIVES[@]}" | sed -n 's/^journal .* meta_block=\([0-9]*\) .*/\1/p' | tail -1))); }
klog_allow 'drive (fast|slow)'
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 1M
vol_up commit_ms=100
dd if=/dev/urandom of=/dev/shm/written bs=4k count=8 status=none
dd if=/dev/shm/written of="$VOL" bs=4k oflag=direct,dsync status=none
vol_cut
drive fast error add read $((($(journal_end) + 3) * 8)) 8
vol_up commit_ms=100
dd if=/dev/shm/written of="$VOL" bs=4k oflag=direct,dsync seek=8 status=none
vol_cut
drive fast error clear
drive fast error add read $(($(journal_end) * 8)) 8
klog_expect 'journal block [0-9]+ of metadata copy 0 cannot be read'
if dmsetup create vol --table "$VOL_TABLE" 2> /dev/null; then die "a journal that may go on was taken for one that ends"; fi
vol_up read_only
cat /dev/shm/written /dev/shm/written | cmp -n 65536 "$VOL" -
vol_down
drive fast error clear
vol_up
cat /dev/shm/written /dev/shm/written | cmp -n 65536 "$VOL" -
vol_down
vol_check
pass "a sector of the journal that cannot be read"
