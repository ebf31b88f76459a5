#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A device that is put back as it once was is refused, by name; one that was away is not, nor one that a cut left behind while it was stamped.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=scribble
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram scribble dd
for d in fast:128 slow:256 third:256; do mkram ${d%:*} ${d#*:}; done
VOL_DRIVES=(/dev/ram/fast /dev/ram/slow /dev/ram/third)
vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "hdd:shelves:atomic=/dev/ram/slow" \
	--tier "hdd:shelves:atomic=/dev/ram/third" --mirror none
whole=$VOL_TABLE

copy() { from_ram dd if="/dev/ram/$1" of="/dev/ram/$2" bs=1M iflag=direct oflag=direct status=none; }
use() {		# one more activation
	vol_up stream_kb=64 avoid_tiers=1
	dd if=/dev/urandom of="$VOL" bs=1M count=4 oflag=direct conv=fsync status=none
	SUM=$(dd if="$VOL" bs=1M count=4 iflag=direct status=none | md5sum)
	vol_down
}
opens() {	# WHAT
	vol_up
	check_eq "$1" "$(dd if="$VOL" bs=1M count=4 iflag=direct status=none | md5sum)" "$SUM"
	vol_down
	pass "$1"
}
# refused WHAT DEVICE WORD...
refused() {
	local what=$1 device=$2
	shift 2
	dmesg -C
	if vol_up "$@" 2> /dev/null; then die "$what: the volume was activated"; fi
	klog_has 'older copy of it' || die "$what: the log does not say what is wrong: $(dmesg)"
	said=$(terracectl check "$device" /dev/ram/fast /dev/ram/third 2>&1) && [ $# -eq 0 ] && die "$what: check finds nothing: $said"
	VOL_TABLE=$whole
	pass "$what"
}
klog_allow 'older copy'

use
mkram before 256
copy slow before
use
VOL_TABLE=${whole/\/dev\/ram\/slow/\/dev\/ram\/before}
refused "a tier as it was before the last activation" /dev/ram/before
VOL_TABLE=${whole/\/dev\/ram\/slow/\/dev\/ram\/before}
refused "… nor read-only" /dev/ram/before read_only
mkram head 128
copy fast head
use
use
VOL_TABLE=${whole/\/dev\/ram\/fast/\/dev\/ram\/head}
refused "the tier with the metadata as it was" /dev/ram/head
opens "the right devices"

# whoever was away is not old
VOL_TABLE=${whole/\/dev\/ram\/third/missing}
use
VOL_TABLE=$whole
opens "a tier that was away"

# what a cut leaves while the next activation is written to the labels: first each has its own
# number, then each has the others'
number=$(od -An -t u4 -j 208 -N 4 /dev/ram/fast | tr -d ' ')
from_ram scribble label 208 $((number + 1)) /dev/ram/fast
opens "a cut when one device had its stamp"
number=$((number + 2))
for d in fast slow third; do from_ram scribble label 208 $((number + 1)) /dev/ram/$d; done
from_ram scribble label 216 $((number + 1)) /dev/ram/third
opens "a cut when one device knew of the first"

# the admin takes the old one nevertheless
copy slow before
use
copy before slow
said=$(terracectl repair --in-place "${VOL_DRIVES[@]}" 2>&1) && die "repair takes an old copy: $said"
[[ $said = *"older copy"* ]] || die "repair does not say why: $said"
terracectl repair --in-place --accept-older "${VOL_DRIVES[@]}" || [ $? = 1 ]
vol_up
vol_down
vol_check
pass "an old copy that is accepted"
