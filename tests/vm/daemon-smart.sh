#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The wear of NVMe drives: the kernel's own target over TCP gives a SMART log, which the endurance account hears.
# vm: mode=functional memory=2G timeout=300 build=daemon,orders long
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

# serve DEVICE: as /dev/nvme0n1
serve() {
	local target=/sys/kernel/config/nvmet
	need nvmet nvmet-tcp nvme-tcp
	mount -t configfs none /sys/kernel/config 2> /dev/null || true
	mkdir -p $target/subsystems/t/namespaces/1 $target/ports/1
	echo 1 > $target/subsystems/t/attr_allow_any_host
	echo -n "$1" > $target/subsystems/t/namespaces/1/device_path
	echo 1 > $target/subsystems/t/namespaces/1/enable
	ip link set lo up
	echo tcp > $target/ports/1/addr_trtype
	echo ipv4 > $target/ports/1/addr_adrfam
	echo 127.0.0.1 > $target/ports/1/addr_traddr
	echo 4420 > $target/ports/1/addr_trsvcid
	ln -s $target/subsystems/t $target/ports/1/subsystems/t
	echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=t" > /dev/nvme-fabrics
	until_ "the drive" test -b /dev/nvme0n1
}

mkram fast 64
mkram back 640 4096
serve /dev/ram/back
export VOL_DRIVES=(/dev/ram/fast /dev/nvme0n1)
conf_written <<-EOF
	endurance.drive_writes_per_day = 1
EOF
dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=20 oflag=direct status=none
vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "qlc:shelves:atomic=/dev/nvme0n1"
vol_up stream_kb=0
daemon_start
told() { [ "$(number drive_written_bytes)" ]; }
until_ "what the drive has written" told
written=$(number drive_written_bytes)
awk "BEGIN { exit !($written >= 20 * 2^20 && $written < 100 * 2^20) }" || die "the drive is said to have written $written bytes"
check_eq "percentage used" "$(number drive_percent_used)" 0
[ "$(grep -c drive_written_bytes /dev/shm/status)" = 1 ] || die "a RAM disk has a SMART log"
daemon_stop

# ---- without the capability: said once, and nothing else suffers ----
if command -v capsh > /dev/null; then
	: > $LOG
	LD_LIBRARY_PATH=$RAM/lib capsh --drop=cap_sys_admin -- -c "exec $RAM/terraced --config $CONF --verbose" >> $LOG 2>&1 &
	export daemon=$!
	until_ "terraced answers" answers
	until_ "that the drives cannot be asked is told" logged "its drives cannot be asked for their wear"
	daemon_stop
fi
vol_down
vol_check
pass "the drive has written $written bytes"
