#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume cannot write down what it has acknowledged: terracectl add, replace, leave and deactivate do not stop it, at no stop of theirs, and deactivate --force leads out; evacuate says so at once.
# vm: mode=functional memory=1G cpus=1 timeout=900 build=die
# shellcheck disable=SC2119,SC2120
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"
need dm-mirror dm-delay

# some of them: scripts/vm -e PARTS="first later" functional -- bash tests/vm/ctl-unwritten.sh
parts=${PARTS:-first later goes written copied stopped evacuated}
dd if=/dev/urandom of=/dev/shm/data bs=1M count=1 status=none
cp "$TERRACE_TREE/build/die.so" "$RAM/"
put() { dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct conv=notrunc"${1:-}" status=none; }
there() { cmp -n 1048576 /dev/shm/data "$VOL" || die "$1: what was acknowledged is gone"; }
klog_allow 'device-mapper: '
klog_allow 'I/O error|Buffer I/O error'
calls=("add vol --tier hdd=/dev/mapper/spare" "replace --to /dev/mapper/spare vol 0" "leave --to /dev/mapper/spare vol")
refused="what was last written to 'vol' cannot be written to its devices: it is not stopped, for [0-9]+ records? of its journal would be lost.* terracectl deactivate --force vol"

# fresh [SLOW_MB]
fresh() {
	vol_models 1 fast:64 "slow:${1-320}" spare:256
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)
	vol_format --size 64M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}"
	vol_up commit_ms=60000
	read -r at len <<< "$(vol_layout fast journal)"
}
# the next block of the journal is not written
journal_fails() { drive fast error add write "$at" "$len" nth=1 count=1; }
away() { for d in fast slow spare; do rmdrive $d; done; }
mappings() { dmsetup ls | cut -f1 | grep ^vol || true; }
# down_and_up WHAT [ARG...]: it is down, and comes up; then that call of terracectl ends what was begun
down_and_up() {
	local what=$1
	shift
	check_eq "$what: mappings of the volume" "$(mappings | sed /replace/d)" ""
	[ ! -e /run/terrace/vol.relay ] || die "$what: its file is still there"
	says "^/dev/mapper/vol$" activate vol
	[ $# = 0 ] || says . "$@"
	check_eq "$what: mappings of the volume in use" "$(mappings)" vol
	put ,fsync
	says "" deactivate vol
	vol_check
}

# ---- refused at the first stop
first() {
	for call in "${calls[@]}"; do
		fresh
		put
		journal_fails
		# shellcheck disable=SC2086 # words
		refuses 1 "$refused" $call --yes
		there "$call"
		expect_fail 'Input/output error|Read-only' put ,fsync
		check_eq "$call: mappings of the volume" "$(mappings)" vol
		check_eq "$call: table" "$(dmsetup table vol | cut -d' ' -f3,5)" "terrace 2"
		dmr vol
		away
	done
}

# ---- refused at a later one: the volume is one floor down, as a call that was killed there has left it
below() { [ "$(dmsetup table vol-terrace 2> /dev/null | cut -d' ' -f3)" = terrace ] && [[ $(dmsetup info -c --noheadings -o suspended vol-terrace vol) != *Suspended* ]]; }
# killed before each of its changes in turn, until that is so; once it is stopped a call goes on from there, with fewer to come
goes_below() {
	local n stopped=0
	for ((n = 1; n < 40; n++)); do
		{ env COUNT=/dev/shm/count DIE_AT=$n LD_PRELOAD="$RAM/die.so" LD_LIBRARY_PATH="$RAM/lib" "$RAM/terracectl" "$@" > /dev/shm/said 2>&1 < /dev/null || true; } 2> /dev/null
		! below || return 0
		if ((!stopped)) && [ "$(dmsetup table vol | cut -d' ' -f3)" = linear ]; then stopped=1 n=0; fi
	done
	die "$*: never below: $(cat /dev/shm/said)"
}
later() {
	local again
	for call in "${calls[@]}"; do
		case $call in
		add*) again="$call --yes" ;;
		replace*) again="replace --undo vol 0" ;;
		leave*) again="leave --undo vol" ;;
		esac
		fresh
		# shellcheck disable=SC2086
		goes_below $call --yes
		put
		journal_fails
		# shellcheck disable=SC2086
		refuses 1 "$refused" $again
		there "$again"
		below || die "$again: not as it was: $(dmsetup table; dmsetup info -c)"
		refuses 1 "$refused" deactivate vol
		there "deactivate after $again"
		exec 5< "$VOL"
		refuses 1 "volume 'vol' is in use: open by a program" deactivate --force vol
		exec 5<&-
		says "" deactivate --force vol
		# shellcheck disable=SC2086
		if [[ $call == replace* ]]; then down_and_up "$again" $again; else down_and_up "$again"; fi
		away
	done
	# nothing is lost: no --force
	fresh
	# shellcheck disable=SC2086
	goes_below ${calls[0]} --yes
	put
	says "" deactivate vol
	check_eq "mappings of the volume" "$(mappings)" ""
	says "^/dev/mapper/vol$" activate vol
	there "deactivate one floor down"
	says "" deactivate vol
	away
}

# ---- deactivate: nobody has it open, and yet somebody wrote to it
goes() {
	fresh
	put
	journal_fails
	refuses 1 "$refused" deactivate vol
	there "deactivate"
	refuses 1 "$refused" deactivate vol
	check_eq "its state" "$(dmsetup info -c --noheadings -o suspended vol)" Active
	check_eq "deactivate --json" "$(terracectl deactivate --json vol 2> /dev/null | json "o[0]['active']")" True
	says "" deactivate --force vol
	down_and_up "deactivate"
	# remove loses all anyway
	vol_up commit_ms=60000
	put
	journal_fails
	says "" remove --yes vol
	check_eq "remove: mappings of the volume" "$(mappings)" ""
	away
}

# ---- it writes no more, and all that was acknowledged is written: nothing would be lost
written() {
	fresh
	put ,fsync
	read -r at len <<< "$(vol_layout fast pages)"
	journal_fails
	expect_fail . vol_message checkpoint
	[[ $(vol_get mode) = read-only ]] || die "mode $(vol_get mode)"
	says "" deactivate vol
	check_eq "deactivate: mappings of the volume" "$(mappings)" ""
	away
}

# ---- deactivate of one whose leave was killed while the kernel copies, which goes on doing so: it waits for what it reads when it is stopped
suspended() { dmsetup info -c --noheadings -o name,suspended --separator ' ' | sed -n 's/ Suspended$//p' | sort | xargs; }
copying() { [[ $(dmsetup status vol 2> /dev/null) =~ \ mirror\ 2\ [^\ ]+\ [^\ ]+\ ([0-9]+)/([0-9]+)\  ]] && ((BASH_REMATCH[1] > ${1:-4} && BASH_REMATCH[1] < BASH_REMATCH[2])); }
HELD=
leave_killed() {
	fresh
	dmc away "0 $(sectors /dev/mapper/spare) delay /dev/mapper/spare 0 0 /dev/mapper/spare 0 100"
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terracectl" leave --yes --to /dev/mapper/away vol > /dev/shm/said 2>&1 < /dev/null &
	pid=$!
	until_ "copying" copying
	kill -9 $pid
	wait $pid 2> /dev/null || true
	copying || die "copied already"
}
# ends STATUS PATTERN ARG...: ... in a time, what is held on the fast drive meanwhile is released; who waits in the kernel cannot be killed
ends() {
	local status=0 tries want=$1 pattern=$2
	shift 2
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terracectl" "$@" > /dev/shm/said 2>&1 < /dev/null &
	pid=$!
	if [ "$HELD" ]; then
		drive_wait_held fast
		sleep 1
		drive fast release
	fi
	for ((tries = 0; tries < 300; tries++)); do
		! gone $pid || break
		sleep 0.1
	done
	gone $pid || die "terracectl $*: hangs; suspended: $(suspended)"
	wait $pid || status=$?
	check_eq "exit status of terracectl $* ($(cat /dev/shm/said))" "$status" "$want"
	grep -qE -e "$pattern" <<< "$(cat /dev/shm/said)" || die "terracectl $* said '$(cat /dev/shm/said)'"
}
copied() {
	local n
	leave_killed
	put
	# its stop takes long enough for the next region to be begun
	drive fast error add write "$at" "$len" nth=1 count=1 status=ok hold
	HELD=1 ends 0 "" deactivate vol
	down_and_up "deactivate while it is copied"
	dmr away
	away
	# refused, or one of its requests fails: it is copied on
	leave_killed
	for n in 1 2 3; do
		if env FAIL_AT=$n LD_PRELOAD="$RAM/die.so" LD_LIBRARY_PATH="$RAM/lib" "$RAM/terracectl" deactivate vol > /dev/shm/said 2>&1; then die "request $n failed, and it ended well"; fi
		check_eq "request $n failed: mappings of the volume" "$(mappings | xargs)" "vol vol-terrace"
		check_eq "request $n failed: suspended" "$(suspended)" ""
	done
	put
	journal_fails
	ends 1 "$refused" deactivate vol
	check_eq "refused: suspended" "$(suspended)" ""
	there "deactivate while it is copied"
	[[ $(dmsetup status vol) =~ \ ([0-9]+)/[0-9]+\  ]]
	sleep 1
	copying "${BASH_REMATCH[1]}" || die "not copied on: $(dmsetup status vol)"
	ends 0 "" deactivate --force vol
	down_and_up "deactivate --force while it is copied"
	dmr away
	away
	# killed before each of its changes: who opened it meanwhile waits no longer than until the next call
	for ((n = 1; ; n++)); do
		leave_killed
		{ env COUNT=/dev/shm/count DIE_AT=$n LD_PRELOAD="$RAM/die.so" LD_LIBRARY_PATH="$RAM/lib" "$RAM/terracectl" deactivate vol > /dev/shm/said 2>&1 < /dev/null || true; } 2> /dev/null
		if [ ! "$(mappings)" ]; then break; fi
		echo "killed before change $n: $(mappings | xargs), suspended: $(suspended)"
		if [[ $(mappings | xargs) = "vol vol-terrace" ]]; then
			exec 5< "$VOL"
			ends 1 "volume 'vol' is in use: open by a program" deactivate vol
			exec 5<&-
			check_eq "killed before change $n, refused: suspended" "$(suspended)" ""
		fi
		ends 0 "" deactivate vol
		down_and_up "deactivate, killed before change $n"
		dmr away
		away
	done
	[ $n -gt 4 ] || die "deactivate has only $n changes"
	dmr away
	away
}

# ---- deactivate, asked to end while the volume is suspended: all of it, or nothing
stopped() {
	local signal
	for signal in TERM HUP; do
		fresh
		put
		drive fast error add write "$at" "$len" nth=1 count=1 status=ok hold
		LD_LIBRARY_PATH=$RAM/lib "$RAM/terracectl" deactivate vol next > /dev/shm/said 2>&1 < /dev/null &
		pid=$!
		drive_wait_held fast
		kill -$signal $pid
		sleep 0.5
		drive fast release
		until_ "end" gone $pid
		if wait $pid; then die "$signal, and it ended well"; fi
		check_eq "$signal: suspended" "$(suspended)" ""
		check_eq "$signal: mappings of the volume" "$(mappings)" ""
		check_eq "$signal: said" "$(cat /dev/shm/said)" "terracectl: interrupted: 'next' is left as it is"
		says "" deactivate vol
		says "^/dev/mapper/vol$" activate vol
		there "$signal"
		# by one that was killed: activate says so, and who opened it waits no longer than until the next call
		dmsetup suspend --noudevsync --nolockfs vol
		refuses 1 "is active already, as /dev/mapper/vol, but suspended.* the same call ends it" activate vol
		exec 5< "$VOL"
		refuses 1 "volume 'vol' is in use: open by a program" deactivate vol
		exec 5<&-
		check_eq "in use: suspended" "$(suspended)" ""
		dmsetup suspend --noudevsync --nolockfs vol
		says "" deactivate vol
		vol_check
		away
	done
}

# ---- evacuate: nothing that it moves would be free
on_fast() { [ "$(terracectl which --json vol | json "sum(r['blocks'] for r in o if r['where'].startswith('fast'))")" = "$1" ]; }
evacuated() {
	local begin read_only="volume 'vol' is in mode read-only \\(activated so, or the kernel log says why\\): nothing can be moved off tier 0"
	fresh
	put ,fsync
	journal_fails
	blkdiscard -l 1M "$VOL"
	expect_fail . dd if=/dev/null of="$VOL" conv=notrunc,fsync status=none
	begin=$SECONDS
	refuses 1 "$read_only" evacuate vol 0
	((SECONDS - begin < 5)) || die "evacuate: said so after $((SECONDS - begin)) s"
	says "" evacuate --undo vol 0
	dmr vol
	away
	# ... while it is at work: what it has moved cannot be made durable
	fresh 640
	put ,fsync
	terracectl evacuate vol 0 > /dev/shm/said 2>&1 < /dev/null &
	pid=$!
	until_ "moved" on_fast 0
	journal_fails
	begin=$SECONDS
	vol_message commit || true
	until_ "end" gone $pid
	if wait $pid; then die "evacuate ended well: $(cat /dev/shm/said)"; fi
	grep -qE "$read_only" /dev/shm/said || die "evacuate said $(cat /dev/shm/said)"
	((SECONDS - begin < 20)) || die "evacuate: said so after $((SECONDS - begin)) s"
	there "evacuate"
	check_eq "avoided" "$(cat "/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname vol)/tune/avoid_tiers")" 0
	dmr vol
	away
}

for part in $parts; do
	$part
	pass "$part (at $SECONDS s)"
done
