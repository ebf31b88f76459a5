#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# RALT tracks 100 M blocks, 5 % of them hot, in less than 48 MiB, and survives kill -9 in the middle of an eviction
#
# host: timeout=3600 long alone
set -eu
cd "$(dirname "$0")/../.."
# needs 4 GB: 1.8 GB of runs, twice during the largest merge
where=/tmp
[ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)" -gt 6000000 ] 2>/dev/null && where=/dev/shm
work=$(mktemp -d $where/policy-ralt.XXXXXX)
trap 'rm -rf "$work"' EXIT
tests/replay/build "$work/bin"
mkdir "$work/ralt"
"$work/bin/ralt-memory" "$work/ralt" 100000000 0.05 48
