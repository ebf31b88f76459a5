#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terraced without a volume: help, man page, configuration errors, signals, status socket, systemd's notification.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
daemon=$TERRACE_TREE/build/terraced
conf=$OUT/terraced.conf log=$OUT/log
# sockets have short names
run=$(mktemp -d /tmp/terraced-XXXXXX)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2> /dev/null; rm -rf "$run"' EXIT

# until_ WHAT COMMAND...
until_() {
	local what=$1 tries
	shift
	for ((tries = 0; tries < 300; tries++)); do
		if "$@" > /dev/null 2>&1; then return; fi
		sleep 0.1
	done
	cat "$log"
	die "$what: never"
}
write_conf() { printf '[daemon]\nstate_directory = %s/state\nsocket = %s/socket\n' "$run" "$run" > "$conf"; }

# ---- help and man page ----
help=$("$daemon" --help)
[ "$(awk '{ if (length($0) > m) m = length($0) } END { print m }' <<< "$help")" -le 100 ] || die "--help is too wide"
scripts/manpages /nowhere "$OUT/man" "$daemon"
for part in NAME SYNOPSIS DESCRIPTION EXAMPLES 'EXIT STATUS'; do
	grep -qx ".SH $part" "$OUT/man/terraced.8" || die "terraced.8 lacks $part"
done
if command -v man > /dev/null; then check_eq "what man says" "$(man -l --warnings "$OUT/man/terraced.8" 2>&1 > /dev/null)" ""; fi
expect 2 "Try: terraced --help" "$daemon" --no-such-option
expect 2 "too many arguments" "$daemon" data

# ---- the unit ----
if command -v systemd-analyze > /dev/null; then
	sed "s,@PREFIX@/sbin,$TERRACE_TREE/build," packaging/terraced.service > "$OUT/terraced.service"
	said=$(systemd-analyze verify "$OUT/terraced.service" 2>&1 || true)
	! grep -E 'Unknown|Invalid|Failed to parse|not executable' <<< "$said" || die "the unit has errors"
fi

# ---- configuration ----
expect 0 "no errors" "$daemon" --check-config --config packaging/terraced.conf
expect 1 "No such file" "$daemon" --check-config --config "$OUT/nothing"
write_conf
echo "tick_ms = 5" >> "$conf"
expect 1 "terraced.conf:4: tick_ms = 5: is not a whole number from 10 to 10000" "$daemon" --check-config --config "$conf"
expect 1 "terraced.conf:4: tick_ms" "$daemon" --config "$conf"

# ---- running ----
write_conf
printf '[policy]\ntier2.budget.bytes_per_second = 20e6\n' >> "$conf"
expect 1 "is the daemon running" "$daemon" --config "$conf" --status
"$daemon" --config "$conf" 2> "$log" &
pid=$!
until_ "an answer" "$daemon" --config "$conf" --status
python3 - "$run/socket" <<-'EOF'
	import json, socket, sys, time
	def ask(line):
	    s = socket.socket(socket.AF_UNIX)
	    s.connect(sys.argv[1])
	    if line:
	        s.send(line)
	        return json.loads(b''.join(iter(lambda: s.recv(65536), b'')))
	assert ask(b'status\n')['volumes'] == []
	assert ask(b'explain\n')['decisions'] == []
	policy = ask(b'config\n')['policy']
	assert policy['choose']['candidates'] == 8
	assert policy['tiers'][2]['budget']['bytes_per_second'] == 20e6
	assert policy['tiers'][1]['budget']['bytes_per_second'] == policy['budget']['bytes_per_second']
	assert 'unknown request' in ask(b'\xff rubbish\n')['error']
	ask(None)	# connects, says nothing, goes away
	assert ask(b'status\n')['volumes'] == []
	# Who is slow is not sent away, and holds up nobody.
	slow = [socket.socket(socket.AF_UNIX) for _ in range(12)]
	for s in slow:
	    s.connect(sys.argv[1])
	began = time.monotonic()
	assert ask(b'status\n')['volumes'] == []
	took = time.monotonic() - began
	assert took < 1, f'{took} s behind those that say nothing'
	time.sleep(1)
	slow[-1].send(b'status\n')
	assert json.loads(b''.join(iter(lambda: slow[-1].recv(65536), b'')))['volumes'] == []
	# But who has never anything to say is.
	slow[-2].settimeout(20)
	assert slow[-2].recv(1) == b''
EOF
check_eq "mode of the socket" "$(stat -c %a "$run/socket")" 600

# A second one leaves it to the first.
"$daemon" --config "$conf" 2> "$OUT/second" &
second=$!
until_ "the second is told" grep -q "another terraced answers there" "$OUT/second"
kill $second
wait $second || die "the second ends with $?"
"$daemon" --config "$conf" --status > /dev/null || die "the first has lost its socket"
printf 'choose.candidates = 3\n' >> "$conf"
kill -HUP $pid
until_ "read anew" grep -q "read anew" "$log"
[[ $("$daemon" --config "$conf" --show-config) == *'"candidates": 3'* ]] || die "SIGHUP did not change a tunable"
sed -i 's,/state$,/elsewhere,' "$conf"
kill -HUP $pid
until_ "the key that waits is told" grep -q "state_directory = $run/elsewhere takes effect with the next start: until then it is $run/state$" "$log"
# a changed socket waits as well, but who asks reads the file
sed -i 's,/socket$,/other,' "$conf"
kill -HUP $pid
until_ "the socket that waits is told" grep -q "socket = $run/other takes effect with the next start: until then it is $run/socket$" "$log"
expect 1 "terraced: $run/other: No such file or directory: is the daemon running[?] Asked where $conf has its socket: changed, that waits for the daemon's next start" "$daemon" --config "$conf" --status
sed -i 's,/other$,/socket,' "$conf"
echo "nonsense = 1" >> "$conf"
kill -HUP $pid
until_ "refused" grep -q "terraced.conf:7: nonsense = 1" "$log"
sed -i 's/^nonsense = 1/watermark.high = 0.5/' "$conf"
kill -HUP $pid
until_ "a contradiction" grep -q "terraced.conf:7: \[policy\]: watermark.low must be below watermark.high" "$log"
grep -q "the old configuration stays" "$log" || die "not said that the old configuration stays"
kill $pid
wait $pid || die "ends with $?"
pid=
[ ! -e "$run/socket" ] || die "the socket stays"
grep -q stopped "$log" || die "no clean stop"

# ---- killed, then started again over the old socket; systemd is told ----
write_conf
python3 - "$run/notify" > "$OUT/notified" <<-'EOF' &
	import socket, sys
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind(sys.argv[1])
	seen = set()
	while not {'READY=1', 'WATCHDOG=1', 'STOPPING=1'} <= seen:
	    seen.add(s.recv(4096).decode().strip())
	print(*sorted(seen))
EOF
notified=$!
until_ "a listener" test -S "$run/notify"
"$daemon" --config "$conf" 2> "$log" &
pid=$!
until_ "an answer" "$daemon" --config "$conf" --status
kill -9 $pid
wait $pid 2> /dev/null || true
WATCHDOG_USEC=30000000 NOTIFY_SOCKET=$run/notify "$daemon" --config "$conf" 2> "$log" &
pid=$!
until_ "an answer" "$daemon" --config "$conf" --status
sleep 0.5
kill $pid
wait $pid || die "ends with $?"
pid=
wait $notified
grep -q READY=1 "$OUT/notified" || die "systemd was not told"
