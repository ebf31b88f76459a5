#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A machine boots with systemd and udev: a volume whose devices are all there is active and mounted, one that lacks a tier comes up degraded and says so, and neither that nor no volume at all keeps the boot. terraced serves under systemd: ready, hardened, reloaded, killed, hung, stopped.
# host: timeout=2400 long build=daemon,kmod
. "$TERRACE_TREE/tests/host/lib.sh"
[ -x /lib/systemd/systemd ] || skip "systemd is not installed"
[ -x /lib/systemd/systemd-udevd ] || skip "udev is not installed"

# an index of the kernel's modules with ours
release=$(scripts/vm --print-kernel)
modules=$OUT/root/lib/modules/$release
mkdir -p "$modules/extra"
cp "/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$modules/"
ln -s "/lib/modules/$release/kernel" "$modules/kernel"
cp "build/kernel/$release/kmod/dm-terrace.ko" "$modules/extra/"
depmod -b "$OUT/root" "$release"
grep -q "^extra/dm-terrace.ko:" "$modules/modules.dep" || die "depmod: $(wc -l < "$modules/modules.dep") modules, not ours"

for what in ${WHAT:-whole degraded nothing serves}; do
	scripts/vm -t 500 -m 1G -o "$OUT/$what" -e MODULE_INDEX="$OUT/root" --append systemd.getty_auto=0 functional -- bash tests/host/boot-systemd.bash prepare "$what" > "$OUT/$what.said" 2>&1 ||
		die "$what: $(cat "$OUT/$what.said")"
	grep -q "^ok: $what" "$OUT/$what.said" || die "$what: $(cat "$OUT/$what.said")"
	grep "^booted in" "$OUT/$what.said" | sed "s/^/$what: /"
done
