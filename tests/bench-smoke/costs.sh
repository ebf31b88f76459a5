#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# No I/O costs more than 3 % more instructions than tests/bench-smoke/costs says
# vm: mode=vtime memory=1500M timeout=400 build=bench-tools,orders
#
# Nanoseconds of virtual time, which are instructions, above the RAM disk below: hits,
# new blocks, fsyncs, packed reads; appends above a drive of the model. They repeat to hundredths of a percent, so 3 %
# more is a change of the code. Who makes something dearer on purpose, or cheaper, writes the
# new figure into the file, in the same commit, with the reason in its message.
# Other kernels than the file's are measured and not judged.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

COSTS=$TERRACE_TREE/tests/bench-smoke/costs
BLOCKS=4096		# 16 MiB, mapped and hot
IOS=${IOS:-20000}
PERCENT=3
declare -A WANTED
judged=yes dearer=0

PATH=$TERRACE_TREE/build/bench:$TERRACE_TREE/build:$PATH in_ram each commits orders dmsetup

each() { from_ram each "$@"; }

# cost NAME TENTHS: beside the figure of the file
cost() {
	local name=$1 got=$2 held=${WANTED[$1]:-} verdict=
	if [ -z "$held" ]; then
		verdict="not in the file"
		dearer=$((dearer + 1))
	elif [ "$got" -gt $((held + held * PERCENT / 100)) ]; then
		verdict="DEARER"
		dearer=$((dearer + 1))
	elif [ "$got" -lt $((held - held * PERCENT / 100)) ]; then
		verdict="cheaper: write it into the file"
	fi
	printf '%-28s %8s.%s ns, in the file %8s.%s  %s\n' "$name" $((got / 10)) $((got % 10)) $((${held:-0} / 10)) $((${held:-0} % 10)) "$verdict"
}

# name figure, in tenths here
while read -r name figure; do
	[[ $name && $name != \#* ]] || continue
	[ "$name" != kernel ] || { [[ $(uname -r) = "$figure"* ]] || judged=; continue; }
	WANTED[$name]=${figure/./}
done < "$COSTS"

mkram raw 16
vol_ram 64 512
# The RAM disks' pages are there before anything is measured.
for disk in /dev/ram/raw /dev/ram/fast /dev/ram/slow; do dd if=/dev/zero of=$disk bs=1M oflag=direct status=none 2> /dev/null || true; done
vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "hdd:shelves:atomic=/dev/ram/slow" --journal 16M
vol_up stream_kb=0
sleep 5		# what follows takes 16 ms: nothing of the start is to fall into it

# ---- new blocks ----

# word NAME: of what commits said
word() { sed -n "s/\(.* \)\?$1=\([0-9]*\).*/\2/p" <<< "$said"; }
said=$(from_ram commits /dev/ram/raw $BLOCKS $BLOCKS 64 32)
raw=$(word write)
said=$(from_ram commits "$VOL" $BLOCKS $BLOCKS 64 32)
[ "$(vol_get new)" = $BLOCKS ] || die "$(vol_get new) of $BLOCKS writes were to new blocks"
cost new-block-64-a-commit $((($(word write) - raw) * 10))
cost fsync-of-64-new-blocks $(($(word sync) * 10))

# ---- hits ----

vol_message checkpoint
sleep 10		# the idle checkpoint and the lazy mirror's copy are done
for op in read write; do
	for depth in 1 32; do
		each "$VOL" $op $BLOCKS 500 $depth > /dev/null
		raw=$(each /dev/ram/raw $op $BLOCKS "$IOS" $depth)
		cost $op-hit-depth-$depth $(($(each "$VOL" $op $BLOCKS "$IOS" $depth) - raw))
	done
done
[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
from_ram commits "$VOL" $BLOCKS 200 1 1 > /dev/null	# the first flushes what the hits above wrote
# What the volume does by itself meanwhile (a commit of 100 us, say) is none of an fsync's costs: the least of five rounds.
least=
for _ in 1 2 3 4 5; do
	said=$(from_ram commits "$VOL" $BLOCKS 1000 1 1)
	echo "# a round of 1,000 fsyncs: $said"
	[ "${least:-999999}" -le "$(word sync)" ] || least=$(word sync)
done
cost fsync-after-write-in-place $((least * 10))

# ---- packed reads ----

# Half of each block is noise, half zeros, in LZ4 clusters of 4 KiB on the slow drive; indexes known, nothing kept in RAM.
perl -e 'srand 1; print join("", map { (pack("C*", map { int rand 256 } 1 .. 2048), "\0" x 2048) } 1 .. 16) x $ARGV[0]' $((BLOCKS / 16)) > /dev/shm/half
dd if=/dev/shm/half of="$VOL" bs=64k oflag=direct conv=fsync status=none
vol_reload stream_kb=0 cache_mb=0
from_ram orders /dev/terrace/vol sweep 0 $((BLOCKS / 1024)) append tier_down=1 codec=lz4 > /dev/shm/swept || die "sweep: $(cat /dev/shm/swept)"
grep -q "\bdown=$BLOCKS\b" /dev/shm/swept || die "not all went down: $(cat /dev/shm/swept)"
reads=$(vol_tier 1 reads)
for depth in 1 32; do
	each "$VOL" read $BLOCKS 500 $depth > /dev/null
	raw=$(each /dev/ram/raw read $BLOCKS "$IOS" $depth)
	cost packed-read-depth-$depth $(($(each "$VOL" read $BLOCKS "$IOS" $depth) - raw))
done
[ $(($(vol_tier 1 reads) - reads)) -ge $((2 * IOS)) ] || die "some reads were not of packs: $(vol_status)"

# ---- fsynced appends ----

# The drive takes time here: who prepares places writes to it beside the appender.
vol_down
mkdrive nvme nvme-tlc 128 lbs=4096 powercut=off cache=off
dd if=/dev/zero of=/dev/mapper/nvme bs=1M oflag=direct status=none 2> /dev/null || true
appends() { said=$(from_ram commits "$1" 8192 4000 1 1 order); echo "# 4,000 appends to $1: $said"; }
appends /dev/mapper/nvme
raw=$(word write)
VOL_DRIVES=(/dev/mapper/nvme /dev/ram/slow)
vol_format --tier nvme:slots:atomic=/dev/mapper/nvme --tier hdd:shelves:atomic=/dev/ram/slow --journal 16M
vol_up stream_kb=0
sleep 5
appends "$VOL"
cost append-fsynced $((($(word write) - raw) * 10))

vol_down
[ "$judged" ] || skip "the file has figures of another kernel than $(uname -r)"
[ $dearer = 0 ] || die "$dearer of these cost more than $PERCENT % more than tests/bench-smoke/costs says, or are not in it"
pass "no I/O costs more than it did"
