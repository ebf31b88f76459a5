#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl leave: a volume under load becomes a plain device without an unmount; interrupted, killed, with a failing device it stays a volume.
# vm: mode=functional memory=2G timeout=680 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

need dm-mirror dm-delay
vol_ram 64 384
mkram plain 80
mkram small 16
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --size 64M
vol_up commit_ms=200
PLAIN=/dev/mapper/plain
# slow: a region of the mirror takes 0.1 s
slow() { echo "0 $(sectors /dev/ram/plain) delay /dev/ram/plain 0 0 /dev/ram/plain 0 100"; }
fast() { echo "0 $(sectors /dev/ram/plain) linear /dev/ram/plain 0"; }
plain_is() {
	dmsetup load plain --table "$1"
	dmsetup suspend --noudevsync plain
	dmsetup resume --noudevsync --noudevrules plain
}
dmc plain "$(slow)"
target() { dmsetup table "$1" | cut -d' ' -f3; }
# until_ WHAT COMMAND...
until_() {
	local what=$1 tries
	shift
	for ((tries = 0; tries < 400; tries++)); do
		if "$@"; then return; fi
		gone "$pid" && break
		sleep 0.2
	done
	cat /dev/shm/said
	die "$what: never"
}
copying() { [[ $(dmsetup status vol) =~ \ mirror\ 2\ [^\ ]+\ [^\ ]+\ ([0-9]+)/([0-9]+)\  ]] && ((BASH_REMATCH[1] > 4 && BASH_REMATCH[1] < BASH_REMATCH[2])); }
gone() { ! kill -0 "$1" 2> /dev/null; }
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
plain_is "0 $(sectors /dev/ram/plain) error"
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
plain_is "$(fast)"
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
