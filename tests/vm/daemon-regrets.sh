#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Moves that do not repay stop and say why: promotions that save nothing, and room for a hot set that does not fit.  They go on when that has changed.
# vm: mode=vtime memory=2G timeout=900 build=daemon,orders
# shellcheck disable=SC2034,SC2086,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
EPOCH=10000	# operations after which moves are judged

is() { answers && grep -qE -e "\"$1\": \"$2" /dev/shm/status; }
promoted() { echo $(($(number promoted_by_flush_blocks) + $(number promoted_by_compaction_blocks) + $(number promoted_by_epoch_blocks))); }
load() { fio_ --name=r --filename="$VOL" --bs=4k --direct=1 --norandommap --randrepeat=0 "$@" > /dev/null; }

head -c 24M /dev/urandom > $DATA
in_ram fio
vol_ram 32 512
vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "hdd:shelves:atomic=/dev/ram/slow"
vol_up stream_kb=0 heat_sample=1
for mb in 0 24 48 72; do
	dd if=$DATA of="$VOL" bs=1M seek=$mb oflag=direct status=none
	for ((r = mb / 4; r < mb / 4 + 6; r++)); do order $r append tier_down=1 codec=none; done
	sleep 1		# the slots are free again after a commit
done

# ---- the slow tier is called as quick as the fast one: no promotion repays ----
# nothing but the governor is in the way of moves
conf_unhindered governor.epoch_ops=$EPOCH idle.boost=1 idle.idle_seconds=86400 budget.bytes_per_second=0 tier0.price.read_us=5 tier1.price.read_us=5
daemon_start
n=0
# 2 MiB elsewhere each time, read ten times over
elsewhere() { load --rw=randread --offset=$((n = (n + 2) % 90))M --size=2M --number_ios=5000 --randseed=$((n + 1)); }
unpaid() { elsewhere; is promotions "promotions cost more than their hits saved"; }
until_ "promotions stop, which is told" unpaid
logged "vol: promotions stop for 1 epochs: promotions cost more than their hits saved" || die "it is not in the log"
up=$(promoted)
[ "$up" -ge 256 ] || die "they were judged by $up blocks"
elsewhere
check_eq "blocks that went up during the rest" "$(promoted)" "$up"
check_eq "... for which there is a reason" "$(sed -n 's/^ *"promotions_allowed": \(.*\),/\1/p' /dev/shm/status)" false

# ---- it is slower after all ----
sed -i 's/^\(tier1.price.read_us\)=.*/\1=5000/' $CONF
kill -HUP $daemon
repays() {
	load --rw=randread --offset=8M --size=2M --number_ios=5000 --randseed=$((n += 1))
	is promotions "moves repay" && [ "$(promoted)" -ge $((up + 450)) ]
}
until_ "promotions go on, and a hotspot goes up" repays
logged "vol: promotions go on, as a trial" || die "it is not in the log"
pass "$up blocks went up until that was seen to be in vain, none after it, and $(($(promoted) - up)) when it was no longer"

# ---- more is hot than fits: what goes down is read again ----
reads_again() { load --rw=randrw --size=40M --number_ios="$1" --randseed=$((n += 1)); }
regret() { reads_again 2500; is demotions "blocks that went down were read again"; }
until_ "demotions stop, which is told" regret
logged "vol: demotions stop for [0-9]* epochs: blocks that went down were read again" || die "it is not in the log"
still() { [ "$(number under_way)" = 0 ]; }
until_ "orders are through" still
down=$(number demoted_blocks)
reads_again $((EPOCH / 2))
check_eq "blocks that went down during the rest" "$(number demoted_blocks)" "$down"

# ---- it fits again ----
fits() { load --rw=randrw --size=8M --number_ios=5000 --randseed=$((n += 1)); is demotions "moves repay"; }
until_ "demotions are allowed again" fits
logged "vol: demotions go on, as a trial" || die "it is not in the log"
pass "$down blocks went down until that was regretted, none during the rest"

# Orders whose blocks were all written meanwhile have failed as well, and nobody is told of them.
logged "could not be moved" && die "an order has failed: $(grep "could not be moved" $LOG)"
daemon_stop
cmp $DATA <(dd if="$VOL" bs=1M skip=72 count=24 iflag=direct status=none) || die "data differ"
vol_down
vol_check > /dev/null
