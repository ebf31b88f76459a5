# SPDX-License-Identifier: GPL-2.0-or-later
# Much at once on a volume whose third tier is shelves; sourced after tests/vm/volume.bash, with SECONDS_EACH set.
#
# messages MESSAGE...	for so many seconds, or until it is enough, one after the other and again; prints how many
# orders_begin		random orders in the background; rounds of them are counted in /dev/shm/rounds
# at_once		while this much has not met: two rounds of orders, two steps. It is a slow machine if that takes
#			longer than those seconds, and they go on; call it before each $step
# enough		what sends messages may end
# orders_end		and no more; fails if one has failed
#
# shellcheck shell=bash disable=SC2119

PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup python3

messages() { from_ram python3 "$TERRACE_TREE/tests/vm/messages.py" "$VOL" "$SECONDS_EACH" /dev/shm/enough "$@"; }
enough() { touch /dev/shm/enough; }
at_once() {
	local rounds
	: "${begun:=$SECONDS}"
	read -r rounds < /dev/shm/rounds || rounds=0
	[ $SECONDS -lt $((begun + SECONDS_EACH)) ] || { [ $SECONDS -lt $((begun + 8 * SECONDS_EACH)) ] && [[ $rounds -lt 2 || $step -lt 2 ]]; }
}

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
