#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Orders that cannot be carried out as they are: none keeps its process, a worker, another volume or what it has done already.
# vm: mode=functional cpus=1 memory=2G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
wrong=()
order() { said=$(from_ram orders /dev/terrace/vol move "$@") || true; }
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<< "$said"; }
# order_says ERROR ORDER...: it ends with that
order_says() { local error=$1; shift; order "$@"; [ "$(word error)" = "$error" ]; }
used() { local u; u=$(vol_tier 0 used); echo "${u%/*}"; }
# hopes TEXT CMD...: what is not so is told at the end
hopes() {
	local what=$1
	shift
	if "$@"; then pass "$what"; else wrong+=("$what"); echo "not so: $what: ${said:-}"; fi
}
# gone JOB: within 5 s
gone() {
	local i
	for ((i = 0; i < 50; i++)); do
		[ -e "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null || return 0
		sleep 0.1
	done
	return 1
}

vol_ram 64 512
vol_format
vol_up stream_kb=0 throttle_us=0 janitor_high=1000 janitor_low=999
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("line %d of words that compress\n" % 7 * 400000)[:4 << 20])' > /dev/shm/data
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
order 0 append tier_down=1 codec=lz4
check_eq "first pack: $said" "$(word down)" 1024

# a block is to go up and there is no slot: the others go down all the same
dd if=/dev/urandom of=/dev/shm/new bs=4k count=900 status=none
dd if=/dev/shm/new of="$VOL" bs=4k seek=100 oflag=direct status=none
dd if=/dev/shm/new of=/dev/shm/data bs=4k seek=100 conv=notrunc status=none
dd if=/dev/zero of="$VOL" bs=64k seek=64 count=1280 oflag=direct status=none
# what a commit frees goes as well: not one slot is left
at=24576
for ((same = 0, before = 0; same < 3; at += 128)); do
	vol_message commit
	dd if=/dev/zero of="$VOL" bs=4k seek=$at count=128 oflag=direct status=none
	now=$(used)
	if [ "$now" = "$before" ]; then same=$((same + 1)); else same=0; fi
	before=$now
done
order 0 append tier_down=1 codec=lz4 up=0
hopes "without a slot for one block, the other 900 went down" [ "$(word down)" = 900 ]
hopes "the order did so partly" [ "$(word status)" = partly ]
vol_message commit
hopes "there are fewer slots in use than $before" [ "$(used)" -lt "$before" ]
cmp -n $((4 << 20)) /dev/shm/data "$VOL"

# an open shelf: nobody waits for its end
for ((open = 0; open < 7; open++)); do
	order "$open" clean tier_down=1
	[[ $(word error) != @(EBUSY|ETXTBSY) ]] || break
done
hopes "shelf $open is open" [ "$(word error)" = ETXTBSY ]
LD_LIBRARY_PATH=$RAM/lib "$RAM/orders" /dev/terrace/vol leave "$open" clean tier_down=1 flags=1 > /dev/shm/left &
left=$!
until [ -s /dev/shm/left ] || ! [ -e /proc/$left ]; do sleep 0.1; done
sleep 0.5
kill -KILL $left
hopes "who wants an open shelf cleaned can be killed" gone $left

# what no volume has: found before anything is read
hopes "no way up from a faster tier" order_says EXDEV 0 append tier_down=1 tier_up=2
hopes "zstd has 19 levels" order_says EINVAL 0 merge tier_down=1 codec=zstd level=20
hopes "... which is known before the region is read" [ "$(word read0) $(word read1)" = "0 0" ]
vol_down
vol_check
vol_up read_only
hopes "orders on a volume that is read-only" order_says EROFS 0 append tier_down=1
vol_down
whole=$VOL_TABLE
VOL_TABLE=${VOL_TABLE/${VOL_DRIVES[1]}/missing}
vol_up
hopes "orders to a drive that is missing" order_says ENODEV 0 append tier_down=1
vol_down
VOL_TABLE=$whole
vol_up stream_kb=0
# advice of cleaning a closed shelf
hopes "malformed orders are refused" from_ram orders /dev/terrace/vol bad

# orders in memory that does not come: another volume starts, this one stops
mkram fast2 64
mkdrive slow2 ram 512 lbs=4096
mkram page 8
{ printf '\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\3'; head -c 4079 /dev/zero; } | dd of=/dev/ram/page bs=4k count=1 iflag=fullblock oflag=direct status=none	# cookie 1, RAISE
dmc page "0 $(sectors /dev/ram/page) linear /dev/ram/page 0"
other=$(terracectl format --force --name other --tier optane:slots:atomic=/dev/ram/fast2 --tier hdd:shelves:atomic=/dev/mapper/slow2 | sed -n "s/^dmsetup create other --table '\(.*\)'$/\1/p")
dmsetup suspend --noflush --nolockfs --noudevsync page
LD_LIBRARY_PATH=$RAM/lib "$RAM/orders" /dev/terrace/vol given /dev/mapper/page > /dev/shm/given &
given=$!
for ((i = 0; i < 100; i++)); do ! grep -q filemap_fault "/proc/$given/stack" || break; sleep 0.1; done
[ $i -lt 100 ] || die "the order's memory is there: $(cat "/proc/$given/stack" /dev/shm/given)"
DM_DISABLE_UDEV=1 dmsetup remove vol &
remover=$!
hopes "a volume stops while its orders are copied" gone $remover
DM_DISABLE_UDEV=1 dmsetup create other --table "$other" &
creator=$!
hopes "another one starts" gone $creator
dmsetup resume --noudevsync --noudevrules page
wait $remover
wait $creator
wait $given
hopes "the order's volume has gone" grep -q ENODEV /dev/shm/given

# the cleaning of a shelf has the region, and the drive keeps its write: who waits for the region can be killed
# shellcheck disable=SC2034
VOL_DRIVES=(/dev/ram/fast2 /dev/mapper/slow2)
dd if=/dev/shm/new of=/dev/mapper/other bs=4k oflag=direct status=none
said=$(from_ram orders /dev/terrace/other move 0 append tier_down=1) || die "$said"
dmr other
dmc other "$other"
# shellcheck disable=SC2046
drive slow2 error add write $(vol_layout slow2 data) count=1 hold
for shelf in 0 1 2; do
	LD_LIBRARY_PATH=$RAM/lib "$RAM/orders" /dev/terrace/other move $shelf clean tier_down=1 > /dev/shm/cleaned &
	cleaner=$!
	sleep 1
	! [ -e "/proc/$cleaner" ] || break
done
drive_wait_held slow2
LD_LIBRARY_PATH=$RAM/lib "$RAM/orders" /dev/terrace/other leave 0 raise up=0-9 flags=1 > /dev/shm/left2 &
left=$!
until [ -s /dev/shm/left2 ] || ! [ -e /proc/$left ]; do sleep 0.1; done
sleep 0.5
kill -KILL $left
said=
hopes "who waits for a region can be killed" gone $left
said=$(from_ram orders /dev/terrace/other move 0 raise up=0-9 || true)
hopes "who does not wait is told" [ "$(word error)" = EBUSY ]
# who waits when the volume is suspended goes on when it is resumed
from_ram orders /dev/terrace/other move 0 raise up=0-9 flags=1 > /dev/shm/waited &
waiter=$!
sleep 0.5
dmsetup suspend --noudevsync other &
suspender=$!
sleep 0.5
drive slow2 release
wait $suspender
dmsetup resume --noudevsync --noudevrules other
wait "$cleaner" || die "cleaning: $(cat /dev/shm/cleaned)"
wait $waiter || true
said=$(cat /dev/shm/waited)
hopes "a suspend does not end the wait for a region" [ "$(word status) $(word up)" = "done 10" ]

# one flush for a batch: if it fails, those fail that wrote there
dmsetup message other 0 set commit_ms=60000
dmsetup message other 0 set orders_tier0=1
dmsetup message other 0 set orders_tier1=1
dd if=/dev/shm/new of=/dev/mapper/other bs=4k seek=1024 oflag=direct status=none
dmsetup message other 0 commit
drive slow2 error add flush 0 0 count=1
from_ram orders /dev/terrace/other moves 0 drop + 1 append tier_down=1 > /dev/shm/both || true
drive slow2 error clear
said=$(tail -1 /dev/shm/both)
hopes "a failed flush ends an order that wrote there" [ "$(word error)" = EIO ]
said=$(head -1 /dev/shm/both)
hopes "... and none that did not" [ "$(word status) $(word dropped)" = "done 10" ]
dmr other
vol_check
[ ${#wrong[@]} = 0 ] || die "not so: $(printf '%s; ' "${wrong[@]}")"
