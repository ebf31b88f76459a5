# SPDX-License-Identifier: GPL-2.0-or-later
# Volumes for scripts that run inside the virtual machine; sourced after
# tests/vm/lib.sh. One volume at a time, /dev/mapper/vol on two drives.
#
# vol_ram FAST_MB SLOW_MB		RAM disks as drives: fast, no power cut
# vol_drives FAST_MB SLOW_MB [KEY=VALUE...]	drive models that lose power together
# vol_models SEED NAME:MB... [KEY=VALUE...]	the same, as many as there are names
# vol_format [ARG...]			terracectl format of them (default: optane + hdd, atomic)
# vol_table [OPTION...]			print the table line, with options
# vol_up [OPTION...], vol_down		create and remove it; vol_up loads the module
# vol_reload [OPTION...]		load a table, suspend, resume
# vol_check [ARG...]			terracectl check --full must find nothing
# vol_cut				power off; remove the volume; power on
# vol_cut_under JOB	the same while a job (see start) has the control device open
# vol_layout DRIVE data|super|journal|pages	print where its data, the superblocks, the journal, or its metadata pages, are: first sector and length (0: to the end)
# vol_damage REGION payload|header|index [BLOCK]	flip a bit of the region's newest pack: in its payload (that block), header, or copy of the header; prints the block of the tier
# vol_get WORD				print a value of the status line
# vol_tier N WORD			... of what it says of one tier
# vol_message WORD...			dmsetup message
# vol_waits JOB SECONDS WHAT [FILE]	until so long nothing new was written ($WRITTEN: blocks until then); dies of WHAT, with what FILE says, if the job ends
# terracectl ARG..., oracle ARG...	the programs, from RAM
# oracle_new [SEED]			a new ledger of the volume, which must hold zeros
# oracle_run, oracle_clean, oracle_crash ARG...	run; verify after a clean stop, after a crash
#
# shellcheck shell=bash disable=SC2119,SC2120

. "$TERRACE_TREE/tests/drive/drive.sh"

VOL=/dev/mapper/vol
LEDGER=/dev/shm/ledger
export VOL_DRIVES=()
VOL_TABLE=
PATH=$TERRACE_TREE/build:$PATH in_ram terracectl
# only tests that name it in build= use it
[ ! -x "$TERRACE_TREE/build/oracle" ] || PATH=$TERRACE_TREE/build:$PATH in_ram oracle
modprobe dm_mod

terracectl() { from_ram terracectl "$@"; }
oracle() { from_ram oracle "$@"; }

# ---- drives ----

vol_ram() {
	mkram fast "$1"
	mkram slow "$2"
	VOL_DRIVES=(/dev/ram/fast /dev/ram/slow)
}

vol_drives() {
	local fast=$1 slow=$2
	shift 2
	mkdrive fast ram "$fast" lbs=4096 group=pc "$@"
	mkdrive slow ram "$slow" lbs=4096 group=pc "$@"
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)
}

vol_models() {
	local seed=$1 word d params=()
	shift
	VOL_DRIVES=()
	for word; do [[ $word != *=* ]] || params+=("$word"); done
	for d; do
		[[ $d != *=* ]] || continue
		mkdrive "${d%:*}" ram "${d#*:}" lbs=4096 group=pc seed="$seed" "${params[@]}"
		VOL_DRIVES+=("/dev/mapper/${d%:*}")
	done
}

# ---- the volume ----

vol_format() {
	local said
	[ $# -gt 0 ] || set -- --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}"
	said=$(terracectl format --force --name vol "$@") || die "terracectl format $*: $said"
	VOL_TABLE=$(sed -n "s/^dmsetup create vol --table '\(.*\)'$/\1/p" <<< "$said")
	[ "$VOL_TABLE" ] || die "terracectl format printed no table: $said"
}

# 0 SIZE terrace META N {DEV CLASS KIND}... NOPTS OPT...
vol_table() {
	local words
	read -ra words <<< "$VOL_TABLE"
	local at=$((5 + 3 * words[4]))
	echo "${words[*]:0:at} $((${words[at]:-0} + $#)) ${words[*]:at+1} $*"
}

vol_up() {
	[ -d /sys/module/dm_terrace ] || load_terrace
	dmc vol "$(vol_table "$@")"
}

vol_down() { dmr vol; }

vol_reload() {
	dmsetup load vol --table "$(vol_table "$@")"
	dmsetup suspend --noudevsync vol
	dmsetup resume --noudevsync --noudevrules vol
}

vol_check() {
	local said
	said=$(terracectl check --full "$@" "${VOL_DRIVES[@]}" 2>&1) || { echo "$said"; die "terracectl check --full finds problems"; }
	echo "${said##*$'\n'}"
}

vol_cut() {
	drive_cut fast
	dmr vol
	drive_revive fast
}

# Cuts the power while a job gives orders: its calls end with the volume.
vol_cut_under() {
	drive_cut fast
	kill_all "$1"
	dmr vol
	drive_revive fast
}

vol_layout() {
	local said word
	local -A field
	said=$(terracectl dump super "${VOL_DRIVES[@]}" | grep -E "^(label|superblock) device=[^ ]*/$1 ") || die "$1 is no drive of the volume"
	for word in $said; do field[${word%%=*}]=${word#*=}; done
	if [ "$2" = data ]; then
		echo $((field[data_start] * 8)) 0
	elif [ "$2" = super ]; then
		echo $((field[meta_start] * 8)) $((field[journal_start] * 8))
	elif [ "$2" = journal ]; then
		echo $(((field[meta_start] + field[journal_start]) * 8)) $((field[journal_blocks] * 8))
	else
		echo $(((field[meta_start] + field[bitmap1_start] + field[bitmap_blocks]) * 8)) $(((field[meta_blocks] - field[bitmap1_start] - field[bitmap_blocks]) * 8))
	fi
}

vol_damage() {
	{ terracectl dump --json super "${VOL_DRIVES[@]}"; terracectl dump --json packs --range "$1" "${VOL_DRIVES[@]}" || true; } > /dev/shm/dumped
	/usr/bin/python3 -ISc '
import json, sys
text, decode, items = open("/dev/shm/dumped").read(), json.JSONDecoder().raw_decode, []
while text.strip():
    said, end = decode(text.strip())
    items += said["items"]
    text = text.strip()[end:]
start = {i["tier"]: i["data_start"] for i in items if i["item"] == "label"}
pack = max((i for i in items if i["item"] == "pack"), key=lambda i: i["id"])
of = "index_" if sys.argv[1] == "index" else ""
at = start[pack[of + "tier"]] + pack[of + "place"]
if sys.argv[1] == "payload":
    at += -(-pack["header_bytes"] // 4096) + int(sys.argv[2])
print(at - start[pack[of + "tier"]])
with open(sys.argv[3 + pack[of + "tier"]], "r+b", buffering=0) as drive:
    drive.seek(at * 4096)
    block = bytearray(drive.read(4096))
    block[100] ^= 4
    drive.seek(at * 4096)
    drive.write(block)
' "$2" "${3:-0}" "${VOL_DRIVES[@]}"
}

vol_status() { dmsetup status --noflush vol; }
# in the shell: programs are what takes time in an emulated machine
vol_get() {
	local said word
	said=$(vol_status)
	for word in $said; do
		[[ $word != "$1="?* ]] || { echo "${word#*=}"; return; }
	done
	die "status has no word $1: $said"
}
vol_tier() {
	local said word tier=
	said=$(vol_status)
	for word in $said; do
		[[ ! $word =~ ^([0-9]+): ]] || tier=${BASH_REMATCH[1]}
		[[ $tier != "$1" || $word != "$2="?* ]] || { echo "${word#*=}"; return; }
	done
	die "status has no word $2 of tier $1: $said"
}
vol_message() { dmsetup message vol 0 "$*"; }
vol_waits() {
	local same now
	WRITTEN=
	for ((same = 0; same < $2; )); do
		now=$(vol_get new)
		if [ "$now" = "$WRITTEN" ]; then same=$((same + 1)); else same=0; fi
		WRITTEN=$now
		sleep 1
		kill -0 "$1" 2> /dev/null || die "$3${4:+: $(cat "$4")}"
	done
}

# vol_map_pages DEVICE|FILE REGION: meta blocks' places on it that hold a page of that region, older ones included
vol_map_pages() {
	python3 - "$1" "$2" <<- 'PYTHON'
		import os, struct, sys
		disk, region, meta = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), 16	# geometry.h
		for block in range(meta, meta + 4096):
		    page = os.pread(disk, 4096, block * 4096)
		    magic, index, level = struct.unpack_from('<I4xQ18xB', page) if len(page) == 4096 else (0, 0, 0)
		    if magic == 0x50414d54 and index == region:
		        print(block)
	PYTHON
}

# ---- the oracle ----

oracle_new() {
	rm -f "$LEDGER" "$LEDGER.log"
	oracle create --ledger "$LEDGER" --device "$VOL" --seed "${1:-1}"
}

# what it did before, on a broken promise, is worth keeping
oracle_keep() {
	[ "$1" != 1 ] || cp "$LEDGER.log" "$LEDGER" "$OUT/" 2> /dev/null || true
	return "$1"
}

oracle_run() { oracle run --ledger "$LEDGER" --device "$VOL" "$@" || oracle_keep $?; }
oracle_clean() { oracle verify --ledger "$LEDGER" --device "$VOL" --clean "$@" || oracle_keep $?; }
oracle_crash() { oracle verify --ledger "$LEDGER" --device "$VOL" --crash "$@" || oracle_keep $?; }
