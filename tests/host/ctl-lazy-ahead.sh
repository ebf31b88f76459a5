#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A superblock of a lazy mirror that says that there are more records in its pages than in the primary's, which it follows: terracectl check names it, and salvage and repair lose nothing by it. They would take every block for outdated.
# host: timeout=300 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

for damage in lazy-ahead lazy-older-ahead; do
	for stop in "--clean --between 0 --after 0" "--between 20 --after 60"; do
		new_images fast 256M slow 1G
		"$ctl" format --tier nvme=fast --tier hdd=slow > /dev/null
		# shellcheck disable=SC2086 # words
		./image $stop --break $damage fast slow > where
		expect 1 "^problem: slow: superblock copy [01] \(meta block [01]\): the lazy mirror has records up to 10[0-9]+ in its pages, the primary up to [0-9]+$" "$ctl" check fast slow
		expect 0 " 0 lost" "$ctl" salvage --dry-run fast slow
		expect 0 "nothing lost" "$ctl" repair --dry-run fast slow
	done
done
