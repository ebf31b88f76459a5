# SPDX-License-Identifier: GPL-2.0
# Drive models for scripts that run inside the virtual machine; sourced after
# tests/vm/lib.sh:
#
#	. "$TERRACE_TREE/tests/vm/lib.sh"
#	. "$TERRACE_TREE/tests/drive/drive.sh"
#
#	mkdrive fast optane 64			/dev/mapper/fast, 64 MiB
#	mkdrive slow hdd 1024 ncq=32 group=pc	with parameters of its own
#	drive slow arm flush 3 after		dmsetup message
#	drive_get slow seeks			one word of its status
#
# mkdrive NAME PRESET MB [KEY=VALUE...]	make a drive; loads the module if need be
# redrive NAME PRESET MB [KEY=VALUE...]	load a new table, contents stay
# rmdrive NAME				remove it
# drive NAME WORD...			send it a message
# drive_get NAME KEY			print one value of its status
# drive_stat NAME			print its status, one KEY=VALUE per line
# drive_limit NAME WORD			a queue limit as in /sys/block/…/queue/WORD
# drive_cut NAME, drive_revive NAME	power off and on (of its whole group)
# drive_wait_off NAME [SECONDS]		wait for an armed cut to come
# drive_wait_held NAME [N]		wait until N commands (1) are held by a fault with the word hold
# csd_used NAME				bytes in use inside the zram device /dev/ram/NAME
# csd_stored NAME			bytes the host stored in it
#
# Documentation/drive-model.md explains presets and parameters.
#
# shellcheck shell=bash

drive_table() {
	local name=$1 preset=$2 mb=$3
	shift 3
	echo "0 $((mb * 2048)) drive $name $preset $*"
}

mkdrive() {
	[ -d /sys/module/dm_drive ] || load_drive
	dmc "$1" "$(drive_table "$@")" 2> /dev/shm/mkdrive.err || {
		# the reason is in the kernel's log only
		echo "mkdrive $*: $(dmesg | sed -n 's/.*device-mapper: table: [^d]*drive: \(.*\) (-E[A-Z]*)$/\1/p' | tail -1)" >&2
		return 1
	}
}

redrive() {
	dmsetup load "$1" --table "$(drive_table "$@")" &&
	dmsetup suspend --noudevsync "$1" &&
	dmsetup resume --noudevsync --noudevrules "$1"
}

rmdrive() { dmr "$1"; }

drive() {
	local name=$1
	shift
	dmsetup message "$name" 0 "$*"
}

drive_stat() { dmsetup status --noflush "$1" | tr ' ' '\n' | grep '='; }

# without further processes: each costs a tenth of a second in the machine
drive_get() {
	local status word
	status=$(dmsetup status --noflush "$1")
	for word in $status; do
		[[ $word != "$2"=?* ]] || { echo "${word#*=}"; return; }
	done
	die "drive $1 has no status word $2"
}

drive_limit() { cat "/sys/block/$(dmsetup info -c --noheadings -o blkdevname "$1")/queue/$2"; }

drive_cut() { drive "$1" cut; }
drive_revive() { drive "$1" revive; }

drive_wait_off() {
	local i
	for ((i = 0; i < ${2:-10} * 10; i++)); do
		[ "$(drive_get "$1" state)" = off ] && return
		sleep 0.1
	done
	die "drive $1 did not lose its power"
}

drive_wait_held() {
	local i
	for ((i = 0; i < 300; i++)); do
		[ "$(drive_get "$1" held)" -lt "${2:-1}" ] || return 0
		sleep 0.1
	done
	die "drive $1 holds nothing (line ${BASH_LINENO[0]})"
}

# mm_stat: orig_data_size compr_data_size mem_used_total ...
csd_stat() { awk -v n="$2" '{ print $n }' "/sys/block/$(basename "$(readlink -f "/dev/ram/$1")")/mm_stat"; }
csd_stored() { csd_stat "$1" 1; }
csd_used() { csd_stat "$1" 3; }

# ---- measuring and judging ----

# drive_tools: copy the programs of make drive-tools to RAM
drive_tools() { PATH=$TERRACE_TREE/build/drive:$PATH in_ram powercut pace; }

# pace_ WORD NAME ARGS...: one figure (iops bw mean min max took) of what build/drive/pace prints
pace_() {
	local word=$1 name=$2 said figure
	shift 2
	said=$(from_ram pace "/dev/mapper/$name" "$@")
	for figure in $said; do
		[[ $figure != "$word"=* ]] || echo "${figure#*=}"
	done
}

# near WHAT GOT WANTED [PERCENT]: die unless within PERCENT (5); prints the comparison
near() {
	awk -v what="$1" -v got="$2" -v wanted="$3" -v tol="${4:-5}" 'BEGIN {
		off = wanted ? (got / wanted - 1) * 100 : 100
		printf "%-58s %14.0f wanted %14.0f  %+6.2f %%\n", what, got, wanted, off
		exit !(off <= tol && off >= -tol)
	}' || die "$1: off by more than ${4:-5} %"
}
