#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The fastest drive is destroyed after a power cut, with a synchronous and a lazy mirror of the metadata and with none: by the synchronous one all else is there; what salvage calls certain is exact, what it calls possibly older was once there, and repair from the shelves brings back everything that they hold.
# vm: mode=functional cpus=1 memory=3G timeout=1200 build=oracle,orders
#
# What the shelves hold is known from elsewhere: the module lists what would be lost with the
# fast drives, and the volume is read; all else that is not zeros is theirs. At rest that is
# done before the cut; under load after it, on all drives, which are then put back as the power had left them.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
SIZE=64			# MiB
BLOCKS=8192		# of these are used
RANDOM=$SEED
UP=(stream_kb=64 commit_ms=60000 janitor_high=1000 janitor_low=990 cache_mb=0)
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup dd
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|next|slow)'
RUNS=/dev/shm/runs	# FIRST NR, by the state that salvage gives them

orders_() { from_ram orders /dev/terrace/vol "$@"; }
order() { orders_ move "$@" > /dev/shm/order || die "order $*: $(cat /dev/shm/order)"; }
some() { oracle_run --seed "$RANDOM" --depth 4 --max-kb 64 --max-discard-kb 128 --blocks $BLOCKS "$@" > /dev/null; }
count() { awk '{ n += $2 } END { print n + 0 }' "$1"; }

SHELVES=1		# the tier
# something of everything: in slots, packed, with clean copies, loose, rewritten since, in the journal only
spread() {
	some --ops 150 --hot 0 --weights write=8,fua=1
	for at in 0 1 2 3; do order $at append codec=lz4 tier_down=$SHELVES up=0-300; done
	order 1 raise tier_up=0 up=0-800
	vol_message set avoid_tiers=$(((1 << SHELVES) - 1))
	some --ops 60 --hot 0 --weights write=8,fua=1
	vol_message set avoid_tiers=0
	vol_message checkpoint
	some --ops 40 --hot 0
	order 2 merge codec=zstd shift=2 tier_down=$SHELVES up=0-200
}
# moves beside writes, until the power goes
random() { orders_ random 100000 "$RANDOM" 8 tier_down=$SHELVES > /dev/shm/random 2>&1; }
load() {
	start random
	local orders=$JOB
	drive fast arm write $((200 + RANDOM % 300))
	oracle_run --seed "$RANDOM" --depth 4 --max-kb 64 --max-discard-kb 128 --blocks $BLOCKS --seconds 60 --ops 100000 > /dev/shm/run 2>&1 || [ $? = 3 ] || { cat /dev/shm/run; die "$what: under load"; }
	drive_wait_off fast
	vol_cut_under "$orders"
	drive fast disarm
}
# what each block is, of those that were written: $RUNS.STATE; prints how many
states() {
	/usr/bin/python3 -ISc '
import json, sys
said, runs = json.load(open("/dev/shm/map")), sys.argv[1]
out = {s: open(f"{runs}.{s}", "w") for s in ("certain", "older", "lost", "doubtful")}
for r in said["ranges"]:
    print(r["block"], r["blocks"], file=out[r["state"].split()[-1]])
print(*(said[f"{s}_blocks"] for s in out), said["unmapped_certain"])
' $RUNS
}

# salvaged STOP DEVICE...
salvaged() {
	local stop=$1 certain older lost doubtful unmapped said
	shift
	rm -f /dev/shm/image /dev/shm/map
	terracectl salvage --older --to /dev/shm/image --map /dev/shm/map "$@" > /dev/shm/said 2>&1 || [ $? = 1 ] || { cat /dev/shm/said; die "$what: salvage"; }
	said=$(states)
	read -r certain older lost doubtful unmapped <<< "$said"
	said=$(oracle verify --keep --ledger "$LEDGER" --device /dev/shm/image "--$stop" --only $RUNS.certain) || { echo "$said"; die "$what: called certain, and is not"; }
	said=$(oracle verify --ledger "$LEDGER" --device /dev/shm/image --older --only $RUNS.older) || { echo "$said"; die "$what: called possibly older, and was never there"; }
	# what nobody knows anything of has zeros in the image
	said=$(oracle verify --ledger "$LEDGER" --device /dev/shm/image --older) || { echo "$said"; die "$what: in the image"; }
	[ "$unmapped" = False ] || [ $((certain + lost + older)) -gt 0 ] || die "$what: nothing known of any block"
	echo "$what: salvaged $certain certain, $older possibly older, $doubtful doubtful, $lost lost"
	CERTAIN=$certain OLDER=$older
}

# held: the blocks that the shelves have the present value of, one on a line
held() {
	local tier
	for ((tier = 0; tier < SHELVES; tier++)); do
		orders_ only $tier || die "what lies on the fast drive alone cannot be listed"
	done > /dev/shm/only
	from_ram dd if="$VOL" of=/dev/shm/content bs=1M iflag=direct status=none
	/usr/bin/python3 -ISc '
only = set()
for line in open("/dev/shm/only"):
    first, nr = map(int, line.split())
    only |= set(range(first, first + nr))
zeros = bytes(4096)
with open("/dev/shm/content", "rb") as f:
    data = f.read()
for block in range(len(data) // 4096):
    if block not in only and data[block * 4096:block * 4096 + 4096] != zeros:
        print(block, 1)
' > /dev/shm/held
	(($(wc -l < /dev/shm/held) >= 500 && $(count /dev/shm/only) >= 200)) || die "$what: only $(wc -l < /dev/shm/held) blocks are on the shelves, $(count /dev/shm/only) on the fast drive alone"
}
# ... after a power cut
held_after() {
	local d
	for d in "${DRIVES[@]}"; do from_ram dd if="/dev/mapper/$d" of="/dev/shm/$d.img" bs=1M iflag=direct conv=sparse status=none; done
	vol_up "${UP[@]}"
	held
	vol_down
	for d in "${DRIVES[@]}"; do
		blkdiscard "/dev/mapper/$d"
		from_ram dd if="/dev/shm/$d.img" of="/dev/mapper/$d" bs=1M oflag=direct conv=sparse status=none
		rm "/dev/shm/$d.img"
	done
}
# same FILE: the blocks of $1 are as they were
same() {
	/usr/bin/python3 -ISc '
import sys
was, now = open("/dev/shm/content", "rb").read(), open("/dev/shm/now", "rb").read()
bad = [b for b in (int(line.split()[0]) for line in open(sys.argv[1])) if was[b * 4096:b * 4096 + 4096] != now[b * 4096:b * 4096 + 4096]]
print(len(bad), "blocks:", *bad[:20])
sys.exit(bool(bad))
' "$1" > /dev/shm/same
}

# only_missing: of all tiers above the shelves nothing is there, and that is all that check has said
only_missing() { [[ $(grep -c '^problem: tier [01]: is missing' /dev/shm/said) = "$SHELVES" ]] && grep -q ": $SHELVES problem" /dev/shm/said; }
# from_shelves [ARG...]: repaired without the fast drive, opened, compared
from_shelves() {
	mkdrive meta ram 16 lbs=4096 group=new
	terracectl repair --from-shelves --to /dev/mapper/meta "$@" /dev/mapper/slow > /dev/shm/said 2>&1 || [ $? = 1 ] || { cat /dev/shm/said; die "$what: repair"; }
	grep -q 'blocks mapped' /dev/shm/said || { cat /dev/shm/said; die "$what: repair wrote nothing"; }
	# nothing else is wrong
	terracectl check --full /dev/mapper/slow /dev/mapper/meta > /dev/shm/said 2>&1 || only_missing || { cat /dev/shm/said; die "$what: not sound"; }
	terracectl activate --degraded --as vol /dev/mapper/slow /dev/mapper/meta > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "$what: does not come up"; }
	from_ram dd if="$VOL" of=/dev/shm/now bs=1M iflag=direct status=none
	same "${HELD:-/dev/shm/held}" || { cat /dev/shm/same; die "$what: not all that the shelves hold came back"; }
	oracle verify --ledger "$LEDGER" --device "$VOL" --older > /dev/shm/verified || { cat /dev/shm/verified; die "$what: what came back"; }
	echo "$what: $(wc -l < "${HELD:-/dev/shm/held}") blocks came back from the shelves as they were"
	vol_down
	rmdrive meta
}

# read_only: the module itself, by the lazy mirror, while it is current
read_only() {
	local whole=$VOL_TABLE
	VOL_TABLE=${whole/\/dev\/mapper\/fast/missing}
	if [ "$1" != clean ]; then
		expect_fail '' vol_up read_only
		klog_has 'Only the lazy metadata mirror is left, and it is behind: salvage the volume' || die "$what: why is it refused?"
		return
	fi
	expect_fail '' vol_up
	vol_up read_only
	from_ram dd if="$VOL" of=/dev/shm/now bs=4k iflag=direct conv=noerror,sync status=none 2> /dev/null || true
	same /dev/shm/held || { cat /dev/shm/same; die "$what: opened read-only by the module"; }
	expect_fail '' dd if=/dev/zero of="$VOL" bs=4k count=1 oflag=direct status=none
	echo "$what: opened read-only, $(wc -l < /dev/shm/held) blocks are as they were"
	vol_down
}

# by_mirror: the synchronous one, right after the power went under load
by_mirror() {
	local whole=$VOL_TABLE
	VOL_TABLE=${whole/\/dev\/mapper\/fast/missing}
	vol_up "${UP[@]}"
	check_eq "$what: mode" "$(vol_get mode)" write
	orders_ only 0 > /dev/shm/lost
	oracle_crash --keep --eio /dev/shm/eio > /dev/shm/verified || { cat /dev/shm/verified; die "$what: what is on other drives"; }
	cmp -s /dev/shm/lost /dev/shm/eio || { diff /dev/shm/lost /dev/shm/eio | head -20; die "$what: what gives EIO (>) is not what lay on the fast drive alone (<)"; }
	[ "$(count /dev/shm/eio)" -ge 100 ] || die "$what: only $(count /dev/shm/eio) blocks lay there"
	from_ram dd if="$VOL" of=/dev/shm/now bs=4k iflag=direct conv=noerror,sync status=none 2> /dev/null || true
	same /dev/shm/held || { cat /dev/shm/same; die "$what: by the mirror"; }
	echo "$what: by the mirror $(count /dev/shm/eio) blocks are lost, as listed, all else is there"
	vol_down
	VOL_TABLE=$whole
}

# one MIRROR STOP: load (the power goes under it), cut (at rest), clean
one() {
	what="mirror $1, stop $2"
	DRIVES=(fast slow) SHELVES=1
	local sizes=(fast:32 slow:448) tiers=(--tier optane:slots:atomic=/dev/mapper/fast)
	# a synchronous one lies on a second drive of slots, which is lost in the end as well
	if [ "$1" = sync ]; then
		DRIVES=(fast next slow) SHELVES=2
		sizes=(fast:32 next:32 slow:448) tiers+=(--tier nvme:slots:atomic=/dev/mapper/next)
	fi
	vol_models "$SEED" "${sizes[@]}"
	vol_format "${tiers[@]}" --tier hdd:shelves:atomic=/dev/mapper/slow --mirror "$1" --size ${SIZE}M --journal 1M
	vol_up "${UP[@]}"
	check_eq "mirror" "$(vol_get mirror)" "$1"
	oracle_new "$SEED"
	spread
	case $2 in
	load)	load; held_after ;;
	cut)	sync "$VOL"; held; vol_cut ;;
	clean)	held; vol_down ;;
	esac
	# destroyed
	from_ram dd if=/dev/urandom of=/dev/mapper/fast bs=1M oflag=direct status=none 2> /dev/null || true
	rmdrive fast
	local judged=crash
	[ "$2" != clean ] || judged=clean
	if [ "$1" = sync ]; then
		by_mirror
		from_ram dd if=/dev/urandom of=/dev/mapper/next bs=1M oflag=direct status=none 2> /dev/null || true
		rmdrive next
	elif [ "$1" = lazy ]; then
		read_only "$2"
		salvaged $judged /dev/mapper/slow
		[ $((CERTAIN + OLDER)) -ge 400 ] || die "$what: only $CERTAIN certain and $OLDER older blocks"
		[ "$2" != clean ] || [ "$CERTAIN" -ge 400 ] || die "$what: the mirror was current, and only $CERTAIN blocks are certain"
	else
		expect_fail 'no superblock can be read: terracectl repair --from-shelves' terracectl salvage --dry-run /dev/mapper/slow
		mkdrive meta ram 16 lbs=4096 group=new
		expect_fail 'tier 0 is missing.*--size' terracectl repair --from-shelves --to /dev/mapper/meta /dev/mapper/slow
		rmdrive meta
	fi
	if [ "$1" = lazy ]; then from_shelves; else from_shelves --size ${SIZE}M; fi
	rmdrive slow
}

for how in ${HOW:-sync:load lazy:load lazy:cut lazy:clean none:cut}; do one "${how%:*}" "${how#*:}"; done
pass "the fastest drive destroyed: ${HOW:-with a synchronous mirror under load, with a lazy one under load, at rest and after a clean stop, without a mirror}"
