#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A power cut takes exactly what was not promised: hundreds of cuts with an oracle, which is tested too.
# vm: mode=functional memory=2G timeout=600 build=drive-tools
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/drive/drive.sh"

drive_tools
powercut_() { from_ram powercut "$@"; }

# promise NAME PARAMS -- ORACLE-ARGS: a drive of these parameters keeps its promises
promise() {
	local params=()
	while [ "$1" != -- ]; do params+=("$1"); shift; done
	shift
	mkdrive d "${params[0]}" 64 "${params[@]:1}"
	powercut_ d "$@"
	rmdrive d
}

# lie PARAMS -- ORACLE-ARGS: the oracle must notice
lie() {
	local params=()
	while [ "$1" != -- ]; do params+=("$1"); shift; done
	shift
	mkdrive d "${params[0]}" 64 "${params[@]:1}"
	expect_fail "BROKEN PROMISE" powercut_ d "$@"
	rmdrive d
}

# --depth 1 where the oracle must know to the command what a flush covers
all=lost,torn,survived
promise ram -- --seed 1 --cuts 150 --need $all
promise ram -- --seed 2 --cuts 60 --depth 1 --need $all
promise ram atom=512 -- --seed 3 --cuts 60 --align 512 --atom 512 --need $all
promise ram atom=4096 -- --seed 4 --cuts 60 --align 512 --atom 4096 --need $all
promise ram atom=512 -- --seed 5 --cuts 60 --align 4096 --atom 512 --need $all
promise ram atom=16k -- --seed 6 --cuts 60 --align 4096 --atom 16384 --need $all
promise ram survive=0 tear=0 -- --seed 7 --cuts 60 --depth 1 --expect durable --need lost
promise ram survive=100 tear=0 -- --seed 8 --cuts 60 --expect newest
promise ram reorder=off -- --seed 9 --cuts 60 --prefix --depth 1 --need lost,survived
promise ram cache_size=64k -- --seed 10 --cuts 60 --need $all
promise ram cache=off -- --seed 11 --cuts 60
promise nvme-tlc cache=on -- --seed 12 --cuts 40 --need $all
promise optane -- --seed 13 --cuts 40
promise hdd ncq=32 -- --seed 14 --cuts 10 --no-discard --need lost
pass "promises kept"

lie ram lie_flush=on -- --seed 1 --cuts 50
lie ram lie_fua=on -- --seed 1 --cuts 50
lie ram atom=512 -- --seed 1 --cuts 50 --atom 4096
lie ram -- --seed 1 --cuts 50 --depth 1 --expect durable
lie ram -- --seed 1 --cuts 50 --expect newest
lie ram -- --seed 1 --cuts 50 --prefix
pass "the oracle notices drives that lie about flush, FUA, atomicity and order"
