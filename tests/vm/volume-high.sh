#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Places behind the second terabyte of a tier, which need more than 32 bits: on slots, homes, shelves and in packs, also when tiers grow across it under load, every block is found, over evictions, power cuts and stops.
# vm: mode=functional memory=3G timeout=300 build=oracle,orders,hand
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-2}
ORDERS=${ORDERS:-60}
T=$((1 << 20))			# MiB
EDGE=32768			# chunk of a tier, or shelf, with the first such place
FAR=270000			# behind 16 TiB: the block's number has more than 32 bits as well
REGION=$((2 * T / 4 - 8))	# of the volume, where the oracle works: half of its homes are high
REGIONS=16
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
dmsetup() { from_ram dmsetup "$@"; }

# the tiers in their order; all but the first end in front of the border
for drive in fast:16 wide:$((2 * T - 64)) home:$((2 * T - 8)) slow:$((2 * T - 128)) meta:20480; do
	mkdrive "${drive%:*}" ram "${drive#*:}" lbs=4096 group=pc
done
VOL_DRIVES=(/dev/mapper/{fast,wide,home,slow,meta})
vol_format --tier "optane:slots:atomic=/dev/mapper/fast" --tier "nvme:slots:atomic=/dev/mapper/wide" --tier "csd:home:atomic=/dev/mapper/home" \
	--tier "hdd:shelves:atomic=/dev/mapper/slow" --meta /dev/mapper/meta --mirror none --journal 4M --size $((2 * T + 32))M

load_terrace
load_module "$TERRACE_MODULES/tests/hand/terrace-hand.ko"
# lead CHUNK SHELF: from where on tier 1, and tier 3, look for room when they next do
lead() { echo "0,$1,0,$2" > /sys/module/terrace_hand/parameters/first; FIRST_SHELF=$2; }

# the part of the volume that the oracle knows
VOL=/dev/mapper/part
up() {
	vol_up stream_kb=1024 commit_ms=100 janitor_high=800 janitor_low=600
	dmc part "0 $((REGIONS * 8192)) linear /dev/mapper/vol $((REGION * 8192))"
}
down() { dmr part; vol_down; }
power_cut() {
	drive_cut fast
	kill_all "$1"
	dmr part
	dmr vol
	drive_revive fast
}
give_orders() { from_ram orders /dev/terrace/vol random "$1" "$2" $REGIONS region=$REGION tier_up=0-1 tier_down=2-3 shelves="$FIRST_SHELF+2" > /dev/shm/orders 2>&1; }
load() { oracle_run --seed "$1" --ops "$2" --threads 2 --depth 8 --max-kb 128 --hot 30 --max-discard-kb 1024; }

# settled JOB: the orders have all come to their end
settled() {
	wait "$1" || { cat /dev/shm/orders; die "an order failed"; }
	cat /dev/shm/orders
}
ask() { from_ram orders /dev/terrace/vol "$@" > /dev/shm/order || die "orders $*: $(cat /dev/shm/order)"; }
# letters CHARACTER BLOCKS; put BLOCK CHARACTER BLOCKS; holds BLOCK CHARACTER BLOCKS WHAT
letters() { head -c $(($2 * 4096)) /dev/zero | tr '\0' "$1"; }
put() { letters "$2" "$3" | dd of=/dev/mapper/vol bs=$(($3 * 4096)) iflag=fullblock oflag=direct,seek_bytes seek=$(($1 * 4096)) status=none; }
holds() {
	dd if=/dev/mapper/vol bs=$(($3 * 4096)) iflag=direct,skip_bytes skip=$(($1 * 4096)) count=1 status=none |
		cmp -n $(($3 * 4096)) - <(letters "$2" "$3") || die "$4 is lost"
}
# highs REGIONS: of the stopped volume, blocks and packs whose places are high: "SLOTS HOMES LOOSE PACKS FAR"
highs() {
	terracectl dump map --range "$1" "${VOL_DRIVES[@]}" > /dev/shm/map
	awk '{ split("", f); for (i = 2; i <= NF; i++) { split($i, w, "="); f[w[1]] = w[2] } }
		$1 == "run" && f["place"] + f["blocks"] > 2 ^ 29 { n[f["tier"]] += f["blocks"] }
		$1 == "pack" && f["place"] >= 2 ^ 29 { packs++ }
		f["place"] >= 2 ^ 32 { far++ }
		END { print n[1] + 0, n[2] + 0, n[3] + 0, packs + 0, far + 0 }' /dev/shm/map
}

# ---- all below the border: no region in memory has room for more than 32 bits ----

lead $((EDGE - 2)) $((EDGE - 5))
up
oracle_new "$SEED"
load $((SEED + 100)) 200
ask sweep $REGION 4 append tier_down=2
# and for later: in a pack, loose, on slots
vol_message set avoid_tiers=7
put 1024 l 64
vol_message set avoid_tiers=1
put 0 p 64
put 2048 w 64
ask move 0 append tier_down=3 codec=lz4

# ---- the tiers grow across it under load ----

grow_drive() { redrive "$1" ram "$2" lbs=4096 group=pc; }
lead $EDGE $EDGE
load $((SEED + 101)) 250 &
loaded=$!
grow_drive wide $((2 * T + 512))
grow_drive home $((2 * T + 512))
grow_drive slow $((18 * T))
for tier in 1 2 3; do vol_message grow_tier $tier; done
give_orders "$ORDERS" $((SEED * 100 + 101)) || { cat /dev/shm/orders; die "an order failed"; }
wait $loaded
cat /dev/shm/orders
vol_message set avoid_tiers=3	# new blocks of the same regions go home
load $((SEED + 102)) 100
down
vol_check
read -r _ homes _ <<< "$(highs $REGION-$((REGION + REGIONS - 1)))"
((homes > 100)) || die "of what was written while the tiers grew $homes blocks are at home behind the border"
pass "grown under load, $homes blocks at home behind the border"

# ---- regions that have no high place get one, in each way that there is ----

lead $EDGE $EDGE
up
put 3072 f 64			# to a small tier, from where the janitor moves it to a shelf
vol_message set avoid_tiers=4
vol_message set janitor_low=0
vol_message set janitor_high=1
vol_message commit
for ((i = 0; i < 100; i++)); do
	used=$(vol_tier 0 used)
	[ "${used%/*}" != 0 ] || break
	sleep 0.1
done
ask move 0 raise tier_up=1 up=all
vol_message set avoid_tiers=1
put 2112 n 64
ask move $((EDGE - 5)) clean tier_down=3
down
vol_check
check_eq "high places of 64 that were raised, swept, written, moved each: slots homes loose packs far" "$(highs 0-3)" "128 0 128 0 0"
lead $EDGE $((EDGE - 1))
up
holds 0 p 64 "what was raised to a high place"
holds 1024 l 64 "what was swept to a high place"
holds 2048 w 64 "what lies beside a new block at a high place"
holds 2112 n 64 "what was written to a high place"
holds 3072 f 64 "what the janitor moved to a high place"
pass "regions without high places got them by a raise, a cleaning, a write, the janitor"

# ---- evicted and loaded, cut, stopped; shelves behind 16 TiB as well ----

for ((step = 0; step < STEPS; step++)); do
	((step % 2 == 0)) || vol_message set avoid_tiers=3
	start give_orders "$ORDERS" $((SEED * 100 + step))
	load $((SEED + step)) 200
	settled "$JOB"
	vol_message checkpoint
	vol_message evict
	oracle_clean --touched --sample 8
	start give_orders "$ORDERS" $((SEED * 100 + 50 + step))
	load $((SEED + 50 + step)) 150
	power_cut "$JOB"
	vol_check
	lead $EDGE $((step % 2 ? EDGE - 1 : FAR))	# what comes next
	up
	oracle_crash
done
down
vol_check
read -r slots homes loose packs far <<< "$(highs $REGION-$((REGION + REGIONS - 1)))"
for count in slots:100 homes:200 loose:200 packs:5 far:10; do
	name=${count%:*}
	((${!name} >= ${count#*:})) || die "high places: $slots blocks on slots, $homes on homes, $loose loose, $packs packs; $far runs and packs behind 16 TiB; too few $name"
done
up
while read -r shelf; do
	ask move "$shelf" clean tier_down=3
done < <(awk '{ for (i = 2; i <= NF; i++) if (sub(/^place=/, "", $i) && $i + 0 >= 2 ^ 32) print int($i / 16384) }' /dev/shm/map | sort -u)
oracle_clean
down
vol_check
check_eq "far places on shelves that were cleaned" "$(highs $REGION-$((REGION + REGIONS - 1)) | awk '{ print $5 }')" 0
pass "$slots blocks on slots, $homes on homes, $loose loose, $packs packs found after $STEPS evictions and power cuts; $far runs and packs behind 16 TiB cleaned"
