#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Damaged metadata, opened, read as a whole, written to and moved by the module: with a wrong checksum each block reads as it was or as an error, with right ones nothing hangs and the kernel does not complain.
# vm: mode=functional memory=3G timeout=900 build=oracle,orders,scribble
#
# One structure at a time, of labels, superblocks, the meta bitmap, the journal, pages of
# all trees. There is no second copy, which would be used instead. And of the shelves: headers
# of packs, owner blocks, tables of owners, payloads; the map says whose a block is, and a
# pack's record what its header's checksum is, so with right ones, too, each block reads as it
# was or as an error. Each round prints its seed; FIRST=N ROUNDS=1 repeats round N.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
FIRST=${FIRST:-1}
ROUNDS=${ROUNDS:-100000}
LIMIT=${LIMIT:-40}	# seconds, but
LEAST=20		# rounds: a busy machine may make fewer in that, and one in eight or so is refused
PATIENCE=60		# for whatever is asked of a damaged volume
[[ $(uname -r) != *-terrace-debug ]] || PATIENCE=600
PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup orders scribble dd blkdiscard
dmsetup() { from_ram dmsetup "$@"; }
mkram fast 32
mkram slow 448
VOL_DRIVES=(/dev/ram/fast /dev/ram/slow)
UP=(stream_kb=64 commit_ms=60000 janitor_high=1000 janitor_low=990)

# keep NAME, and give back: the drives as they are
keep() { local d; for d in fast slow; do from_ram dd if=/dev/ram/$d of="/dev/shm/$1-$d" bs=1M iflag=direct conv=sparse status=none; done; }
give() {
	local d
	for d in fast slow; do
		from_ram blkdiscard -f /dev/ram/$d 2> /dev/null
		from_ram dd if=/dev/shm/"$1"-$d of=/dev/ram/$d bs=1M oflag=direct conv=sparse status=none
	done
}
patiently() {
	local status=0
	timeout $PATIENCE env LD_LIBRARY_PATH="$RAM/lib" "$RAM/$1" "${@:2}" > /dev/shm/said 2>&1 || status=$?
	[ $status != 124 ] || die "round $round: $* hangs"
	return $status
}

vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --size 48M --mirror none
vol_up "${UP[@]}"
oracle_new "$SEED"
for n in 1 2 3; do
	oracle_run --ops 150 --max-kb 64 --seed $((SEED + n)) > /dev/null
	for region in 0 1 2 3 4 5; do
		from_ram orders /dev/terrace/vol move $((region + n)) append codec=lz4 shift=2 tier_down=1 > /dev/null 2>&1 || true
	done
	from_ram orders /dev/terrace/vol move "$n" raise up=0-300 > /dev/null 2>&1 || true
	vol_message checkpoint
done
oracle_run --ops 100 --max-kb 64 --seed $((SEED + 8)) > /dev/null
# what compresses, too; in such small pieces that it is no stream
codecs=([10]=lz4 [11]=zstd)
for region in "${!codecs[@]}"; do
	seq $((region * 1000000)) $((region * 1000000 + 400000)) > /dev/shm/text
	for ((n = 0; n < 128; n++)); do dd if=/dev/shm/text of="$VOL" bs=16k count=1 oflag=direct skip=$n seek=$((region * 256 + n * 37 % 128)) status=none; done
	from_ram orders /dev/terrace/vol move "$region" append "codec=${codecs[region]}" shift=4 tier_down=1 > /dev/shm/said || die "order: $(cat /dev/shm/said)"
	grep -q ' packs=[1-9]' /dev/shm/said || die "no pack: $(cat /dev/shm/said)"
done
vol_message commit
keep journal		# as after a power cut
dd if="$VOL" of=/dev/shm/content bs=1M iflag=direct status=none
dd if=/dev/urandom of=/dev/shm/fresh bs=64k count=16 status=none
vol_down
vol_check
keep clean

SECONDS=0	# on a busy machine what comes before takes longer than LIMIT
opened=0 refused=0 errors=0 shelves=0 packs=0 copies=0
for ((round = FIRST; round < FIRST + ROUNDS && (SECONDS < LIMIT || round < FIRST + LEAST); round++)); do
	from=clean how=(sealed) drive=fast known=() up=("${UP[@]}")
	case $((round % 5)) in
	0)	how=(raw) known=(/dev/shm/known) ;;
	1)	from=journal ;;
	4)	how=(shelf sealed) drive=slow known=(/dev/shm/known)
		[ $((round % 3)) != 0 ] || how=(shelf raw)
		[ $((round % 4)) != 0 ] || from=journal
		# a copy of a pack's index, on the fast drive; what follows it there is somebody's data
		[ $((round % 15)) != 14 ] || how=(shelf sealed) drive=fast ;;
	esac
	[ $((round % 8)) != 5 ] || up+=(read_only)	# which deals out no space
	give $from
	what=$(from_ram scribble "${how[@]}" $((SEED * 1000000 + round)) /dev/ram/$drive)
	echo "round $round, $from, ${how[*]}${up[${#UP[@]}]:+, read-only}: $what"
	if ! (vol_up "${up[@]}") > /dev/shm/said 2>&1; then
		refused=$((refused + 1))
		continue
	fi
	opened=$((opened + 1))
	[ $drive != slow ] || shelves=$((shelves + 1))
	case $drive,$what in
	slow,pack*) packs=$((packs + 1)) ;;
	fast,pack*) copies=$((copies + 1)) ;;
	esac
	[ ${#known[@]} = 0 ] || cp /dev/shm/content /dev/shm/known
	patiently scribble read "$VOL" "${known[@]}" || { cat /dev/shm/said; die "round $round (seed $SEED)"; }
	grep -q ' 0 cannot' /dev/shm/said || errors=$((errors + 1))
	if patiently dd if=/dev/shm/fresh of="$VOL" bs=64k seek=$((round % 700)) oflag=direct status=none; then
		[ ${#known[@]} = 0 ] || dd if=/dev/shm/fresh of=/dev/shm/known bs=64k seek=$((round % 700)) conv=notrunc status=none
	else
		known=()	# some of it may be there
	fi
	patiently orders /dev/terrace/vol random 8 "$round" 4 tier_down=1 || true
	patiently dmsetup message vol 0 checkpoint || true
	patiently scribble read "$VOL" "${known[@]}" || die "round $round: reading once more: $(cat /dev/shm/said)"
	patiently dmsetup remove --noudevsync --noudevrules vol || die "round $round: cannot be stopped: $(cat /dev/shm/said)"
done
[ $opened -gt 0 ] || die "none of them opened"
[ $shelves -gt 0 ] || [ "$ROUNDS" -lt $LEAST ] || die "none of them has a damaged shelf"
[ $packs -gt 0 ] || [ $shelves -lt 12 ] || die "none of $shelves damaged shelves has a damaged pack"
[ $copies -gt 0 ] || [ "$ROUNDS" -lt $LEAST ] || die "none of them has a damaged copy of a pack's index"
[ $refused -gt 0 ] || [ "$ROUNDS" -lt $LEAST ] || die "all of them opened"
pass "$((opened + refused)) damaged volumes: $refused refused, $opened opened, $errors of them with blocks that cannot be read, $shelves with a damaged shelf ($packs of them a pack), $copies with a damaged copy of a pack's index"
