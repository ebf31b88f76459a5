# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers for scripts that run inside the virtual machine; sourced, not run:
#
#	. "$TERRACE_TREE/tests/vm/lib.sh"
#
# load_terrace, load_drive   insert our modules with what they depend on
# need MODULE...             a kernel module, or the test is skipped
# need_cmd PROGRAM...        a program, or the test is skipped
# mkram NAME MB [SECTOR]     RAM-backed block device /dev/ram/NAME, discard on (SECTOR 4096)
# rmram NAME                 remove it
# mkzram NAME MB [ALGO]      zram device /dev/ram/NAME (a drive that compresses inside)
# dmc NAME TABLE             create a device-mapper device /dev/mapper/NAME (no udev in the guest)
# dmr NAME                   remove it
# sectors DEVICE             size in 512-byte sectors
# in_ram PROGRAM...          copy programs and libraries to RAM, so that running them reads no host file:
#                            host reads take random virtual time.  Then use the name_ wrappers.
# fio_ ARG...                fio from RAM
# start CMD...               run in the background as a process group of its own, $JOB
# kill_all JOB               kill it with all it started, and wait until nothing of it is left
# pass TEXT, die TEXT, skip TEXT
# counted N WHAT [SEED]      tests/run --made adds it up: cuts (power cuts recovered by the module) or faults; at the end, when
#                            nothing was wrong. SEED kept: with earlier runs' (default: $SEED)
# check_eq WHAT GOT WANTED   die unless equal
# expect_fail PATTERN CMD... the command must fail and say something matching PATTERN
# klog_expect REGEX          the kernel will say this, and must: not a complaint (Python regex, one line)
# klog_allow REGEX           the kernel may say this
# klog_has REGEX             has said it since the test began (grep -E)
#
# shellcheck shell=bash

set -eu -o pipefail
RAM=/dev/shm/bin
mkdir -p /dev/ram

die() { echo "FAIL: $*" >&2; exit 1; }
pass() { echo "ok: $*"; }
counted() { echo "counted: $1 $2, seed ${3:-${SEED:-1}}"; }
skip() { echo "skip: $*"; exit 77; }
trap 'echo "FAIL: line $LINENO of $0: $BASH_COMMAND" >&2' ERR
set -E

# ---- modules ----

need() {
	local m
	for m in "$@"; do modprobe -q "$m" || skip "kernel $(uname -r) has no module $m"; done
}

need_cmd() {
	local c
	for c in "$@"; do command -v "$c" >/dev/null || skip "$c is not installed"; done
}

# load_module FILE [PARAM=VALUE...]: insmod after the modules it depends on
load_module() {
	local file=$1 key value module wanted=()
	shift
	[ -e "$file" ] || die "$file is not built: make kmod drive"
	while read -r key value; do
		[[ $key = depends: || $key = softdep: ]] || continue
		for module in ${value//,/ }; do
			[[ $module = p*: || -d /sys/module/${module//-/_} ]] || wanted+=("$module")
		done
	done <<< "$(modinfo "$file")"
	# not all are there as modules: what cannot be done without, insmod will miss
	[ ${#wanted[@]} = 0 ] || modprobe -qa "${wanted[@]}" || true
	insmod "$file" "$@"
}

load_terrace() { load_module "$TERRACE_MODULES/kmod/dm-terrace.ko" "$@"; }
load_drive() { load_module "$TERRACE_MODULES/tests/drive/dm-drive.ko" "$@"; }

# ---- devices ----

mkram() {
	local name=$1 mb=$2 sector=${3:-4096} dir=/sys/kernel/config/nullb/$1 node
	modprobe configfs 2>/dev/null || true
	mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
	[ -d /sys/module/null_blk ] || modprobe null_blk nr_devices=0
	mkdir "$dir"
	echo "$mb" > "$dir/size"
	echo "$sector" > "$dir/blocksize"
	echo 1 > "$dir/memory_backed"
	echo 1 > "$dir/discard"
	echo 0 > "$dir/irqmode"		# complete at once
	echo 2 > "$dir/queue_mode"
	echo 1 > "$dir/submit_queues"
	echo 256 > "$dir/hw_queue_depth"
	echo 1 > "$dir/power"
	node=nullb$(cat "$dir/index")
	[ -e "/sys/block/$node" ] || node=$name	# newer kernels name the device after its folder
	echo none > "/sys/block/$node/queue/scheduler"
	ln -sf "/dev/$node" "/dev/ram/$name"
}

rmram() {
	rm -f "/dev/ram/$1"
	rmdir "/sys/kernel/config/nullb/$1"
}

mkzram() {
	local name=$1 mb=$2 algo=${3:-} n
	[ -e /sys/class/zram-control ] || modprobe zram num_devices=0
	n=$(cat /sys/class/zram-control/hot_add)
	[ -z "$algo" ] || echo "$algo" > "/sys/block/zram$n/comp_algorithm"
	echo "${mb}M" > "/sys/block/zram$n/disksize"
	ln -sf "/dev/zram$n" "/dev/ram/$name"
}

dmc() {
	[ -d /sys/module/dm_mod ] || modprobe dm_mod
	DM_DISABLE_UDEV=1 dmsetup create "$1" --table "$2"
}

dmr() { DM_DISABLE_UDEV=1 dmsetup remove "$1"; }

sectors() { blockdev --getsz "$1"; }

# ---- programs in RAM ----

in_ram() {
	local prog path lib progs=()
	local -A libs=()
	[ -d "$RAM/lib" ] || mkdir -p "$RAM/lib"
	for prog in "$@"; do
		path=$(command -v "$prog") || die "$prog is not installed"
		[ ! -e "$RAM/$prog" ] || continue
		progs+=("$path")
		while read -r _ _ lib _; do		# what ldd does, without its shell
			[[ $lib != /* || -e $RAM/lib/${lib##*/} ]] || libs[${lib##*/}]=$lib
		done <<< "$(LD_TRACE_LOADED_OBJECTS=1 "$path")"
	done
	[ ${#progs[@]} = 0 ] || cp -L "${progs[@]}" "$RAM/"
	[ ${#libs[@]} = 0 ] || cp -L "${libs[@]}" "$RAM/lib/"
}

# from_ram PROGRAM ARG...
from_ram() {
	local prog=$1
	shift
	LD_LIBRARY_PATH=$RAM/lib "$RAM/$prog" "$@"
}

fio_() {
	[ -x "$RAM/fio" ] || in_ram fio
	from_ram fio "$@"
}

# ---- background jobs ----

start() {
	set -m
	"$@" &
	export JOB=$!
	set +m
}

kill_all() {
	kill -KILL -- "-$1" 2> /dev/null || true
	wait "$1" 2> /dev/null || true
	while kill -0 -- "-$1" 2> /dev/null; do sleep 0.1; done
}

# ---- judging ----

check_eq() { [ "$2" = "$3" ] || die "$1: got '$2', wanted '$3'"; }

expect_fail() {
	local pattern=$1 said
	shift
	if said=$("$@" 2>&1); then die "should have failed: $*"; fi
	[[ $said =~ $pattern ]] || grep -qE -e "$pattern" <<< "$said" || die "$* failed, but said '$said' instead of '$pattern'"
}

klog_expect() { echo "$1" >> /run/vm/klog-expect; }
klog_allow() { echo "$1" >> /run/vm/klog-allow; }
klog_has() { grep -qE -e "$1" <<< "$(dmesg)"; }	# (a pipe that grep leaves early is an error)
