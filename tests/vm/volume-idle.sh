#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Orders that are in no hurry: those with IDLE let users go first, but not for ever; scrubs keep to their limit, and let a suspend pass.
# vm: mode=vtime memory=2G timeout=300 build=orders
# debug-kernel: not, it compares times
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup fio
wrong=()
# took ORDER...: milliseconds of a sweep
took() {
	said=$(from_ram orders /dev/terrace/vol sweep "$@") || die "$*: $said"
	echo $(($(sed -n 's/.* ns=//p' <<< "$said") / 1000000))
}
hopes() {
	local what=$1
	shift
	if "$@"; then pass "$what"; else wrong+=("$what"); echo "not so: $what"; fi
}

vol_ram 128 512
vol_format
vol_up stream_kb=0 janitor_high=1000 scrub_mb=0
dd if=/dev/urandom of="$VOL" bs=1M count=48 oflag=direct status=none

quiet=$(took 0 4 append tier_down=1 flags=4)
# without a pause: between two programs there are some of ten milliseconds, which may be had
start fio_ --name=x --filename="$VOL" --offset=64m --size=16m --rw=read --bs=4k --direct=1 --rate_iops=4000 --time_based --runtime=60 --thread --eta=never --output=/dev/shm/reader
user=$JOB
reads() { awk '{ print $1 }' "/sys/dev/block/$(stat -Lc %Hr:%Lr "$VOL")/stat"; }
before=$(reads)
until [ "$(reads)" -gt $((before + 1000)) ]; do sleep 0.1; done
# four with IDLE, given first, and four without
with=() without=()
for r in 4 5 6 7; do with+=("$r" append tier_down=1 flags=4 +); done
for r in 8 9 10 11; do without+=("$r" append tier_down=1 +); done
from_ram orders /dev/terrace/vol moves "${with[@]}" "${without[@]::${#without[@]}-1}" > /dev/shm/ended || die "$(cat /dev/shm/ended)"
kill -0 "$user" || die "the reader has ended"
kill_all "$user"
last() { sed -n "$1"'s/.* ns=//p' /dev/shm/ended | sort -n | tail -1; }
idle=$(($(last 1,4) / 1000000)) others=$(($(last 5,8) / 1000000))
echo "beside a reader four orders in $others ms, four with IDLE in $idle ms; without one in $quiet ms"
hopes "orders with IDLE wait for users, and for other orders" [ "$others" -lt "$idle" ]
hopes "... one a second goes on" [ "$idle" -ge 3500 ]

free=$(took 0 8 scrub)
vol_message set scrub_mb=8
limited=$(took 0 8 scrub)
echo "32 MiB scrubbed in $free ms, at 8 MB/s in $limited ms"
# (what has begun together does not wait for each other)
hopes "scrubs keep to their limit" [ "$limited" -ge 2500 ]
hopes "... without one they are quicker" [ "$free" -lt "$limited" ]
# a suspend does not wait for them, and they are given again when it is over
vol_message set scrub_mb=1
from_ram orders /dev/terrace/vol sweep 0 4 scrub > /dev/shm/swept &
sweeper=$!
sleep 1
from=$(date +%s%3N)
dmsetup suspend --noudevsync vol
suspended=$(($(date +%s%3N) - from))
vol_message set scrub_mb=0
dmsetup resume --noudevsync --noudevrules vol
echo "suspended in $suspended ms"
hopes "a suspend does not wait for scrubs" [ $suspended -lt 2500 ]
hopes "... which end after it" wait $sweeper
vol_down
vol_check
[ ${#wrong[@]} = 0 ] || die "not so: $(printf '%s; ' "${wrong[@]}")"
