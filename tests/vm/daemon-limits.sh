#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terraced works within little: two volumes in one process, as an I/O flusher, with a tenth of a CPU; or a process for one of them (--volume).
# vm: mode=functional cpus=1 memory=2G timeout=400 build=daemon,orders
# shellcheck disable=SC2034,SC2086,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

conf_written 20 <<-EOF
	sense = access
	watermark.high = 0.4
	watermark.low = 0.3
	admit.uniform = 0
EOF
vol_ram 32 512
vol_format
# here only the daemon makes room
vol_up stream_kb=0 janitor_high=1000 janitor_low=990
mkram fast2 32
mkram slow2 512
VOL_TABLE=$(terracectl format --force --name two --tier optane:slots:atomic=/dev/ram/fast2 --tier hdd:shelves:atomic=/dev/ram/slow2 |
	sed -n "s/^dmsetup create two --table '\(.*\)'$/\1/p")
dmc two "$(vol_table stream_kb=0 janitor_high=1000 janitor_low=990)"
head -c 24M /dev/urandom > /dev/shm/data

of=vol
vol_status() { dmsetup status --noflush $of; }
# room NAME: its fast tier is below the high mark
room() {
	local of=$1 used all
	IFS=/ read -r used all <<< "$(vol_tier 0 used)"
	[ $((used * 100)) -lt $((all * 41)) ]
}
fill() { dd if=/dev/shm/data of=/dev/mapper/"$1" bs=1M seek="$2" count=24 oflag=direct conv=notrunc status=none; }
ticks() { number ticks; }

# ---- two volumes, each with its own loop ----
daemon_start
for v in vol two; do
	until_ "$v is driven" grep -q "$v: driving" $LOG
	fill $v 0
	until_ "room on $v" room $v
done
answers
check_eq "volumes in the status" "$(grep -c '"name": "\(vol\|two\)"' /dev/shm/status)" 2
pass "two volumes"

# ---- the kernel does not let it wait for itself: PF_MEMALLOC_NOIO, PF_LOCAL_THROTTLE ----
for stat in /proc/"$daemon"/task/*/stat; do
	read -ra word < <(sed 's/.*) //' "$stat")
	[ $((word[6] & 0x180000)) = $((0x180000)) ] || die "$stat: flags ${word[6]}: no I/O flusher"
done
pass "I/O flusher"

# ---- a tenth of a CPU ----
echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/tenth
echo '10000 100000' > /sys/fs/cgroup/tenth/cpu.max
echo "$daemon" > /sys/fs/cgroup/tenth/cgroup.procs
before=$(ticks)
for v in vol two; do
	fill $v 32
	until_ "room on $v with a tenth of a CPU" room $v
done
until_ "the status" answers
[ "$(ticks)" -gt $((before + 10)) ] || die "from tick $before to $(ticks)"
grep -E 'usage_usec|nr_periods|nr_throttled' /sys/fs/cgroup/tenth/cpu.stat
check_eq "failed orders" "$(number failed)" 0
daemon_stop
pass "a tenth of a CPU"

# ---- an instance for one volume, beside a process for all ----
sed 's,/dev/shm/socket,&-all,' $CONF > /dev/shm/all.conf
# what the process of this configuration drives
driven() { terraced --config "$1" --status | sed -n 's/^ *"name": "\([^"]*\)".*/\1/p' | sort | tr '\n' ' '; }
drives() { [ "$(driven "$1")" = "$2" ]; }
: > $LOG
daemon_start --volume two
until_ "the instance's volume is driven" drives $CONF "two "
fill vol 64
fill two 64
until_ "room on the instance's volume" room two
sleep 3
check_eq "volumes of --volume two" "$(driven $CONF)" "two "
if room vol; then die "room is made on a volume that --volume leaves alone"; fi
LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config /dev/shm/all.conf > /dev/shm/all.log 2>&1 &
all=$!
until_ "the process for all drives the rest" drives /dev/shm/all.conf "vol "
until_ "room on the other volume" room vol
grep -q "two: .*another process works on this volume" /dev/shm/all.log || { cat /dev/shm/all.log; die "it is not said whose the instance's volume is"; }
check_eq "volumes of the instance beside the process for all" "$(driven $CONF)" "two "
# when the instance has gone, a SIGHUP has all driven by the other
daemon_stop
kill -HUP $all
until_ "the process for all drives all" drives /dev/shm/all.conf "two vol "
fill two 96
until_ "room on what was the instance's" room two
# and one that is started now finds its volume taken
daemon_start --volume two
until_ "the volume is another's" grep -q "two: .*another process works on this volume" $LOG
check_eq "volumes of an instance that is late" "$(driven $CONF)" ""
daemon_stop
kill $all
wait $all || die "the process for all ends with $?"
dmr two
vol_down
vol_check
pass "an instance for one volume, beside a process for all"
