#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl add, replace, leave: a volume under load gets a tier, another drive, becomes a plain device; interrupted, killed, with a failing device it stays what it was.
# vm: mode=functional memory=2G timeout=900 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

need dm-mirror dm-delay
vol_ram 64 384
mkram third 384
mkram other 448
mkram plain 80
mkram small 16
for n in 1 2 3 4; do mkram spare$n 16; done
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --size 64M
vol_up commit_ms=200
PLAIN=/dev/mapper/plain
# slow: a region of the mirror takes 0.1 s
slow() { echo "0 $(sectors "/dev/ram/$1") delay /dev/ram/$1 0 0 /dev/ram/$1 0 100"; }
fast() { echo "0 $(sectors "/dev/ram/$1") linear /dev/ram/$1 0"; }
dmc plain "$(slow plain)"
dmc other "$(slow other)"
target() { dmsetup table "$1" | cut -d' ' -f3; }
copying() { [[ $(dmsetup status "${1-vol}" 2> /dev/null) =~ \ mirror\ 2\ [^\ ]+\ [^\ ]+\ ([0-9]+)/([0-9]+)\  ]] && ((BASH_REMATCH[1] > 4 && BASH_REMATCH[1] < BASH_REMATCH[2])); }
leave() { LD_LIBRARY_PATH=$RAM/lib exec "$RAM/terracectl" leave --yes "$@" > /dev/shm/said 2>&1; }
is_volume() {
	check_eq "table" "$(target vol)" terrace
	[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
	[ ! -e /run/terrace/vol.relay ] || die "its file is still there"
}

# ---- refusals
refuses 2 "where to\? --to DEVICE" leave vol
refuses 2 "name one volume" leave --to $PLAIN
refuses 1 "no volume 'nodb' is active" leave --to $PLAIN nodb
refuses 1 "/dev/ram/small has +16 MiB, the volume" leave --to /dev/ram/small vol
refuses 1 "is in use: part of" leave --to /dev/ram/plain vol
refuses 1 "is no block device|neither a block device" leave --to /dev/null vol
refuses 1 "nobody to ask" leave --to $PLAIN vol
refuses 1 "volume 'vol' is not leaving" leave --undo vol
head -c 4096 /dev/urandom | dd of=$PLAIN bs=4k oflag=direct status=none
refuses 1 "nothing changed; --force overwrites it" leave --yes --to $PLAIN vol
dd if=/dev/zero of=$PLAIN bs=4k count=1 oflag=direct status=none
is_volume
pass "refusals"

oracle_new 7
WEIGHTS=write=40,fua=4,read=30,flush=6
# short runs: the ledger is kept at the end of each
: > /dev/shm/go
load() {
	local n=7
	while [ -e /dev/shm/go ]; do
		n=$((n + 1))
		oracle_run --seed $n --ops 1000000 --seconds 3 --threads 1 --depth 4 --max-kb 64 --weights $WEIGHTS --first 0 --blocks 4096 > /dev/shm/load 2>&1
	done
}
load &
load=$!

# ---- add
refuses 2 "which device\?" add vol
refuses 1 "nobody to ask" add vol --tier hdd=/dev/ram/third
refuses 1 "nvme is faster than that \(hdd\)" add vol --tier nvme=/dev/ram/third
refuses 1 "is in use: part of" add vol --tier hdd=/dev/ram/slow --yes
refuses 2 "unknown class 'disk'" add vol --tier disk=/dev/ram/third
head -c 4096 /dev/urandom | dd of=/dev/ram/third bs=4k oflag=direct status=none
refuses 1 "nothing changed; --force overwrites it" add vol --yes --tier hdd=/dev/ram/third
says "gets tier 2: hdd shelves on .* for data" add vol --force --dry-run --tier hdd=/dev/ram/third
check_eq "room" "$(terracectl add vol --json --yes --force --tier hdd=/dev/ram/third 2> /dev/null | json "o['tier'], o['added']")" "(2, True)"
check_eq "table" "$(dmsetup table vol | cut -d' ' -f3,5)" "terrace 3"
[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
says "tier 2  hdd    shelves " status vol
says "[1-9][0-9]* down" move --to 2 vol
says "." status vol
refuses 1 "is in use" add vol --yes --tier hdd=/dev/ram/third
kill -0 "$load" || { cat /dev/shm/load; die "the load has ended"; }
pass "add"

# ---- replace
copying_tier() { copying vol-replace; }
replace() { LD_LIBRARY_PATH=$RAM/lib exec "$RAM/terracectl" replace --yes --to /dev/mapper/other vol 1 "$@" > /dev/shm/said 2>&1; }
number() { dmsetup info -c --noheadings -o "${2-blkdevname}" "$1"; }
tier1() { dmsetup table vol | cut -d' ' -f9; }
old=$(tier1)
is_old() {
	check_eq "tier 1" "$(tier1)" "$old"
	! dmsetup info vol-replace > /dev/null 2>&1 || die "vol-replace is still there"
	[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
	kill -0 "$load" || { cat /dev/shm/load; die "the load has ended"; }
}
refuses 2 "by which device\?" replace vol 1
refuses 2 "'qlc' names no tier" replace vol qlc --to /dev/mapper/other
refuses 2 "'hdd' names more than one tier" replace vol hdd --to /dev/mapper/other
refuses 1 "has +16 MiB, tier 1 uses" replace vol 1 --to /dev/ram/small
refuses 1 "is in use: part of" replace vol 1 --to /dev/ram/third
refuses 1 "nobody to ask" replace vol 1 --to /dev/mapper/other
refuses 1 "is not being replaced" replace --undo vol 1
says "^Copy tier 1 of volume .vol. " replace vol 1 --to /dev/mapper/other --dry-run
is_old
for how in INT KILL; do
	replace --force &
	pid=$!
	until_ "copying" copying_tier
	kill -$how $pid
	if wait $pid 2> /dev/null; then die "stopped, and ended well"; fi
	if [ $how = KILL ]; then
		refuses 1 "to another device: name that one" replace --yes vol 1 --to /dev/ram/small
		says "stays on" replace --undo vol 1
	fi
	is_old
done
replace --force &
pid=$!
until_ "copying" copying_tier
kill -9 $pid
wait $pid 2> /dev/null || true
klog_allow "device-mapper: raid1: "
klog_allow "I/O error|Buffer I/O error"
becomes other "0 $(sectors /dev/mapper/other) error"
refuses 1 "other failed" replace --yes vol 1 --to /dev/mapper/other
is_old
becomes other "$(fast other)"
check_eq "json" "$(terracectl replace --json --yes --force --to /dev/mapper/other vol 1 2> /dev/shm/said | json "o['tier'], o['replaced']")" "(1, True)"
check_eq "tier 1" "$(tier1)" "$(number other devno | tr -d '()' | sed 's/, */:/')"
! dmsetup info vol-replace > /dev/null 2>&1 || die "vol-replace is still there"
cmp -n 8192 /dev/ram/slow /dev/zero
pass "replace"
kill -0 "$load" || { cat /dev/shm/load; die "the load has ended"; }

# ---- add, killed at any point: the same call goes on
for n in 1 2 3; do
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terracectl" add vol --yes --tier hdd:slots=/dev/ram/spare$n > /dev/shm/said 2>&1 &
	pid=$!
	sleep 0.$((n * 3 - 1))
	kill -9 $pid 2> /dev/null || true
	if ! wait $pid 2> /dev/null; then terracectl add vol --yes --tier hdd:slots=/dev/ram/spare$n 2> /dev/shm/said || grep "is in use" /dev/shm/said || die "said $(cat /dev/shm/said)"; fi
	check_eq "tiers" "$(dmsetup table vol | cut -d' ' -f3,5)" "terrace $((3 + n))"
	dmsetup mknodes vol-terrace	# without udev a node stays when who removed the device was killed before the node
	[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
	kill -0 "$load" || { cat /dev/shm/load; die "the load has ended"; }
done
# ... killed after it loaded the volume's new table: that holds the device
{
	terracectl list --json | json "o[0]['uuid'] + ' $(sectors "$VOL")'"
	dmsetup table vol | cut -d' ' -f4-
} > /dev/shm/relay
DM_DISABLE_UDEV=1 dmsetup create vol-terrace --notable
becomes vol-terrace "0 $(sectors "$VOL") error"
cp /dev/shm/relay /run/terrace/vol.relay
dmsetup load vol --table "0 $(sectors "$VOL") linear /dev/ram/spare4 0"
n=$(dmsetup table vol | cut -d' ' -f5)
says "tier $n of volume 'vol' is /dev/ram/spare4" add vol --yes --tier hdd:slots=/dev/ram/spare4
check_eq "tiers" "$(dmsetup table vol | cut -d' ' -f3,5)" "terrace $((n + 1))"
is_volume
# ... killed before that: superblock and file have the tier, the table is not there, I/O waits
{
	terracectl list --json | json "o[0]['uuid'] + ' $(sectors "$VOL")'"
	dmsetup table vol | cut -d' ' -f4-
} > /run/terrace/vol.relay
DM_DISABLE_UDEV=1 dmsetup create vol-terrace --notable
becomes vol-terrace "0 $(sectors "$VOL") error"
dmsetup suspend --noudevsync vol-terrace
becomes vol "0 $(sectors "$VOL") linear $(number vol-terrace devno | tr -d '()' | sed 's/, */:/') 0"
says "tier $n of volume 'vol' is /dev/ram/spare4" add vol --yes --tier hdd:slots=/dev/ram/spare4
check_eq "tiers" "$(dmsetup table vol | cut -d' ' -f3,5)" "terrace $((n + 1))"
is_volume
pass "add, killed"

# ---- Ctrl-C undoes
leave --to $PLAIN vol &
pid=$!
until_ "copying" copying
kill -INT $pid
wait $pid && die "interrupted leave ended well"
grep -q "interrupted: volume 'vol' goes back" /dev/shm/said || die "said $(cat /dev/shm/said)"
is_volume
pass "Ctrl-C"

# ---- killed: goes on as it is, taken back, begun again
leave --force --to $PLAIN vol &
pid=$!
until_ "copying" copying
kill -9 $pid
wait $pid 2> /dev/null || true
check_eq "table" "$(target vol)" mirror
refuses 1 "is being copied to another device" leave --yes --to /dev/ram/small vol
# as killed in the resume that starts the volume: the table is there, the volume is not
table=$(dmsetup table vol-terrace)
dmsetup suspend --noudevsync vol
becomes vol-terrace "0 $(sectors /dev/mapper/plain) error"
dmsetup load vol --table "$table"
drives="/dev/ram/fast /dev/ram/third /dev/mapper/other"
# their metadata begins there at the earliest: superblocks
for d in $drives; do
	dd if="$d" of="/dev/shm/${d##*/}" bs=4k skip=16 count=1024 iflag=direct status=none
	dd if=/dev/zero of="$d" bs=4k seek=16 count=1024 oflag=direct status=none
done
klog_allow "device-mapper: (table|terrace)"
if dmsetup resume --noudevsync vol 2> /dev/null; then die "started without superblocks"; fi
for d in $drives; do dd if="/dev/shm/${d##*/}" of="$d" bs=4k seek=16 oflag=direct status=none; done
check_eq "table" "$(target vol)" terrace
[ ! -e /dev/terrace/vol ] || die "it runs after all"
says "" leave --undo vol
is_volume
leave --force --to $PLAIN vol &
pid=$!
until_ "copying" copying
kill -9 $pid
wait $pid 2> /dev/null || true
pass "killed"

# ---- goes on, and the device fails: back
leave --force --to $PLAIN vol &
pid=$!
sleep 0.5
becomes plain "0 $(sectors /dev/ram/plain) error"
klog_allow "device-mapper: raid1: "
klog_allow "I/O error|Buffer I/O error"
until_ "end" gone $pid
wait $pid && die "a failed device, and leave ended well"
grep -q "going on" /dev/shm/said || die "said $(cat /dev/shm/said)"
grep -qE "plain failed|cannot be read" /dev/shm/said || die "said $(cat /dev/shm/said)"
is_volume
kill -0 "$load" || { cat /dev/shm/load; die "the load has ended"; }
pass "failing device"

# ---- to the end
becomes plain "$(fast plain)"
said=$(terracectl leave --yes --force --json --to $PLAIN vol 2> /dev/shm/said) || die "leave failed: $(cat /dev/shm/said)"
check_eq "device" "$(json "o['device'], o['bytes']" <<< "$said")" "('$PLAIN', 67108864)"
check_eq "table" "$(target vol)" linear
[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
sleep 0.5
kill -0 "$load" || { cat /dev/shm/load; die "the load has ended"; }
rm /dev/shm/go
wait "$load" || { cat /dev/shm/load; die "the load failed"; }
oracle_clean
check_eq "volumes" "$(terracectl list)" ""
refuses 1 "no device carries the label" activate vol
dmr vol
pass "left"
