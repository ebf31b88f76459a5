#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make install puts rule and units in place; systemd and udev understand them, and a device with a label starts its volume's unit.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
ctl=$TERRACE_TREE/build/terracectl

release=none	# a kernel that nothing was built for
scripts/install install "$OUT/dest" /usr/local $release > "$OUT/installed"
for unit in terrace-activate@.service terrace-last-resort@.service terrace-last-resort@.timer; do
	file=$OUT/dest/lib/systemd/system/$unit
	[ -e "$file" ] || die "$unit is not installed: $(cat "$OUT/installed")"
	! grep -q @PREFIX@ "$file" || die "$unit was not filled in"
done
rule=$OUT/dest/lib/udev/rules.d/60-terrace.rules
grep -q '"/usr/local/sbin/terracectl label --udev' "$rule" || die "the rule calls another program"

if command -v systemd-analyze > /dev/null; then
	mkdir "$OUT/units"
	for unit in "$OUT"/dest/lib/systemd/system/terrace-*; do
		name=${unit##*/}
		sed "s,/usr/local/sbin,$TERRACE_TREE/build," "$unit" > "$OUT/units/${name/@/@8:0}"
	done
	said=$(systemd-analyze verify "$OUT"/units/* 2>&1 || true)
	! grep -E 'Unknown|Invalid|Failed to parse|not executable|Missing' <<< "$said" || die "the units have errors"
fi

# every label that is jumped to is there
while read -r label; do
	grep -q "^LABEL=\"$label\"" "$rule" || die "no label $label"
done < <(grep -o 'GOTO="[a-z_]*"' "$rule" | cut -d'"' -f2)

# ---- what the rule asks
truncate -s 128M "$OUT/fast"
truncate -s 320M "$OUT/slow"
"$ctl" format --name db --tier "nvme=$OUT/fast" --tier "hdd=$OUT/slow" > /dev/null
check_eq "properties" "$("$ctl" label --udev "$OUT/slow" | sed 's/=.*-.*/=UUID/' | tr '\n' ' ')" "TERRACE_VOLUME=UUID TERRACE_NAME=db TERRACE_TIER=1 "
expect 0 "tier 0 of volume 'db'" "$ctl" label "$OUT/fast"
expect 0 '"class": *"hdd"' "$ctl" label --json "$OUT/slow"
truncate -s 1M "$OUT/empty"
expect 1 "carries no Terrace label" "$ctl" label "$OUT/empty"
check_eq "nothing for udev" "$("$ctl" label --udev "$OUT/empty" 2>&1 || true)" ""
expect 2 "name one device" "$ctl" label
