# SPDX-License-Identifier: GPL-2.0-or-later
# Words for terraced in scripts of the machine; sourced after volume.bash.
#
# $CONF, $LOG		its configuration, which the script writes, and its log
# conf_written [TICK_MS]	$CONF with the usual places, and what stdin says of the policy
# conf_unhindered LINE...	$CONF of a small volume, with nothing in the way of moves but what LINE... say
# daemon_start [ARG...]	in the background as $daemon, until it answers
# daemon_stop		cleanly
# daemon_kill		not so
# answers		asks for the status, into /dev/shm/status
# number NAME		of the status, the first of that name
# logged REGEX		the log has that
# until_ WHAT COMMAND...	waits until the command succeeds; patience is for slow machines
#
# shellcheck shell=bash

PATH=$TERRACE_TREE/build:$PATH in_ram terraced orders
LOG=/dev/shm/terraced.log CONF=/dev/shm/terraced.conf
daemon=
trap 'cp $LOG $CONF /dev/shm/status "$OUT/" 2> /dev/null || true' EXIT
mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true

terraced() { from_ram terraced "$@"; }

conf_written() {
	printf '%s\n' '[daemon]' 'state_directory = /dev/shm/state' 'socket = /dev/shm/socket' ${1:+"tick_ms = $1"} '[policy]' > $CONF
	cat >> $CONF
}

conf_unhindered() {
	printf '%s\n' sense=access ralt.buffer_records=256 governor.epoch_ops=1000000 admit.uniform=0 \
		brake.tolerance=100 brake.floor_us=1000000 cpu.min_idle=0 "$@" | conf_written 50
}

daemon_start() {
	# not the function: signals are for the program
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config $CONF "$@" >> $LOG 2>&1 &
	daemon=$!
	until_ "terraced answers" answers
}
daemon_stop() {
	kill $daemon
	wait $daemon || die "terraced ends with $?"
	daemon=
}
daemon_kill() {
	kill -9 $daemon
	wait $daemon 2> /dev/null || true
	daemon=
}
answers() { terraced --config $CONF --status > /dev/shm/status 2> /dev/null; }
number() { answers && sed -n "s/^ *\"$1\": *\(-\?[0-9.]*\),\?$/\1/p;T;q" /dev/shm/status | grep .; }
logged() { grep -qE -e "$1" $LOG; }
until_() {
	local what=$1 tries
	shift
	for ((tries = 0; tries < 400; tries++)); do
		if "$@"; then return; fi
		[ -z "$daemon" ] || kill -0 "$daemon" 2> /dev/null || { tail -20 $LOG; die "$what: terraced has ended"; }
		sleep 0.2
	done
	tail -40 $LOG
	answers || echo "terraced no longer answers; before:"
	cat /dev/shm/status
	die "$what: never"
}
rss_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$daemon/status"; }
# clock ticks of 10 ms
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }
