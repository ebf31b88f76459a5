#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The oracle finds each kind of damage in an image, and nothing wrong with a good one.
# host: timeout=600 build=oracle
set -eu -o pipefail
oracle=$TERRACE_TREE/build/oracle
image=$OUT/image ledger=$OUT/ledger
die() { echo "FAIL: $*" >&2; exit 1; }
trap 'echo "FAIL: line $LINENO: $BASH_COMMAND" >&2' ERR

run() { "$oracle" run --ledger "$ledger" --device "$image" --seed 5 --max-kb 64 --max-discard-kb 256 "$@"; }
# blocks whose ledger line matches a pattern
blocks() { "$oracle" show --ledger "$ledger" | grep -E "$1" | sed 's/[* ].*//'; }
put() { dd if="$1" of="$image" bs=4096 skip="$2" seek="$3" count=1 conv=notrunc status=none; }

# finds PATTERN --clean|--crash: the damage just done is found, and that block only
finds() {
	local said status=0
	said=$("$oracle" verify --keep --ledger "$ledger" --device "$image" "$2") || status=$?
	[ "$status" = 1 ] || die "'$1' not found ($2), exit status $status: $said"
	grep -qE "$1" <<< "$said" || die "wanted '$1' ($2), got: $said"
	grep -q ', 1 wrong' <<< "$said" || die "more than the damaged block ($2): $said"
	cp "$OUT/good" "$image"
}

truncate -s 16M "$image"
"$oracle" create --ledger "$ledger" --device "$image"
run --ops 300 --weights write=50,read=10,discard=5
cp "$image" "$OUT/old"
"$oracle" verify --ledger "$ledger" --device "$image" --clean
run --ops 400 --overlap 0 --weights write=50,read=10,discard=5,flush=0 --first 0 --blocks 2048
run --ops 1 --weights flush=1
run --ops 60 --overlap 0 --weights write=50 --first 1024 --blocks 1024
cp "$image" "$OUT/good"
"$oracle" verify --keep --ledger "$ledger" --device "$image" --clean
"$oracle" verify --keep --ledger "$ledger" --device "$image" --crash

first() { blocks "$1" | sed -n 1p; }
# rewritten since `old`, and the rewriting flushed; discarded since; as in `old`
rewritten=$(first '^[0-9]+\* now (2:\S+) crash \1$')
discarded=$(for b in $(blocks '^[0-9]+\* now zeros crash zeros$'); do
	cmp -s -n 4096 -i $((b * 4096)):0 "$OUT/old" /dev/zero || echo "$b"; done | sed -n 1p)
kept=$(first '^[0-9]+ now 1:\S+ crash')
for b in "$rewritten" "$discarded" "$kept"; do [ "$b" ] || die "the workload made no block for this test"; done

for how in --clean --crash; do
	put "$OUT/old" "$rewritten" "$rewritten"
	finds "block $rewritten .*(stale|lost)" "$how"
	put /dev/zero 0 "$rewritten"
	finds "block $rewritten .*lost: zeros" "$how"
	put "$OUT/good" "$kept" "$rewritten"
	finds "block $rewritten .*foreign" "$how"
	dd if="$OUT/old" of="$image" bs=512 skip=$((rewritten * 8)) seek=$((rewritten * 8)) count=3 conv=notrunc status=none
	finds "block $rewritten .*torn" "$how"
	printf x | dd of="$image" bs=1 seek=$((kept * 4096 + 1000)) conv=notrunc status=none
	finds "block $kept .*garbage" "$how"
	put "$OUT/old" "$discarded" "$discarded"
	finds "block $discarded .*(stale|lost)" "$how"
done

"$oracle" create --ledger "$OUT/other" --device "$image" --seed 99
status=0
"$oracle" verify --keep --ledger "$OUT/other" --device "$image" --clean > "$OUT/alien" || status=$?
[ "$status" = 1 ] || die "another test's data pass"
grep -q alien "$OUT/alien" || die "another test's data are not called so"

# an image of the flushed state is fine after a crash, and not after a clean stop
rm -f "$ledger" "$ledger.log"
truncate -s 0 "$image"
truncate -s 16M "$image"
"$oracle" create --ledger "$ledger" --device "$image"
run --ops 200 --weights write=50,discard=5
run --ops 1 --weights flush=1
cp "$image" "$OUT/flushed"
run --ops 100 --weights write=50,discard=5
cp "$OUT/flushed" "$image"
"$oracle" verify --keep --ledger "$ledger" --device "$image" --crash
status=0
"$oracle" verify --keep --ledger "$ledger" --device "$image" --clean > /dev/null || status=$?
[ "$status" = 1 ] || die "lost writes pass as a clean stop"

# where any value that the block ever had will do, an old one does, and another block's does not
"$oracle" verify --ledger "$ledger" --device "$image" --older
rewritten=$(/usr/bin/python3 -ISc 'import sys; data = open(sys.argv[1], "rb").read(); print(next(i for i in range(4000) if any(data[i * 4096:i * 4096 + 512])))' "$image")
dd if="$image" of="$image" bs=4096 skip="$rewritten" seek=$((rewritten + 1)) count=1 conv=notrunc status=none
status=0
"$oracle" verify --ledger "$ledger" --device "$image" --older > "$OUT/older" || status=$?
[ "$status" = 1 ] || die "another block's data pass as an older value: $(cat "$OUT/older")"
grep -q "block $((rewritten + 1)) .*foreign.*any value" "$OUT/older" || die "another block's data as an older value: $(cat "$OUT/older")"
printf '%s\n' "0 $((rewritten + 1))" "$((rewritten + 2)) 999999" > "$OUT/only"
"$oracle" verify --ledger "$ledger" --device "$image" --older --only "$OUT/only"

# a wrong block is found while the workload runs, too
cp "$OUT/flushed" "$image"
rm -f "$ledger" "$ledger.log"
"$oracle" create --ledger "$ledger" --device "$image"
status=0
run --ops 200 --weights read=1 > "$OUT/live" || status=$?
[ "$status" = 1 ] || die "reads of wrong blocks pass"
echo "ok: every damage found"
