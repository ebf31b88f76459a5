#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl create, convert, add, replace, leave, set --keep, deactivate, evacuate, repair, remove: killed before each of their changes, and with each of them failing; the next call goes on or undoes.
# vm: mode=functional memory=1G timeout=1500 long build=die
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

vol_ram 64 512
mkram third 256
mkram source 12
load_terrace
cp "$TERRACE_TREE/build/die.so" "$RAM/"
mkdir -p /etc/terrace && mount -t tmpfs tmpfs /etc/terrace
export COUNT=/dev/shm/count
# some of them, from change 20 on: scripts/vm -e OPERATIONS="add remove" -e FIRST=20 -e HOW=DIE functional -- bash tests/vm/ctl-killed-long.sh
operations=${OPERATIONS:-create convert remove add replace leave keep deactivate evacuate repair}
tiers=(--tier optane:slots:atomic=/dev/ram/fast --tier hdd:shelves:atomic=/dev/ram/slow)
source=/dev/ram/source
klog_allow "device-mapper: "

# stops HOW N ARG...: terracectl, its change N fails (FAIL) or it dies before it (DIE); what it said: /dev/shm/said. 1: it got that far
stops() {
	local how=$1 at=$2 status=0
	local preload=$RAM/die.so libraries=$RAM/lib
	shift 2
	echo 0 > $COUNT
	{ env "${how}_AT=$at" LD_PRELOAD="$preload" LD_LIBRARY_PATH="$libraries" "$RAM/terracectl" "$@" > /dev/shm/said 2>&1 < /dev/null || status=$?; } 2> /dev/null
	changes=$(cat $COUNT)
	[ "$how" = FAIL ] || [ "$status" = 137 ] || return 0
	[ "$how" = DIE ] || [ "$changes" -ge "$at" ] || return 0
	[ "$how" = DIE ] || [ "$status" -le 2 ] || die "$1, change $at failed: ended with $status: $(cat /dev/shm/said)"
	stopped=$((stopped + 1))
	return 1
}
# goes_on ARG...: terracectl succeeds
goes_on() { said=$(terracectl "$@" 2>&1 < /dev/null) || die "$how at change $at: then $*: $said"; }
nothing_left() {
	check_eq "$how at change $at: mappings" "$(dmsetup ls)" "No devices found"
	check_eq "$how at change $at: volumes" "$(terracectl list)" ""
}
blank() { for d in fast slow third; do dd if=/dev/zero of=/dev/ram/$d bs=1M count=2 oflag=direct status=none; done; }
works() {
	dd if=/dev/mapper/db of=/dev/null bs=1M count=1 iflag=direct status=none || die "$how at change $at: /dev/mapper/db cannot be read"
	terracectl status db > /dev/null || die "$how at change $at: no status"
}
# each OPERATION LEAST [SHOWN]: stops OPERATION at each change, in both ways, until it is not reached any more; of the first SHOWN, at
# every eighth
each() {
	local operation=$1 shown=${3-0}
	[[ " $operations " == *" $operation "* ]] || return 0
	for how in ${HOW-DIE FAIL}; do
		stopped=0
		for ((at = ${FIRST-1}; ; at += at < shown ? 8 : 1)); do
			"before_$operation"
			if stops "$how" "$at" "${call[@]}"; then break; fi
			"after_$operation"
			echo "$operation: $how at change $at"
		done
		"after_$operation"
		echo "$operation: $how at $stopped changes"
		[ "$stopped" -ge "$2" ] || [ "${FIRST-}" ] || die "$operation has only $stopped changes"
	done
	pass "$operation"
}

# ---- create: the same call begins again, or activate goes on, as is said; remove takes it back
before_create() { blank; call=(create db "${tiers[@]}" --yes); }
after_create() {
	if [ $((at % 4)) = 3 ] && [ "$(terracectl list)" ]; then
		goes_on remove --yes db
		nothing_left
	fi
	if ! said=$(terracectl "${call[@]}" 2>&1) && [ ! -b /dev/mapper/db ]; then
		said+=$(terracectl activate db 2>&1) || die "$how at change $at: $said"
	fi
	works
	goes_on remove --yes db
	nothing_left
}
each create 20

# ---- convert: the same call goes on; remove takes it back; the source is never written
dd if=/dev/urandom of=/dev/shm/data bs=1M count=12 status=none
for hole in 3 6 9; do dd if=/dev/zero of=/dev/shm/data bs=1M seek=$hole count=1 conv=notrunc status=none; done
dd if=/dev/shm/data of="$source" bs=1M oflag=direct status=none
before_convert() { blank; call=(convert db --from "$source" "${tiers[@]}" --yes --force); }
after_convert() {
	cmp /dev/shm/data "$source" || die "$how at change $at: the source was written"
	if [ $((at % 5)) = 4 ] && [ "$(terracectl list)" ]; then
		goes_on remove --yes db
		nothing_left
		blank
	fi
	# what the device changed since is found
	if [ $((at % 5)) = 2 ] && ! cmp -s -n 4096 /dev/mapper/db /dev/shm/data; then printf x | dd of=/dev/shm/data bs=1 seek=$((4654321 + at)) conv=notrunc status=none; dd if=/dev/shm/data of="$source" bs=1M oflag=direct status=none; fi
	# a mount would find nothing before its end
	if [ -b /dev/mapper/db ] && ! cmp -s -n 4096 /dev/mapper/db /dev/shm/data; then
		! blkid -p /dev/mapper/db > /dev/null 2>&1 || die "$how at change $at: blkid knows what is not whole"
	fi
	goes_on "${call[@]}"
	cmp /dev/shm/data /dev/mapper/db || die "$how at change $at: not what the source has"
	works
	goes_on remove --yes db
	nothing_left
}
each convert 20 30

# ---- remove
before_remove() { blank; terracectl create db "${tiers[@]}" --yes > /dev/null; call=(remove --yes db); }
after_remove() {
	[ -z "$(terracectl list)" ] || goes_on remove --yes db
	nothing_left
	goes_on create db "${tiers[@]}" --yes --force
	works
	goes_on remove --yes db
}
each remove 5

# ---- add: the same call goes on
dd if=/dev/urandom of=/dev/shm/data bs=1M count=4 status=none
before_add() {
	blank
	terracectl create db "${tiers[@]}" --yes > /dev/null
	dd if=/dev/shm/data of=/dev/mapper/db bs=1M oflag=direct status=none
	call=(add db --yes --tier hdd=/dev/ram/third)
}
after_add() {
	# it may have been at its end already, with db-terrace still to be taken away
	said=$(terracectl "${call[@]}" 2>&1 < /dev/null) || [[ $said == *"is in use"* ]] || die "$how at change $at: then ${call[*]}: $said"
	check_eq "$how at change $at: tiers" "$(dmsetup table db | cut -d' ' -f3,5)" "terrace 3"
	check_eq "$how at change $at: mappings" "$(dmsetup ls | wc -l)" 1
	cmp -n $((4 << 20)) /dev/shm/data /dev/mapper/db
	works
	goes_on remove --yes db
	nothing_left
}
each add 15

# ---- replace, leave: the same call goes on, --undo goes back; the data are there all the time
need dm-mirror
same_start() { cmp -n $((4 << 20)) /dev/shm/data /dev/mapper/db || die "$how at change $at: $1: not the data that were written"; }
# may_end PATTERN ARG...: terracectl succeeds, or says that it cannot any more
may_end() {
	local pattern=$1
	shift
	said=$(terracectl "$@" 2>&1 < /dev/null) || [[ $said =~ $pattern ]] || die "$how at change $at: then $*: $said"
}
target() { dmsetup table db | cut -d' ' -f3; }
nowhere_else() {
	dmsetup mknodes > /dev/null
	check_eq "$how at change $at: $1: mappings" "$(dmsetup ls | wc -l)" 1
	if compgen -G '/run/terrace/*.relay' || compgen -G '/run/terrace/*.labels'; then die "$how at change $at: $1: files are left"; fi
}
before_replace() {
	blank
	terracectl create db --tier optane:slots:atomic=/dev/ram/fast --tier hdd:shelves:atomic=/dev/ram/third --size 16M --yes > /dev/null
	dd if=/dev/shm/data of=/dev/mapper/db bs=1M oflag=direct status=none
	call=(replace --yes --force --to /dev/ram/slow db 1)
}
after_replace() {
	if [ $((at % 2)) = 0 ]; then
		may_end "is not being replaced" replace --undo db 1
		if [[ $said != *"not being replaced"* ]]; then
			nowhere_else "--undo"
			same_start "--undo"
		fi
	fi
	may_end "/dev/ram/slow is in use: part of" "${call[@]}"
	nowhere_else "done"
	same_start "done"
	check_eq "$how at change $at: drives" "$(terracectl list --json | json "[t['device'].split('/')[-1] for t in o[0]['devices']]")" "['fast', 'slow']"
	goes_on remove --yes db
	nothing_left
}
each replace 20
before_leave() {
	blank
	terracectl create db "${tiers[@]}" --size 16M --yes > /dev/null
	dd if=/dev/shm/data of=/dev/mapper/db bs=1M oflag=direct status=none
	call=(leave --yes --force --to /dev/ram/third db)
}
after_leave() {
	if [ $((at % 2)) = 0 ]; then
		may_end "is not leaving|has left already|no volume 'db' is active" leave --undo db
		if [ "$(target)" = terrace ]; then
			nowhere_else "--undo"
			same_start "--undo"
		fi
	fi
	may_end "no volume 'db' is active" "${call[@]}"
	check_eq "$how at change $at: table" "$(target)" linear
	nowhere_else "done"
	same_start "done"
	dmr db
	nothing_left
}
each leave 20

# ---- set --keep: the old value or the new one; deactivate: active or not
terracectl create db "${tiers[@]}" --yes --force > /dev/null
kept() { terracectl set --json db commit_ms | json "o['commit_ms']['kept']"; }
before_keep() { terracectl set --keep db commit_ms 500 > /dev/null; call=(set --keep db commit_ms 700); }
after_keep() {
	[[ $(kept) =~ ^[57]00$ ]] || die "$how at change $at: kept $(kept)"
	goes_on "${call[@]}"
	check_eq "$how at change $at" "$(kept)" 700
}
each keep 2
before_deactivate() { [ -b /dev/mapper/db ] || terracectl activate db > /dev/null; call=(deactivate db); }
after_deactivate() { goes_on deactivate db; goes_on activate db; works; }
each deactivate 1

# ---- evacuate: the same call goes on, --undo takes it back; the data are there all the time
dd if=/dev/urandom of=/dev/shm/data bs=1M count=6 status=none
fast_blocks() { terracectl which --json db | json "sum(r['blocks'] for r in o if r['where'].startswith('fast'))"; }
same_data() { cmp -n $((6 << 20)) /dev/shm/data /dev/mapper/db || die "$how at change $at: not the data that were written"; }
before_evacuate() {
	dd if=/dev/shm/data of=/dev/mapper/db bs=1M oflag=direct status=none
	[ "$(fast_blocks)" -gt 1400 ] || die "$how at change $at: $(fast_blocks) blocks on the fast tier before it"
	call=(evacuate db 0)
}
after_evacuate() {
	same_data
	if [ $((at % 2)) = 0 ]; then
		goes_on evacuate db 0
		check_eq "$how at change $at: blocks on the fast tier" "$(fast_blocks)" 0
		same_data
	fi
	goes_on evacuate --undo db 0
	works
}
each evacuate 2
goes_on remove --yes db

# ---- repair: the same call begins again or finds it done; nothing that is good is lost
blank
terracectl create db "${tiers[@]}" --yes --force > /dev/null
dd if=/dev/shm/data of=/dev/mapper/db bs=1M oflag=direct status=none
goes_on deactivate db
# a copy of a label
dd if=/dev/urandom of=/dev/ram/slow bs=4k count=1 oflag=direct status=none
for d in fast slow; do dd if=/dev/ram/$d of=/dev/shm/$d.damaged bs=1M iflag=direct conv=sparse status=none; done
before_repair() {
	for d in fast slow; do dd if=/dev/shm/$d.damaged of=/dev/ram/$d bs=1M oflag=direct status=none; done
	call=(repair --in-place /dev/ram/fast /dev/ram/slow)
}
after_repair() {
	goes_on "${call[@]}"
	[[ $said == *"nothing lost"* ]] || die "$how at change $at: $said"
	goes_on activate db
	same_data
	goes_on deactivate db
}
each repair 5
