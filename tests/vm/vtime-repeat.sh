#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two virtual-time runs of one fio job differ by less than 0.1 %, whatever else this machine does.
# host: timeout=600
# debug-kernel: not, virtual time measures the product
# shellcheck disable=SC2016 # the guest expands it
. "$TERRACE_TREE/tests/host/lib.sh"

# Some runs take two or three milliseconds more (the host decides when something is there), and fio rounds to
# whole ones: a run must be long enough for that not to matter.
measure() {
	scripts/vm --memory 1G --out "$OUT/$1" vtime -- bash -c '
		. "$TERRACE_TREE/tests/vm/lib.sh"
		mkram a 128
		fio_ --name=mixed --rw=randrw --filename=/dev/ram/a --direct=1 --ioengine=io_uring --bs=4k --iodepth=8 \
			--norandommap --randrepeat=0 --randseed=7 --size=127m --io_size=3g \
			--output-format=json --output=/dev/shm/mixed.json
		cp /dev/shm/mixed.json "$OUT/"' > "$OUT/$1.log" 2>&1 || { cat "$OUT/$1.log"; die "run $1 failed"; }
}
measure a & a=$!
measure b & b=$!
# the load that must not matter
timeout 20 sh -c 'while :; do :; done' || true
wait $a && wait $b

python3 - "$OUT" <<'PY'
import json, sys
worst = 0
jobs = [json.load(open(f'{sys.argv[1]}/{run}/mixed.json'))['jobs'][0] for run in 'ab']
for side in 'read', 'write':
    for what, figure in (('IOPS', lambda io: io['iops']), ('mean latency ns', lambda io: io['lat_ns']['mean'])):
        x, y = (figure(job[side]) for job in jobs)
        diff = abs(x - y) / x * 100
        worst = max(worst, diff)
        print(f'{side:10} {what:16} {x:12.1f} {y:12.1f}  {diff:.4f} %')
sys.exit(worst >= 0.1)
PY
