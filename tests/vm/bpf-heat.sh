#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Block heat through BPF: what was read and where, how long it took, sampling under a flood, and what happens where BPF is refused.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=daemon,orders
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram terraced orders
LOG=/dev/shm/terraced.log CONF=/dev/shm/terraced.conf STATUS=/dev/shm/status
daemon=
trap 'cp $LOG $STATUS "$OUT/" 2> /dev/null || true' EXIT

config() {
	cat > $CONF <<-TEXT
		[daemon]
		state_directory = /dev/shm/state
		socket = /dev/shm/socket
		tick_ms = $1
		[policy]
		sense = $2
		# looks, but moves nothing
		evaluate = yes
	TEXT
}
# sense_by WORD... : the daemon, started by WORD...
sense_by() {
	: > $LOG
	LD_LIBRARY_PATH=$RAM/lib "$@" "$RAM/terraced" --config $CONF >> $LOG 2>&1 &
	daemon=$!
	until_ "terraced answers" answers
}
stop() {
	kill $daemon
	wait $daemon || die "terraced ends with $?: $(tail -5 $LOG)"
	daemon=
}
answers() { from_ram terraced --config $CONF --status > $STATUS 2> /dev/null; }
logged() { grep -qE -e "$1" $LOG; }
# number NAME: the first of that name in the status
number() { answers && sed -n "s/^ *\"$1\": *\([0-9.]*\),\?$/\1/p" $STATUS | head -1 | grep .; }
is() { [ "$(number "$1")" -eq "$2" ]; }
at_least() { [ "$(number "$1")" -ge "$2" ]; }
until_() {
	local what=$1 tries
	shift
	for ((tries = 0; tries < 400; tries++)); do
		if "$@"; then return; fi
		[ -z "$daemon" ] || kill -0 "$daemon" 2> /dev/null || { tail -20 $LOG; die "$what: terraced has ended"; }
		sleep 0.2
	done
	tail -40 $LOG
	cat $STATUS
	die "$what: never"
}
timed_both() { answers && [ "$(grep -A1 '"read_us": *{' $STATUS | grep -c '"[0-9]*": *[1-9]')" = 2 ]; }
rand_read() { fio_ --name=r --filename="$VOL" --rw=randread --bs=4k --direct=1 --size="$1" --io_size="$2" --randrepeat=0 "${@:3}" > /dev/null; }

mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true
in_ram fio
vol_ram 96 512
# reads of the slow drive take four milliseconds and more
need dm-delay
late() { echo "0 $(sectors /dev/ram/slow) delay /dev/ram/slow 0 $1 /dev/ram/slow 0 0"; }
dmc late "$(late 4)"
VOL_DRIVES[1]=/dev/mapper/late
vol_format
vol_up stream_kb=0
dd if=/dev/urandom of="$VOL" bs=1M count=64 oflag=direct status=none
from_ram orders /dev/terrace/vol move 0 append tier_down=1 codec=lz4 > /dev/null
# regions 4 and 5 in clusters of 4 and 16 blocks, of which each is decoded as a whole
{ yes terrace || true; } | dd of="$VOL" bs=1M seek=16 count=8 iflag=fullblock oflag=direct conv=notrunc status=none
from_ram orders /dev/terrace/vol move 4 append tier_down=1 codec=lz4 shift=2 > /dev/null
from_ram orders /dev/terrace/vol move 5 append tier_down=1 codec=lz4 shift=4 > /dev/null

# ---- each access once, with its tier; repeats are counted ----
config 50 auto
sense_by
logged "vol: driving.*sensed by bpf" || { cat $LOG; die "not by BPF"; }
for ((i = 0; i < 3; i++)); do dd if="$VOL" of=/dev/null bs=4k skip=8000 count=100 iflag=direct status=none; done
until_ "300 fast reads" is accesses 300
check_eq "slow reads" "$(number slow_reads)" 0
dd if="$VOL" of=/dev/null bs=4k skip=100 count=50 iflag=direct status=none
until_ "50 slow reads" is slow_reads 50
dd if="$VOL" of=/dev/null bs=64k skip=200 count=16 iflag=direct status=none
until_ "a scan's 256 blocks" is accesses 606
dd if=/dev/zero of="$VOL" bs=4k seek=8000 count=10 oflag=direct conv=notrunc status=none
until_ "writes" is accesses 616
check_eq "lost" "$(number lost)" 0
check_eq "sampling" "$(number sampling)" 1
check_eq "heat_sample" "$(cat /sys/fs/terrace/*/tune/heat_sample)" 1
read -r fast slow <<< "$(answers && sed -n 's/^ *"reads_told": *\([0-9]*\),/\1/p' $STATUS | paste -sd' ')"
# a read whose blocks lie apart is told in parts
[[ $fast -ge 316 && $slow = 50 ]] || die "reads told: $fast fast and $slow slow, wanted 316 and 50"
# of a cluster the block that is read gets heat, those that are decoded with it none
heat_of() { terracectl explain --socket /dev/shm/socket --json vol "$1" | json "'%s %d' % (lambda h: (h['hot'], h['hot_blocks_of_region']))(o['heat'])"; }	# of a block, and how many of its region are hot
for clusters in "4096 4" "5120 16"; do
	read -r region size <<< "$clusters"
	for ((round = 0; round < 6; round++)); do
		from=$(number accesses)
		for ((block = region + size - 1; block < region + 1024; block += 64)); do dd if="$VOL" of=/dev/null bs=4k skip=$block count=1 iflag=direct status=none; done
		until_ "16 reads in clusters of $size" is accesses $((from + 16))
	done
	check_eq "heat of a block that was read, in a cluster of $size" "$(heat_of $((region + size - 1)))" "True 16"
	check_eq "heat of its neighbour" "$(heat_of $((region + size - 2)))" "False 16"
done
rand_read 64M 4M
until_ "latencies of both drives" timed_both
pass "accesses and tiers, no heat beside them"

# ---- how long it took, each drive by itself ----
# took TIER read_us|write_us: "LONG ALL", of which so many two milliseconds or more
took() { answers && json "(lambda d: '%d %d' % (sum(v for k, v in d.items() if int(k) > 2048), sum(d.values())))(o['volumes'][0]['heat']['sensed']['tiers'][$1]['$2'])" < $STATUS; }
read -r late_before read_before <<< "$(took 1 read_us)"
cache=$(cat /sys/fs/terrace/*/tune/cache_mb)
vol_message set cache_mb=0	# what has been unpacked before comes from memory, in no time
rand_read 4M 2M
fio_ --name=w --filename="$VOL" --rw=randwrite --bs=4k --direct=1 --offset=32M --size=16M --io_size=8M --randrepeat=0 > /dev/null
writes_timed() { answers && grep -A1 '"write_us": *{' $STATUS | grep -q '"[0-9]*": *[1-9]'; }
until_ "latencies of writes" writes_timed
read -r long all <<< "$(took 0 read_us)"
((all > 0 && long * 10 <= all)) || die "fast tier: $long of $all reads took two milliseconds"
read -r late read <<< "$(took 1 read_us)"
late=$((late - late_before)) slow=$((read - read_before))
((slow > 0 && late * 10 >= slow * 9)) || die "slow tier: $late of $slow reads took two milliseconds"
read -r long written <<< "$(took 0 write_us)"
((written > 0 && long * 2 <= written)) || die "fast tier: $long of $written writes took two milliseconds"
check_eq "writes of the slow tier, long and all" "$(took 1 write_us)" "0 0"
pass "latencies: of reads of the slow tier $late of $slow took two milliseconds, of the fast one hardly one of $all, of its writes $long of $written"
vol_message set "cache_mb=$cache"
becomes late "$(late 0)"

# ---- what finds no room in a table that nobody empties is told as lost ----
check_eq "lost before" "$(number lost)" 0
kill -STOP $daemon
rand_read 64M 128M --cpus_allowed=0	# each CPU has tables of its own; what found no room finds none the second time either
kill -CONT $daemon
until_ "reads that found no room" at_least lost 1000
pass "a table that is not emptied: $(number lost) of 32768 reads lost, and told"

# ---- what an administrator is told of it ----
reader() { while :; do rand_read 64M 4M; done; }
start reader
says "^  tier 0 read  \|.*\|  half in [0-9.]+ (us|ms), 99 % in " top --socket /dev/shm/socket --once --every 3 vol
check_eq "json" "$(terracectl top --socket /dev/shm/socket --json --every 2 vol | json "sum(o['latency_by_tier'][0]['read_us'].values()) > 0")" True
says "heat of the block, for terraced \(ralt, sensed by bpf\): (hot|not hot), [a-z ]+; [0-9]+ blocks of the region are hot" explain --socket /dev/shm/socket vol 8000
says "^  forecast: (full in|did not grow in the last)" status --socket /dev/shm/socket vol
says "^  heat: ralt, sensed by bpf: [0-9.]+ [KMG]iB hot of [0-9.]+ [KMG]iB tracked; (warm|warming up|cold): " status --socket /dev/shm/socket vol
says "^  wear: tier 0: moves wrote [0-9.]+ [KMG]iB; tier 1: " status --socket /dev/shm/socket vol
check_eq "json" "$(terracectl status --socket /dev/shm/socket --json vol | json "o[0]['terraced']['heat']['sense']")" bpf
kill_all "$JOB"
pass "top, explain, status"
stop

# ---- with no more rights than its unit gives, a flood between two drains is thinned, slow reads are not ----
config 1000 bpf
rights=$(sed -n 's/^CapabilityBoundingSet=//p' "$TERRACE_TREE/packaging/terraced.service" | tr '[:upper:]' '[:lower:]' | sed 's/ \?cap_/,+/g; s/^,//')
grep -q '^SystemCallFilter=.* bpf .*open_by_handle_at' "$TERRACE_TREE/packaging/terraced.service" || die "its unit forbids system calls of BPF"
sense_by setpriv --bounding-set="-all,$rights" --inh-caps=-all
rand_read 60M 200M --offset=4M --numjobs=2 &
flood=$!
until_ "thinned" at_least sampling 4
slow=$(number slow_reads)
for ((i = 0; i < 2; i++)); do dd if="$VOL" of=/dev/null bs=4k skip=100 count=50 iflag=direct status=none; done
wait $flood
until_ "slow reads in a flood" at_least slow_reads $((slow + 50))
[ "$(cat /sys/fs/terrace/*/tune/heat_sample)" -gt 1 ] || die "the module told of each hit of the flood"
pass "a flood is thinned to 1 in $(number sampling), $(number lost) lost, slow reads are told"
stop

# ---- a flood of slow reads: each is told or lost, and no hits are left out for it ----
for region in 1 2 3; do from_ram orders /dev/terrace/vol move $region append tier_down=1 codec=lz4 > /dev/null; done
config 1000 bpf
sense_by env
before=$(cat /sys/fs/terrace/*/tier1/reads) slow=$(number slow_reads)
rand_read 16M 1G --time_based --runtime=6
reads=$(($(cat /sys/fs/terrace/*/tier1/reads) - before)) from=$slow
all_told() { slow=$(($(number slow_reads) - from)) lost=$(number lost); [ $((slow + lost)) -ge "$reads" ]; }
until_ "all of $reads slow reads told or lost" all_told	# the last ones with the second tick
[ "$reads" -ge 1000 ] || die "only $reads slow reads: no flood"
check_eq "sampling of hits, of which there are none" "$(number sampling)" 1
check_eq "slow reads heard of, and $lost lost" $((slow + lost)) "$reads"
pass "of $reads slow reads $slow are heard of, $lost lost; hits 1 in $(number sampling)"
stop

# ---- without BPF: one line, and perf ----
check_eq "heat_sample, with nobody to set it" "$(cat /sys/fs/terrace/*/tune/heat_sample)" 16
vol_message set heat_sample=1
vol_message set slow_sample=8	# as a terraced that was killed under a uniform load left it
echo -1 > /proc/sys/kernel/perf_event_paranoid
config 50 auto
sense_by setpriv --bounding-set=-bpf,-sys_admin --inh-caps=-bpf,-sys_admin
[ "$(grep -cv '^terraced: vol: ' $LOG)" = 0 ] || { cat $LOG; die "libraries print"; }
check_eq "lines about it" "$(grep -c 'vol: the kernel refuses BPF programs: .*: blocks are sensed through perf instead' $LOG)" 1
logged "vol: driving.*sensed by access" || { cat $LOG; die "no fallback"; }
dd if="$VOL" of=/dev/null bs=4k skip=8000 count=100 iflag=direct status=none
until_ "100 fast reads" is accesses 100
check_eq "slow_sample" "$(cat /sys/fs/terrace/*/tune/slow_sample)" 1
dd if="$VOL" of=/dev/null bs=4k skip=100 count=50 iflag=direct status=none
until_ "50 slow reads" is slow_reads 50
stop
config 50 bpf
sense_by setpriv --bounding-set=-bpf,-sys_admin --inh-caps=-bpf,-sys_admin
logged "vol: blocks cannot be sensed: the kernel refuses BPF programs: Operation not permitted" || { cat $LOG; die "not told"; }
stop
pass "where BPF is refused it is told once, and perf does"
vol_down
