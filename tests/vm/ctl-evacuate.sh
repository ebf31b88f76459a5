#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl evacuate empties any tier that has somewhere to go, while it is written to: slots to slots and to shelves, shelves to shelves and to slots, homes; killed, stopped or without power half way, nothing is lost and the same call goes on.
# vm: mode=functional cpus=1 memory=2G timeout=680
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"
need zram

disk() { echo "/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname vol)"; }
avoided() { cat "$(disk)/tune/avoid_tiers"; }
used() { cat "$(disk)/tier$1/used_blocks"; }
holds() { [ "$(used "$1")" -gt "$2" ] || die "tier $1 holds $(used "$1") blocks $3: $(vol_status)"; }
empty() { check_eq "blocks on tier $1 $2" "$(used "$1")" 0; }
seed=1
load() { seed=$((seed + 1)); oracle_run --seed $seed --ops "$1" --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 256; }
# evacuates TIER TO [ARG...]: while it is written to, and what is written then and later goes elsewhere
evacuates() {
	local tier=$1 to=$2
	shift 2
	start load 300
	says "^tier $tier, to tier $to: " evacuate "$@" vol "$tier"
	wait "$JOB" || die "the load failed"
	vol_message commit
	for ((i = 0; i < 50 && $(used "$tier"); i++)); do sleep 0.1; done
	empty "$tier" "after its evacuation"
}

vol_models 1 fast:48 warm:96 slow:512 cold:512
vol_format --size 80M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}" \
	--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[3]}"
vol_up commit_ms=100 janitor_high=1000 janitor_low=990 stream_kb=0
oracle_new
load 500
says " down" move --to 2 vol 0-4095	# packs as well, their indexes copied to tier 0
terracectl pin vol 8192-9215 > /dev/null
load 200
holds 0 1000 "before it"

# ---- a module without the tunable, which would have new data come while the old go: nothing moves
mkdir -p /dev/shm/older
mount --bind /dev/shm/older "$(disk)/tune"
vol_message commit
before=$(used 0)
why="volume 'vol' cannot be told to avoid tier 0 \(/sys/fs/terrace/.*/tune/avoid_tiers: No such file or directory\): is its module older than terracectl\?"
refuses 1 "$why" evacuate vol 0
refuses 1 "$why" evacuate --undo vol 0
umount "$(disk)/tune"
check_eq "blocks on tier 0 after that" "$(used 0)" "$before"
check_eq "avoided" "$(avoided)" 0
pass "an older module"

# ---- slots to slots, then both to shelves
evacuates 0 1
check_eq "avoided" "$(avoided)" 1
refuses 2 "tier 0 cannot take the blocks of tier 1: it is being evacuated as well" evacuate --to 0 vol 1
refuses 2 "tier 1 cannot take its own blocks" evacuate --to 1 vol 1
refuses 1 "tier 0 is to be left, and takes nothing" move --to 0 vol 0-1023
evacuates 1 2
empty 0 "after the next evacuation"
load 100
empty 0 "after more writes"
empty 1 "after more writes"
oracle_clean
says "" evacuate --undo vol 0
says "" evacuate --undo vol 1
check_eq "avoided" "$(avoided)" 0
pass "slots"

# ---- shelves to shelves, and back up
holds 2 1000 "before it"
evacuates 2 3 --to 3
evacuates 3 1 --to 1
check_eq "avoided" "$(avoided)" 12
oracle_clean
vol_down
vol_check --owners
vol_up commit_ms=100 janitor_high=1000 janitor_low=990 stream_kb=0
check_eq "avoided in another activation" "$(avoided)" 0
oracle_clean
pass "shelves"

# ---- killed, stopped, without power: each time with a write to the target under way
names=(fast warm slow cold)
# half_way TIER TO: begins; its first write to TO does not end before goes_on
half_way() {
	local at to=${names[$2]}
	at=$(vol_layout "$to" data)
	drive "$to" error add write "${at% *}" 0 count=1 status=ok hold
	start from_ram terracectl evacuate --to "$2" vol "$1" > /dev/shm/said 2>&1
	drive_wait_held "$to"
}
load 300
holds 1 1000 "before it"
half_way 1 2
kill -KILL -- "-$JOB"
drive slow release
kill_all "$JOB"
holds 1 100 "when it was killed"
check_eq "avoided by one that was killed" "$(avoided)" 2
says "^tier 1, to tier 2: " evacuate --to 2 vol 1
says "" evacuate --undo vol 1
load 200	# goes to the fastest
half_way 0 2
kill -INT -- "-$JOB"
drive slow release
if wait "$JOB"; then die "Ctrl-C did not end it: $(cat /dev/shm/said)"; fi
grep -q "interrupted: what was done stays done" /dev/shm/said || die "said $(cat /dev/shm/said)"
holds 0 100 "when it was stopped"
check_eq "avoided after Ctrl-C" "$(avoided)" 0
for pair in "0 2" "2 1"; do
	read -r tier to <<< "$pair"
	load 100
	half_way "$tier" "$to"
	evacuating=$JOB
	start load 1000
	sleep 0.5
	drive_cut fast
	drive "${names[to]}" release
	wait "$JOB" || true	# it ends with the drive; killed while it writes its ledger, it would leave none
	kill_all "$evacuating"
	dmr vol
	drive_revive fast
	vol_up commit_ms=100 janitor_high=1000 janitor_low=990 stream_kb=0
	oracle_crash
	holds "$tier" 100 "when the power came back"
	says "^tier $tier, to tier $to: " evacuate --to "$to" vol "$tier"
	vol_message commit
	for ((i = 0; i < 50 && $(used "$tier"); i++)); do sleep 0.1; done
	empty "$tier" "when the same call went on"
	oracle_clean
	says "" evacuate --undo vol "$tier"
done
vol_down
vol_check --owners
pass "killed, stopped, without power"

# ---- never a full volume while an avoided tier has room; and a tier that nothing can take
vol_up commit_ms=100 janitor_high=1000 janitor_low=990 avoid_tiers=14
dd if=/dev/urandom of=/dev/shm/data bs=1M count=80 status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
vol_message set avoid_tiers=255
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct conv=fsync status=none
cmp -n $((80 << 20)) /dev/shm/data "$VOL"
vol_message set avoid_tiers=0
says "." move --to 2 vol
refuses 1 "^pending: no room on the target|terracectl: pending: no room on the target" evacuate --to 0 vol 2
check_eq "avoided without room" "$(avoided)" 0
cmp -n $((80 << 20)) /dev/shm/data "$VOL"
vol_down
vol_check
for d in "${VOL_DRIVES[@]}"; do dmr "${d##*/}"; done
pass "no room"

# ---- homes: to shelves, to slots, and from shelves
mkzram csd 192
mkram quick 96
mkram bulk 512
VOL_DRIVES=(/dev/ram/quick /dev/ram/csd /dev/ram/bulk)
vol_format --size 64M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}"
vol_up commit_ms=100 janitor_high=1000 janitor_low=990 stream_kb=0
oracle_new
load 300
evacuates 0 1
holds 1 1000 "before it"
says "" evacuate --undo vol 0
evacuates 1 2
says "" evacuate --undo vol 1
evacuates 2 1
says "" evacuate --undo vol 2
evacuates 1 0 --to 0
oracle_clean
vol_down
vol_check
pass "homes"
