#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The power goes at random writes, flushes and FUAs, in recovery too, with whole and with torn blocks: what was promised is there.
# vm: mode=functional memory=3G timeout=1000 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}		# another seed, other cuts
LIMIT=${LIMIT:-40}	# seconds, shared by the phases
LEAST=${LEAST:-16}		# cuts; fewer is a failure: something hangs or crawls
MB=(64 320)		# small, so that the journal wraps and the fast drive overflows
cuts=0
# ORDERS=1: orders of every mode run while the power goes (crash/volume-powercut-orders); few regions, so that these have blocks
beside=() ops=60 TALLY=/dev/shm/tally
if [ "${ORDERS:-}" ]; then
	PATH=$TERRACE_TREE/build:$PATH in_ram orders
	ops=300
	beside=(--blocks 24576 --beside "LD_LIBRARY_PATH=$RAM/lib exec $RAM/orders /dev/terrace/vol random 1000000 \$SEED 24 tier_down=1 shelves=5 batch=4 tally=$TALLY >> /dev/shm/orders 2>&1")
fi

# setup DRIVE-PARAMS FORMAT-WORD: new drives, formatted
setup() {
	# shellcheck disable=SC2086 # a list
	vol_drives "${MB[@]}" $1 seed="$SEED"
	vol_format --tier "optane:slots:$2=${VOL_DRIVES[0]}" --tier "hdd:shelves:$2=${VOL_DRIVES[1]}" --journal 1M
	vol_up
	oracle_new "$SEED"
	vol_down
}

# cut SECONDS OPTION...: cut after cut; in CUTS_SAID what came of it
cut() {
	local seconds=$1 status=0
	shift
	oracle cuts --ledger "$LEDGER" --device "$VOL" --volume vol --table "$(vol_table "$@")" --drives fast,slow --ops $ops --suspend "${beside[@]}" \
		--check "LD_LIBRARY_PATH=$RAM/lib $RAM/terracectl check --full ${VOL_DRIVES[*]} > /dev/shm/checked 2>&1" \
		--seconds "$seconds" --seed "$SEED" > /dev/shm/cuts 2>&1 || status=$?
	CUTS_SAID=$(cat /dev/shm/cuts)
	return $status
}

# what helps to find out why
keep_evidence() {
	echo "$CUTS_SAID"
	tail -40 /dev/shm/checked || true
	dmr vol 2> /dev/null || true
	cp "$LEDGER" "$LEDGER.log" /dev/shm/checked "$OUT/" || true
	dd if="${VOL_DRIVES[0]}" of="$OUT/fast.img" bs=1M conv=sparse status=none || true
	dd if="${VOL_DRIVES[1]}" of="$OUT/slow.img" bs=1M conv=sparse status=none || true
}

# phase NAME PERCENT DRIVE-PARAMS FORMAT-WORD OPTION...
phase() {
	local name=$1 seconds=$((LIMIT * $2 / 100)) n
	setup "$3" "$4"
	shift 4
	cut "$seconds" "$@" || { keep_evidence; die "$name"; }
	n=$(sed -n 's/^oracle: \([0-9]*\) cuts,.*/\1/p' <<< "$CUTS_SAID")
	cuts=$((cuts + n))
	dmr vol
	vol_check
	rmdrive fast
	rmdrive slow
	pass "$name: ${CUTS_SAID#oracle: }"
}

# Drives that lie, first: the test must notice.
lies() {
	setup "lie_flush=on lie_fua=on" atomic
	if cut 60; then die "nothing noticed that the drives ignore flushes: $CUTS_SAID"; fi
	grep -q BROKEN <<< "$CUTS_SAID" || die "drives that ignore flushes: $CUTS_SAID"
	pass "drives that ignore flushes are noticed: $(grep -m 1 BROKEN <<< "$CUTS_SAID")"
	dmr vol 2> /dev/null || true
	rmdrive fast
	rmdrive slow
}

load_terrace
[ "${ORDERS:-}" ] || lies

phase "blocks written whole, in place" 30 "atom=4096" atomic stream_kb=256
phase "no volatile cache" 20 "atom=4096 cache=off" atomic stream_kb=256 commit_ms=60000
phase "torn at 512 bytes, out of place" 25 "atom=512" noatomic stream_kb=256
phase "unflushed writes in order, option atomic=no" 25 "atom=512 reorder=off" atomic atomic=no:0 atomic=no:1 commit_ms=50
pass "$cuts cuts"
counted "$cuts" cuts
[ "$cuts" -ge "$LEAST" ] || die "only $cuts cuts in $LIMIT seconds"
