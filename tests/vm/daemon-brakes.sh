#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Users whom moves slow down have them held back, which is told; without users they go on.
# vm: mode=vtime memory=2G timeout=900 build=daemon,orders
# shellcheck disable=SC2034,SC2086,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
REGIONS=18	# of 1024 blocks, on the fast tier; users read one more, which lies below
BRAKE="moves slow users down: the brake holds them back \\(brake.tolerance\\)"

# configured LINE...: moves take half of what the slow drive can do; nothing but the brake is in their way, and it not yet
configured() {
	conf_written 100 <<- EOF
		sense = access
		ralt.buffer_records = 256
		governor.epoch_ops = 1000000
		admit.uniform = 0
		admit.fill = 0
		fill = 0
		admit.min_accesses = 1000000
		cpu.min_idle = 0
		idle.boost = 1
		cache_blocks = 4096
		flush.run_blocks = 1048576
		epoch.min_epoch_ops = 1000000
		budget.bytes_per_second = 0
		tier1.budget.bytes_per_second = 4000000
		watermark.high = 0.95
		watermark.low = 0.94
		$(printf '%s\n' "$@")
	EOF
}
# all but less than two regions have to go down
press() {
	sed -i 's/^\(watermark.high = \).*/\10.05/; s/^\(watermark.low = \).*/\10.04/' $CONF
	kill -HUP $daemon
}

counter() { cat /sys/fs/terrace/*/"$1"; }
down() { number demoted_blocks; }
moved_all() { [ "$(down)" -ge $(((REGIONS - 2) * 1024)) ] && [ "$(number under_way)" = 0 ]; }
because() { answers && grep -qE -e "\"nothing_moves_because\": \"$1" /dev/shm/status; }
explained() { terraced --config $CONF --explain > /dev/shm/explained && grep -qE -e "\"$1\"" /dev/shm/explained; }
reads() { fio_ --thread --name=r --filename="$VOL" --rw=randread --bs=4k --direct=1 --offset=$((REGIONS * 4))m --size=4m --ioengine=libaio --iodepth="$1" \
	--norandommap --randrepeat=0 --randseed=7 --time_based --runtime=1000 > /dev/null; }

# all but what users read is on the fast tier
fresh() {
	vol_format
	vol_up stream_kb=0 cache_mb=0 janitor_high=1000 janitor_low=990 heat_sample=1
	dd if=$DATA of="$VOL" bs=1M count=4 seek=$((REGIONS * 4)) oflag=direct status=none
	order $REGIONS append tier_down=1 codec=none
	dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
	rm -rf /dev/shm/state
	: > $LOG
}
# loaded DEPTH SECONDS LINE...: users read, and after a while there is much to move; of 10 s that begin so long after that: blocks that went down ($moved), reads ($served)
loaded() {
	fresh
	configured "${@:3}"
	daemon_start
	start reads "$1"
	sleep 5
	check_eq "blocks that went down before there was a need" "$(down)" 0
	press
	sleep "$2"
	moved=$(down) served=$(counter tier1/reads)
	sleep 10
	served=$(($(counter tier1/reads) - served))
	moved=$(($(down) - moved))
}
# users have gone: what has to goes down, and all is as it was
over() {
	kill_all "$JOB"
	until_ "all that has to goes down when nobody reads" moved_all
	check_eq "failed orders" "$(number failed)" 0
	daemon_stop
	cmp -n $((REGIONS << 22)) $DATA "$VOL" || die "data differ"
	vol_down
	vol_check > /dev/null
}

# held WHAT: moves, and that is told
held() {
	until_ "the reason, $1" because "$BRAKE"
	until_ "the same when asked to explain, $1" explained "vol\": \"$BRAKE"
	[ "$(number braked)" -ge 2 ] || die "$1 were found too slow only $(number braked) times"
	[ $((moved * 2)) -le "$free" ] || die "under the brake $moved blocks went down, $free without, $1"
}

in_ram fio
head -c $((REGIONS * 4))M /dev/urandom > $DATA
# One request after the other, and an order's writes take half a second: reads behind them wait for that long.
mkdrive fast ram 128 lbs=4096 lat=100us
mkdrive slow ram 512 lbs=4096 channels=1 read_lat=1ms write_bw=8000000
VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)

# ---- users who are never too slow: moves take what they may ----
loaded 16 0 brake.tolerance=100 brake.floor_us=1000000
check_eq "intervals in which a brake was wanted" "$(number braked)" 0
over
free=$moved free_served=$served
pass "without a brake $free blocks went down beside $free_served reads"

# ---- ... and as they are ----
loaded 16 0 brake.recover=0.004
held "16 readers"
[ "$served" -gt "$free_served" ] || die "users were served $served reads under the brake, $free_served without"
quiet=$(number quiet_latency_us)
over
pass "under the brake $moved blocks went down beside $served reads; users' latency without moves is $quiet us"

# ---- a single one, who is heard the less the longer it waits: in no tick with moves enough to judge by (brake.min_ops), so a brake takes seconds ----
drive slow set read_lat=10ms
loaded 1 6 brake.recover=0.004
held "one reader"
quiet=$(number quiet_latency_us)
over
pass "beside one reader $moved blocks went down, and $served reads; its latency without moves is $quiet us"
