# SPDX-License-Identifier: GPL-2.0-or-later
# Much at once on a volume whose third tier is shelves; sourced after tests/vm/volume.bash, with SECONDS_EACH set.
#
# messages MESSAGE...	for so many seconds, one after the other and again; prints how many
# orders_begin		random orders in the background; rounds of them are counted in /dev/shm/rounds
# orders_end		and no more; fails if one has failed
#
# shellcheck shell=bash disable=SC2119

PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup python3

messages() { from_ram python3 "$TERRACE_TREE/tests/vm/messages.py" "$VOL" "$SECONDS_EACH" "$@"; }

orders_begin() {
	echo 0 > /dev/shm/rounds
	(
		trap 'exit 0' TERM
		for ((round = 1; ; round++)); do
			from_ram orders /dev/terrace/vol random 20 $round 8 tier_down=2 shelves=6 > /dev/shm/orders 2>&1 || break
			echo $round > /dev/shm/rounds
		done
	) &
	orders=$!
}

orders_end() {
	kill "$orders" || { cat /dev/shm/orders; die "an order failed"; }
	wait "$orders"
}
