#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Module, drive model, the allocator's hand and the BPF programs build for the other kernel line without a warning.
# host: timeout=1800
#
# OTHER= another series (6.12). What was built before is not built again, but what it
# had been warned about is (scripts/kbuild).
. "$TERRACE_TREE/tests/host/lib.sh"

OTHER=${OTHER:-6.12}
release=$(scripts/vm --print-kernel --kernel "$OTHER" 2> /dev/null) || skip "kernel $OTHER is not installed: scripts/setup --kernel $OTHER"
unset MAKEFLAGS MFLAGS MAKELEVEL
mirror=build/kernel/$release
for folder in kmod tests/drive tests/hand; do
	[ -e $folder/Kbuild ] || die "$folder/Kbuild is not there"
	[ ! -e "$mirror/$folder/.warned" ] || { find "$mirror/$folder" -name '*.o' -delete; rm "$mirror/$folder/.warned"; }
	scripts/kbuild "$release" $folder > "$OUT/said" 2>&1 || { tail -20 "$OUT/said"; die "$folder does not build for $release"; }
	if grep -E 'warning:|WARNING' "$OUT/said"; then die "$folder: warnings for $release"; fi
	echo "$folder: $(find "$mirror/$folder" -name '*.ko' | wc -l) module for $release"
done
# warnings are errors there (BPF_CFLAGS)
make BUILD="$OUT/bpf" KERNEL="$OTHER" bpf > "$OUT/said" 2>&1 || { tail -20 "$OUT/said"; die "bpf does not build with the types of $release"; }
nr=$(find "$OUT/bpf" -name '*.bpf.o' | wc -l)
[ "$nr" -gt 0 ] || die "no BPF program was built"
rm -rf "$OUT/bpf"
echo "ok: $nr BPF programs with the types of $release"
