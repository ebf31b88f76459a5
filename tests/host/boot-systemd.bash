# SPDX-License-Identifier: GPL-2.0-or-later
# tests/host/boot-systemd-long.sh inside the machine: makes the drives ready and leaves systemd as the
# first process; what is judged when that has booted is in verdict(), run by a unit of its own.
#
#	bash tests/host/boot-systemd.bash prepare|verdict whole|degraded|nothing|serves
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

# what the host would start as well: only the system itself, udev, the journal, and what is installed here
only_the_system() {
	local unit
	rm -rf /etc/systemd/system/*.wants /etc/systemd/system/*.requires /etc/modules-load.d /etc/udev/rules.d
	for unit in getty.target systemd-logind.service dbus.service dbus.socket systemd-firstboot.service systemd-update-utmp.service \
		systemd-update-utmp-runlevel.service systemd-pcrphase.service systemd-pcrphase-sysinit.service systemd-repart.service \
		systemd-remount-fs.service systemd-binfmt.service systemd-sysusers.service systemd-random-seed.service; do
		ln -sfn /dev/null "/etc/systemd/system/$unit"
	done
	# what is in /tmp would be removed: for minutes, and the tree may be there
	mkdir -p /etc/tmpfiles.d
	ln -sfn /dev/null /etc/tmpfiles.d/tmp.conf
	echo 0123456789abcdef0123456789abcdef > /etc/machine-id
	ln -sfn /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
}

verdict_unit() {
	cat > /etc/systemd/system/verdict.service <<-EOT
	[Unit]
	After=sysinit.target
	[Service]
	Type=simple
	Environment=TERRACE_TREE=$TERRACE_TREE TERRACE_MODULES=$TERRACE_MODULES TERRACE_BUILD=$TERRACE_BUILD OUT=/out HOME=/root LC_ALL=C
	WorkingDirectory=$TERRACE_TREE
	StandardOutput=file:/dev/ttyS1
	StandardError=inherit
	ExecStart=/bin/bash -c 'bash tests/host/boot-systemd.bash verdict $1; echo \$\$? > /run/vm/status; sync; /run/busybox poweroff -f'
	EOT
	mkdir -p /etc/systemd/system/multi-user.target.wants
	ln -sfn ../verdict.service /etc/systemd/system/multi-user.target.wants/
}

prepare() {
	vol_ram 64 256
	terracectl format --force --name db --size 32M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" > /dev/null
	# depmod reads all modules: minutes here, so the host has done it
	mkdir /dev/shm/instead
	printf '#!/bin/sh\ncp %s/lib/modules/$1/modules.* /lib/modules/$1/\n' "$MODULE_INDEX" > /dev/shm/instead/depmod
	chmod +x /dev/shm/instead/depmod
	PATH=/dev/shm/instead:$PATH "$TERRACE_TREE/scripts/install" install "" /usr/local "$(uname -r)" > /dev/shm/installed || die "$(cat /dev/shm/installed)"
	[ -e "/lib/modules/$(uname -r)/extra/dm-terrace.ko" ] || die "the module is not installed: $(cat /dev/shm/installed)"
	says "^/dev/mapper/db$" activate "${VOL_DRIVES[@]}"
	mkfs.ext4 -q -F /dev/mapper/db
	mkdir -p /data
	mount /dev/mapper/db /data
	echo "of the volume" > /data/file
	umount /data
	says "" deactivate db
	rmmod dm_terrace
	case $1 in
	degraded) dd if=/dev/zero of="${VOL_DRIVES[1]}" bs=4k count=2 oflag=direct status=none ;;
	nothing) for d in "${VOL_DRIVES[@]}"; do dd if=/dev/zero of="$d" bs=4k count=2 oflag=direct status=none; done ;;
	esac
	echo "/dev/mapper/db /data ext4 nofail 0 0" > /etc/fstab
	only_the_system
	verdict_unit "$1"
	ln -s /lib/systemd/systemd /run/init
	echo "systemd takes over at $(cut -d' ' -f1 /proc/uptime)"
}

# waits SECONDS WHAT COMMAND...: until it succeeds
waits() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" > /dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { journalctl -b --no-pager | tail -60; die "$what does not come: $(systemctl --no-pager --no-legend list-jobs)"; }
		sleep 0.5
	done
}
# seconds since systemd began
since_start() { echo $((($(systemctl show -P "$2" "$1") - $(systemctl show -P UserspaceTimestampMonotonic)) / 1000000)); }
state() { terracectl list --json | json "o[0]['state']"; }
is_state() { [ "$(state)" = "$1" ]; }

# ---- terraced under systemd ----

terraced_is() { systemctl show -P "$1" terraced; }
pid_is_new() { [ "$(terraced_is MainPID)" != "$before" ] && [ "$(terraced_is MainPID)" != 0 ] && systemctl -q is-active terraced; }
journal_has() { journalctl -b --no-pager -u terraced | grep -qE -e "$1"; }
# that process does, and its socket answers for it
drives() {
	journalctl -b --no-pager "_PID=$(terraced_is MainPID)" | grep -q 'db: driving' &&
		/usr/local/sbin/terraced --status | grep -q '"name": *"db"'
}
# from here on another process drives the volume
came_back() { # SECONDS WHAT
	waits "$1" "another terraced after $2" pid_is_new
	waits 60 "the volume driven after $2" drives
	check_eq "file after $2" "$(cat /data/file)" "of the volume"
}
serves() {
	local pid
	systemctl start terraced || { journalctl -b --no-pager -u terraced; die "terraced does not start"; }
	# that start has returned says it was ready: it told systemd
	check_eq "type" "$(terraced_is Type)" notify
	waits 60 "the volume driven" drives
	pid=$(terraced_is MainPID)
	check_eq "filter of system calls" "$(awk '/^Seccomp:/ { print $2 }' "/proc/$pid/status")" 2
	check_eq "new privileges" "$(awk '/^NoNewPrivs:/ { print $2 }' "/proc/$pid/status")" 1
	[ "$(awk '/^VmLck:/ { print $2 }' "/proc/$pid/status")" -gt 0 ] || die "its memory is not locked"
	! journal_has 'not allowed to be an I/O flusher|cannot be locked' || die "$(journalctl -b --no-pager -u terraced)"
	pass "serves: ready, hardened, locked"

	before=$pid
	sed -i 's/^; *tick_ms.*/tick_ms = 50/' /etc/terrace/terraced.conf
	systemctl reload terraced
	waits 30 "the configuration read anew" journal_has 'terraced.conf: read anew'
	check_eq "process after a reload" "$(terraced_is MainPID)" "$before"
	pass "serves: reads its configuration anew"

	kill -9 "$before"
	came_back 60 "SIGKILL"
	pass "serves: comes back after SIGKILL"

	before=$(terraced_is MainPID)
	kill -STOP "$before"
	came_back 150 "the watchdog"
	journal_has 'Watchdog timeout' || die "it was not the watchdog: $(journalctl -b --no-pager -u terraced | tail -20)"
	pass "serves: one that hangs is ended by the watchdog and comes back"

	systemctl stop terraced
	check_eq "after a stop" "$(terraced_is ActiveState), $(terraced_is Result), $(terraced_is ExecMainStatus)" "inactive, success, 0"
	journal_has ': stopped$' || die "it was not a clean stop: $(journalctl -b --no-pager -u terraced | tail -20)"
	check_eq "file after a stop" "$(cat /data/file)" "of the volume"
	pass "serves: stops cleanly, and the volume goes on"

	sed -i 's/^tick_ms = 50/tick_ms = never/' /etc/terrace/terraced.conf
	! systemctl start terraced 2> /dev/null || die "it starts with a bad configuration"
	journal_has 'terraced.conf:[0-9]*: .*is not a whole number' || die "the journal does not say which line: $(journalctl -b --no-pager -u terraced | tail -20)"
	systemctl stop terraced
	systemctl reset-failed terraced 2> /dev/null || true
	pass "serves: a bad configuration is refused, with its line"
}

verdict() {
	local booted
	waits 240 "the end of the boot" systemctl -q is-active multi-user.target
	check_eq "first process" "$(cat /proc/1/comm)" systemd
	booted=$(since_start multi-user.target ActiveEnterTimestampMonotonic)
	echo "booted in $booted s"
	[ "$booted" -lt "${BOOT_LIMIT:-120}" ] || die "the boot took $booted s"
	case $1 in
	serves)
		waits 60 "the mount" mountpoint -q /data
		serves ;;
	whole)
		waits 60 "the mount" mountpoint -q /data
		check_eq "file" "$(cat /data/file)" "of the volume"
		is_state active || die "state $(state)"
		says "^volume 'db' .*mode write" status db
		! journalctl -b --no-pager -u 'terrace-*' | grep 'is missing' || die "something is missing"
		[ "$(systemctl show -P ActiveState "terrace-last-resort@$(terracectl list --json | json "o[0]['uuid']").timer")" = active ] || die "no timer was started" ;;
	degraded)
		# not by one device alone: by the timer, long after the boot
		waits 90 "the volume" is_state active
		journalctl -b --no-pager -u 'terrace-*' > /dev/shm/said
		grep -q "tier 1: is missing" /dev/shm/said || die "the journal does not say what is missing: $(cat /dev/shm/said)"
		says "MISSING" status db
		[ "$(since_start "terrace-last-resort@$(terracectl list --json | json "o[0]['uuid']").service" InactiveExitTimestampMonotonic)" -ge 25 ] || die "it did not wait" ;;
	nothing)
		check_eq "volumes" "$(terracectl list)" ""
		check_eq "units" "$(systemctl --no-legend --no-pager list-units 'terrace-*')" "" ;;
	esac
	systemctl --no-legend --no-pager list-units --state=failed 'terrace-*' 'systemd-udev*' > /dev/shm/failed
	[ ! -s /dev/shm/failed ] || { journalctl -b --no-pager | tail -60; die "failed: $(cat /dev/shm/failed)"; }
	pass "$1"
}

"$@"
