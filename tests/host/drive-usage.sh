#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive preset that does not exist is refused in one line that names those that do.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"
[ -n "$(find build/kernel -path '*/tests/drive/dm-drive.ko' 2>/dev/null)" ] || make drive > "$OUT/make.log" 2>&1 || die "make drive failed: $OUT/make.log"

# shellcheck disable=SC2016 # the guest expands it
status=0 said=$(scripts/vm --memory 512M --out "$OUT/vm" functional -- '
	. "$TERRACE_TREE/tests/vm/lib.sh"
	. "$TERRACE_TREE/tests/drive/drive.sh"
	trap - ERR
	mkdrive d ram 16 && rmdrive d || exit 9
	mkdrive d floppy 16 || exit 3' 2>&1) || status=$?
check_eq "status" "$status" 3
check_eq "said" "$said" "mkdrive d floppy 16: Unknown preset (ram optane nvme-tlc qlc hdd hdd-simple hdd-7200 net)"
