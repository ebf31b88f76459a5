#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl add, replace, leave where they could lose a volume: called twice, beside a drive that died, beside a copy of a drive, killed or failing at the labels; it is served, or what is written waits.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=die
# shellcheck disable=SC2119,SC2086
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

need dm-mirror dm-delay
# some of them: scripts/vm -e PARTS="twice clone" functional -- bash tests/vm/ctl-relay.sh
parts=${PARTS:-twice dead clone labels refused label_fails}
vol_ram 24 256
mkram copy 24
mkram plain 24
mkram other 256
mkram spare 16
cp "$TERRACE_TREE/build/die.so" "$RAM/"
klog_allow "device-mapper: "
klog_allow "I/O error|Buffer I/O error"
size() { sectors "/dev/ram/$1"; }
# tables of a drive; slow NAME [MS]: of each read and write 100 ms
works_() { echo "0 $(size $1) linear /dev/ram/$1 0"; }
slow() { echo "0 $(size $1) delay /dev/ram/$1 0 ${2:-100} /dev/ram/$1 0 ${2:-100}"; }
broken() { echo "0 $(size $1) error"; }
# the copy is found before the drive
for d in copy fast slow plain other; do dmc d$d "$(works_ $d)"; done
drives=(/dev/mapper/dfast /dev/mapper/dslow)
PLAIN=/dev/mapper/dplain OTHER=/dev/mapper/dother
target() { dmsetup table vol | cut -d' ' -f3; }
served() { [ "$(target)" = terrace ] && [ "$(state vol)" = Active ]; }
state() { dmsetup info -c --noheadings -o suspended "$1"; }
copying() { [[ $(dmsetup status "$1" 2> /dev/null) =~ \ mirror\ 2\ [^\ ]+\ [^\ ]+\ ([0-9]+)/([0-9]+)\  ]] && ((BASH_REMATCH[1] < BASH_REMATCH[2])); }
# in_background ARG...: terracectl, as $pid
in_background() {
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terracectl" "$@" > /dev/shm/said 2>&1 < /dev/null &
	pid=$!
}
# at HOW N ARG...: terracectl dies before its write N to the beginning of a device (DIE), or that fails (FAIL), or its Nth read of a label (LABEL)
at() {
	local how=$1 n=$2 status=0
	shift 2
	{ env WRITES=head COUNT=/dev/shm/count "${how}_AT=$n" LD_PRELOAD="$RAM/die.so" LD_LIBRARY_PATH="$RAM/lib" "$RAM/terracectl" "$@" > /dev/shm/said 2>&1 < /dev/null || status=$?; } 2> /dev/null
	[ "$status" != 0 ] || [ "$how" = LABEL ] || die "write $n was to stop '$*', it said $(cat /dev/shm/said)"
	[ "$how" != DIE ] || check_eq "status" "$status" 137
}
said_() { grep -qE -e "$1" /dev/shm/said || die "said $(cat /dev/shm/said)"; }
# answers WHAT: a read of what is on the fast tier comes back; one that waits cannot be killed
answers() {
	local tries
	dd if="$VOL" of=/dev/shm/read bs=64k count=16 iflag=direct status=none &
	pid=$!
	for ((tries = 0; tries < 100; tries++)); do
		! gone $pid || break
		sleep 0.1
	done
	gone $pid || die "$1: the volume hangs: $(dmsetup table | grep vol)"
	wait $pid || die "$1: the volume gives errors"
	cmp /dev/shm/data /dev/shm/read || die "$1: not what was written"
}
is_volume() {
	check_eq "table" "$(target)" terrace
	[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
	! dmsetup info vol-replace > /dev/null 2>&1 || die "vol-replace is still there"
	[ ! -e /run/terrace/vol.relay ] || die "its file is still there"
	answers "$1"
}
fresh() {
	vol_format --tier "optane:slots:atomic=${drives[0]}" --tier "hdd:shelves:atomic=${drives[1]}" --size 16M
	vol_up commit_ms=200
	dd if=/dev/urandom of=/dev/shm/data bs=64k count=16 status=none
	dd if=/dev/shm/data of="$VOL" bs=64k oflag=direct status=none
	[[ $(terracectl which --json vol | json "sum(r['blocks'] for r in o if r['where'].startswith('fast'))") -ge 256 ]] || die "nothing is on the fast tier"
}
# its devices are whole
ends() {
	says "" deactivate vol
	terracectl check --full "${drives[@]}" > /dev/shm/said || die "not sound: $(cat /dev/shm/said)"
}
has_label() { ! cmp -s -n 8192 "$1" /dev/zero; }

# ---- the same call, or another one, while the first is at work (longer than the questions take): it is refused and changes nothing
twice() {
	fresh
	becomes dplain "$(slow plain 300)"
	in_background leave --yes --force --to $PLAIN vol
	until_ "copying" copying vol
	refuses 1 "leave --yes --force --to $PLAIN vol' \(process $pid\) is at work on volume 'vol'" leave --yes --force --to $PLAIN vol
	refuses 1 "is at work on volume 'vol'" leave --undo vol
	refuses 1 "is at work on volume 'vol'" add --yes vol --tier hdd:slots=/dev/ram/spare
	refuses 1 "is at work on volume 'vol'" remove --yes vol
	kill -INT $pid
	if wait $pid; then die "interrupted leave ended well"; fi
	is_volume "after a leave that was called twice"
	becomes dplain "$(works_ plain)"
	becomes dother "$(slow other 300)"
	in_background replace --yes --force --to $OTHER vol 1
	until_ "copying" copying vol-replace
	refuses 1 "is at work on volume 'vol'" replace --yes --force --to $OTHER vol 1
	refuses 1 "is at work on volume 'vol'" add --yes vol --tier hdd:slots=/dev/ram/spare
	refuses 1 "is at work on volume 'vol'" evacuate vol 0
	refuses 1 "is at work on volume 'vol'" deactivate vol
	kill -KILL $pid
	wait $pid 2> /dev/null || true
	# whoever is killed has no lock any more
	says "stays on" replace --undo vol 1
	becomes dother "$(works_ other)"
	is_volume "after a replace that was called twice"
	ends
}

# ---- a drive that died in use: what needs a stop is refused before it, the rest goes on
dead() {
	fresh
	becomes dslow "$(broken slow)"
	answers "a drive died"
	refuses 1 "the label of its tier 1 \(/dev/mapper/dslow\) cannot be read: .* nothing changed" add --yes vol --tier hdd:slots=/dev/ram/spare
	answers "add beside a drive that died"
	refuses 1 "the label of its tier 1 " leave --yes --force --to $PLAIN vol
	answers "leave beside a drive that died"
	refuses 1 "the label of its tier 1 " replace --yes --force --to $OTHER vol 0
	answers "replace beside a drive that died"
	is_volume "a drive died"
	becomes dslow "$(works_ slow)"
	# ... and while it is copied
	becomes dother "$(slow other)"
	in_background replace --yes --force --to $OTHER vol 1
	until_ "copying" copying vol-replace
	until_ "the volume to be served meanwhile" served
	becomes dslow "$(broken slow)"
	until_ "end" gone $pid
	if wait $pid; then die "its drive died, and replace ended well"; fi
	said_ "replace --undo vol 1 tries again"
	check_eq "table" "$(target)" terrace
	answers "the drive that is copied died"
	refuses 1 "the label of its tier 1 " replace --undo vol 1
	answers "replace --undo without the drive"
	becomes dslow "$(works_ slow)"
	becomes dother "$(works_ other)"
	says "stays on" replace --undo vol 1
	is_volume "the drive is back"
	# ... and while all of it is copied
	becomes dplain "$(slow plain)"
	in_background leave --yes --force --to $PLAIN vol
	until_ "copying" copying vol
	kill -STOP $pid		# so that it does not end before it is interrupted
	becomes dslow "$(broken slow)"
	kill -INT $pid
	kill -CONT $pid
	until_ "end" gone $pid
	if wait $pid; then die "interrupted leave ended well"; fi
	answers "a drive died while the volume left"
	becomes dslow "$(works_ slow)"
	becomes dplain "$(works_ plain)"
	says "" leave --undo vol
	is_volume "the drive is back"
	ends
}

# ---- a copy of a drive is attached, and is found first: it is left alone
clone() {
	fresh
	dmsetup suspend --noudevsync vol
	dd if=/dev/ram/fast of=/dev/ram/copy bs=1M iflag=direct oflag=direct status=none
	dmsetup resume --noudevsync --noudevrules vol
	cksum < /dev/ram/copy > /dev/shm/before
	says "tier 2 of volume 'vol' is /dev/ram/spare" add --yes --force vol --tier hdd:slots=/dev/ram/spare
	is_volume "add beside a copy"
	cksum < /dev/ram/copy | cmp - /dev/shm/before || die "add wrote to the copy"
	says "is on $OTHER now" replace --yes --force --to $OTHER vol 1
	is_volume "replace beside a copy"
	says "is on $PLAIN now" leave --yes --force --to $PLAIN vol
	cksum < /dev/ram/copy | cmp - /dev/shm/before || die "leave wrote to the copy"
	if has_label ${drives[0]} || has_label $OTHER; then die "the volume's own devices have labels still"; fi
	answers "left"
	dmr vol
	dd if=/dev/zero of=/dev/ram/copy bs=1M count=1 oflag=direct status=none
}

# ---- leave, killed or failing while the labels go
labels() {
	local how
	fresh
	for how in undo interrupted device_fails goes_on; do
		at DIE 2 leave --yes --force --to $PLAIN vol
		if has_label ${drives[0]} || ! has_label ${drives[1]}; then die "not stopped between the labels"; fi
		check_eq "state" "$(state vol)" Suspended
		case $how in
		undo) says "" leave --undo vol ;;
		interrupted)
			becomes dplain "$(slow plain)"
			in_background leave --yes --force --to $PLAIN vol
			sleep 1.5
			kill -INT $pid
			if wait $pid; then die "interrupted leave ended well"; fi
			said_ "interrupted"
			becomes dplain "$(works_ plain)" ;;
		device_fails)
			becomes dplain "$(broken plain)"
			refuses 1 "dplain failed|cannot be read" leave --yes --force --to $PLAIN vol
			becomes dplain "$(works_ plain)" ;;
		goes_on)
			says "is on $PLAIN now" leave --yes --force --to $PLAIN vol
			check_eq "table" "$(target)" linear
			answers "left"
			dmr vol
			break ;;
		esac
		has_label ${drives[0]} || die "$how: the label is not back"
		is_volume "$how"
	done
	# a label that cannot be written: the others are as they were
	fresh
	for n in 1 2; do
		at FAIL $n leave --yes --force --to $PLAIN vol
		said_ "its label cannot be written"
		is_volume "label $n cannot be written"
	done
	# ... or cannot be read, once
	for ((n = 1; ; n++)); do
		at LABEL $n leave --yes --force --to $PLAIN vol
		[ "$(target)" = terrace ] || break
		is_volume "read $n of a label failed"
	done
	((n > 6)) || die "leave ended well when read $n of a label failed"
	answers "left"
	dmr vol
	fresh
	# NAME is on the device already, and NAME-terrace still there
	becomes dplain "$(slow plain)"
	in_background leave --yes --force --to $PLAIN vol
	until_ "copying" copying vol
	exec 9< /dev/mapper/vol-terrace
	becomes dplain "$(works_ plain)"
	wait $pid || die "said $(cat /dev/shm/said)"
	said_ "'vol-terrace' is in use"
	check_eq "table" "$(target)" linear
	refuses 1 "has left already: terracectl leave --to $PLAIN vol ends it" leave --undo vol
	refuses 1 "has left already" leave --yes --to /dev/ram/spare vol
	exec 9<&-
	says "is on $PLAIN now" leave --yes --to $PLAIN vol
	[ ! -e /dev/mapper/vol-terrace ] || die "vol-terrace is still there"
	answers "left"
	dmr vol
}

# ---- the volume can be started neither where it was nor below: what is written waits
refused() {
	fresh
	becomes dplain "$(slow plain 300)"	# all the rest is done meanwhile
	in_background leave --yes --force --to $PLAIN vol
	until_ "copying" copying vol
	kill -STOP $pid
	# the labels can be read, the superblocks cannot
	for d in fast slow; do becomes d$d "0 128 linear /dev/ram/$d 0
128 $(($(size $d) - 128)) error"; done
	copying vol || die "the copy ended before its drives broke"
	kill -INT $pid
	kill -CONT $pid
	until_ "end" gone $pid
	if wait $pid; then die "interrupted leave ended well"; fi
	check_eq "state" "$(state vol)" Suspended
	dd if=/dev/shm/data of="$VOL" bs=64k seek=16 oflag=direct status=none &
	writer=$!
	sleep 1
	! gone $writer || die "a write did not wait"
	for d in fast slow; do becomes d$d "$(works_ $d)"; done
	becomes dplain "$(works_ plain)"
	says "" leave --undo vol
	wait $writer || die "the write that waited failed"
	is_volume "drives are back"
	ends
}

# ---- replace: the new drive fails exactly when it gets its label
label_fails() {
	fresh
	# the first write are zeros in the label's place
	at FAIL 2 replace --yes --force --to $OTHER vol 1
	said_ "dother: its label cannot be written"
	is_volume "a new drive without a label"
	# it got it, and is not there any more when the same call goes on
	at DIE 3 replace --yes --force --to $OTHER vol 1
	has_label $OTHER || die "not stopped between the labels"
	at FAIL 1 replace --yes --force --to $OTHER vol 1
	said_ "tier 1 of volume 'vol' stays on"
	is_volume "a new drive with a label"
	ends
	says "^/dev/mapper/vol$" activate vol
	check_eq "tier 1" "$(dmsetup table vol | cut -d' ' -f9)" "$(dmsetup info -c --noheadings -o major,minor --separator : dslow)"
	says "is on $OTHER now" replace --yes --force --to $OTHER vol 1
	is_volume "replaced"
	says "" deactivate vol
}

for part in $parts; do
	$part
	pass "$part (at $SECONDS s)"
done
