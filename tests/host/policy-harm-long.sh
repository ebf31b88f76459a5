#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# host/policy-harm with every load, over QLC and hard disks, for ten epochs of the governor.
# host: timeout=1500 long
export LOADS="uniform-read uniform-mixed uniform-write hotspot-read hotspot-mixed warm-mixed faint-mixed turns-mixed scan all-hot-read all-hot-mixed"
OPERATIONS=1000000 DRIVES="qlc hdd" exec "$(dirname "$0")/policy-harm.sh"
