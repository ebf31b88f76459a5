#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is hot goes up, each way by the load it is for: by flush, in an epoch once the hotspot has moved, by merges that meet it; hot blocks stay when room is made.
# vm: mode=vtime memory=2G timeout=900 build=daemon,orders
# shellcheck disable=SC2034,SC2086,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
REGIONS=16	# of 1024 blocks
COMPACTED="10 11 12 13"

# configured LINE...: each way up is shut unless LINE... open it
configured() { conf_unhindered admit.min_accesses=100 admit.fill=0 "$@"; }
NO_FLUSH=(cache_blocks=4096 flush.run_blocks=1048576)	# judged after so many slow reads, of which there are fewer
NO_EPOCH=epoch.min_epoch_ops=1000000

at_least() { [ "$(number "$1")" -ge "$2" ]; }
counter() { cat /sys/fs/terrace/*/"$1"; }
fast_of() {	# REGION: its blocks on the fast tier
	local word
	for word in $(ask show "$1"); do
		[[ $word != fast=* ]] || echo "${word#*=}"
	done
}
# each block by a read of its own
read_blocks() { dd if="$VOL" of=/dev/null bs=4k skip=$(($1 * 1024 + $2)) count="$3" iflag=direct status=none; }
write_blocks() { dd if=$DATA of="$VOL" bs=4k skip=$(($1 * 1024 + $2)) seek=$(($1 * 1024 + $2)) count="$3" oflag=direct conv=notrunc status=none; }
# nobody senses it
same() { cmp -n $((REGIONS << 22)) $DATA "$VOL" || die "data differ $*"; }
# ways FLUSH COMPACTION EPOCH: by which ways blocks have gone up, yes or no
ways() {
	local way
	for way in flush compaction epoch; do
		case $1 in
		yes)	at_least promoted_by_${way}_blocks 1 || die "none was promoted by $way" ;;
		no)	check_eq "promoted by $way" "$(number promoted_by_${way}_blocks)" 0 ;;
		esac
		shift
	done
	check_eq "failed orders" "$(number failed)" 0
}

# half random, half zeros: packs gain
for ((i = 0; i < REGIONS * 2; i++)); do head -c 1M /dev/urandom; head -c 1M /dev/zero; done > $DATA
vol_ram 32 512
vol_format
vol_up stream_kb=0 janitor_high=1000 janitor_low=990 heat_sample=1
# all below
for ((r = 0; r < REGIONS; r++)); do
	write_blocks $r 0 1024
	order $r append tier_down=1 codec=lz4
	sleep 1
done
check_eq "blocks of region 3 on the fast tier" "$(fast_of 3)" 0

# ---- slow reads of the same half region: by flush; what was read once stays below ----
configured $NO_EPOCH
daemon_start
read_blocks 9 0 384
flushed() { read_blocks 3 0 512; at_least promoted_by_flush_blocks 450; }
until_ "the hot half of region 3 goes up by flush" flushed
ways yes no no
check_eq "blocks of region 9 on the fast tier" "$(fast_of 9)" 0
slow=$(counter tier1/reads)
read_blocks 3 0 512
slow=$(($(counter tier1/reads) - slow))
[ $slow -le 62 ] || die "$slow of 512 reads are still slow"
daemon_stop
same "after the flush"
pass "by flush: $(fast_of 3) blocks, of the next 512 reads $slow are slow"

# ---- the hotspot moves, and is too small for a run: an epoch finds it ----
configured "${NO_FLUSH[@]}" epoch.min_epoch_ops=500 epoch.cool_down_ops=0
daemon_start
moved() { read_blocks 6 300 300; at_least promoted_by_epoch_blocks 270; }
until_ "the new hotspot goes up in an epoch" moved
ways no no yes
check_eq "blocks of region 9 on the fast tier" "$(fast_of 9)" 0
daemon_stop
same "after the epoch"
pass "by epoch: $(fast_of 6) blocks"

# ---- room: merges bring up the hot blocks they meet, and leave those that are there ----
for r in $COMPACTED; do write_blocks "$r" 256 768; done
configured "${NO_FLUSH[@]}" $NO_EPOCH msc.append_debt=4
daemon_start
for ((i = 0; i < 8; i++)); do
	for r in $COMPACTED; do
		read_blocks "$r" 0 64
		read_blocks "$r" 256 256
	done
done
ways no no no
check_eq "blocks kept so far" "$(number retained_blocks)" 0
sed -i '/^msc.append_debt/a watermark.high=0.4\nwatermark.low=0.35' $CONF
kill -HUP $daemon
room() {
	local used all
	IFS=/ read -r used all <<< "$(vol_tier 0 used)"
	[ $((used * 100)) -le $((all * 36)) ] && [ "$(number under_way)" = 0 ]
}
until_ "room" room
ways no yes no
at_least promoted_by_compaction_blocks 120 || die "merges brought up only $(number promoted_by_compaction_blocks) blocks"
at_least retained_blocks 480 || die "only $(number retained_blocks) hot blocks were kept"
at_least demoted_blocks 1000 || die "only $(number demoted_blocks) blocks went down"
merged=0
for r in $COMPACTED; do
	[ "$(fast_of "$r")" = 320 ] && merged=$((merged + 1))
done
[ $merged -ge 2 ] || die "of $merged regions exactly the hot blocks are fast: $(for r in $COMPACTED; do ask show "$r"; done)"
slow=$(counter tier1/reads)
for r in $COMPACTED; do
	read_blocks "$r" 256 256
done
check_eq "slow reads of what was to stay" $(($(counter tier1/reads) - slow)) 0
pass "by compaction: $(number promoted_by_compaction_blocks) blocks; $(number retained_blocks) stayed, $(number demoted_blocks) went down"

daemon_stop
same "after the merges"
vol_down
vol_check
