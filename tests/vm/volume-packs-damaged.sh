#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Packs that are damaged, one after the other: what can be read of them is moved together, and a region does not run out of packs for it.
# vm: mode=functional cpus=1 memory=2G timeout=400 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
DATA=/dev/shm/data
order() { said=$(from_ram orders /dev/terrace/vol move "$@") || true; }
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<< "$said"; }
ended() { check_eq "$1: status, error, unreadable" "$(word status) $(word error) $(word unreadable)" "${*:2}"; }
up() { vol_up stream_kb=0 janitor_high=1000 commit_ms=60000; }
packs() { from_ram orders /dev/terrace/vol show 0 | sed 's/.*packs=//'; }
# write FIRST COUNT
write() { dd if=$DATA of="$VOL" bs=4k skip="$1" seek="$1" count="$2" oflag=direct status=none; }
# the newest pack of region 0, which begins with block FIRST, gets a bad block, its 11th; $shelf is where it lies
spoil() {
	vol_down
	shelf=$(($(vol_damage 0 payload 10) / 16384))
	bad+=($(($1 + 10)))
	up
}
# all but the bad blocks are as they were written
same() {
	local from=0 b
	for b in $(sort -n <<< "$(printf '%s\n' "${bad[@]}")") $1; do
		cmp -s -n $(((b - from) * 4096)) -i $((from * 4096)) $DATA "$VOL" || die "blocks $from-$((b - 1)): other data"
		[ "$b" = "$1" ] || ! dd if="$VOL" of=/dev/null bs=4k skip="$b" count=1 iflag=direct 2> /dev/null ||
			die "block $b can be read"
		from=$((b + 1))
	done
}

# checked NR: nothing else than so many bad blocks
checked() {
	local found
	found=$(terracectl check --full "${VOL_DRIVES[@]}" 2>&1) || true
	check_eq "problems" "$(grep "^problem:" <<< "$found" | tee /dev/stderr | grep -vc "are damaged$" || true) $(grep -c "^problem: .* are damaged$" <<< "$found")" "0 $1"
}

klog_allow "terrace: .*(pack|cannot be read)"
vol_drives 64 1024
vol_format
up
dd if=/dev/urandom of=$DATA bs=1M count=4 status=none
bad=() shelves=()
for k in 0 1 2 3; do
	write $((k * 64)) 64
	order 0 append tier_down=1 codec=none
	ended "append" "done" 0 0
	spoil $((k * 64))
	shelves+=("$shelf")
done
check_eq "shelves" "$(sort -u <<< "$(printf '%s\n' "${shelves[@]}")" | wc -l)" 4
check_eq "packs" "$(packs)" 4
for shelf in "${shelves[@]}"; do
	order "$shelf" clean tier_down=1
	ended "cleaning" partly 0 1
done
echo "after four cleanings: $(packs) packs"
[ "$(packs)" -le 5 ] || die "$(packs) packs"
same 256
before=$(drive_get slow write_bytes)
for shelf in "${shelves[@]}"; do
	order "$shelf" clean tier_down=1
	ended "cleaning again" partly EIO 1
done
check_eq "bytes written for it" "$(($(drive_get slow write_bytes) - before))" 0
write 256 8
order 0 append tier_down=1 codec=none
[ "$(word status)" = partly ] || die "an append: $said"
[ "$(packs)" -le 5 ] || die "$(packs) packs"
same 264
vol_message commit
vol_down
checked "${#bad[@]}"
pass "four damaged packs, each cleaned once"

# more of them than a region can have packs
up
damaged=4
for k in 4 5 6 7; do
	first=$((512 + k * 64))
	write $first 64
	order 0 raise up=0		# nothing, so that it is in memory
	order 0 append tier_down=1 codec=none
	[ "$(word status)" = partly ] || break
	vol_down
	# its 11th block is the 11th that can be read of all
	vol_damage 0 payload 10 > /dev/null
	damaged=$((damaged + 1))
	up
done
echo "with $damaged damaged packs: $(packs) packs; $said"
[ "$(packs)" -le 8 ] || die "$(packs) packs"
write 1000 8
order 0 append tier_down=1 codec=none
check_eq "an append: status, error" "$(word status) $(word error)" "failed EIO"
cmp -n $((8 * 4096)) -i $((1000 * 4096)) $DATA "$VOL" || die "what could not be packed: other data"
vol_message commit
vol_down
checked "$damaged"
pass "as many as a region can have"
