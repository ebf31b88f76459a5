#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices between filesystem and volume: pieces of it in another order (linear), encrypted with and without discards; trims, hints and heat find the right blocks.
# vm: mode=functional memory=2G timeout=900 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs
need dm-crypt
TOP=/dev/mapper/top
KEY=$(printf '%064d' 7)$(printf '%064d' 8)

# level BLOCKS FROM COUNT: what terraced says of their heat, summed up
level() {
	local block sum=0 n=0
	while read -r block; do
		n=$(terraced --config "$CONF" --explain "vol $block" | sed -n 's/^ *"level": *\(-\?[0-9]*\),\?$/\1/p')
		sum=$((sum + n))
	done < <(sed -n "$(($2 + 1)),$(($2 + $3))p" "$1")
	echo $sum
}

# pieces of the volume, in blocks: FROM:NR:TO, and the rest of it, which belongs to no one here
N=$((320 << 8))
stack() {
	if [ "$1" = linear ]; then
		PIECES=("0:$((N / 2)):$((N / 2 + 5096))" "$((N / 2)):$((N / 2)):4096")
		OTHERS="0:4096 $((N / 2 + 4096)):1000 $((N + 5096)):1000"
		printf '%s\n' "0 $((N * 4)) linear $VOL $(((N / 2 + 5096) * 8))" "$((N * 4)) $((N * 4)) linear $VOL $((4096 * 8))"
	else
		PIECES=("0:$N:4096")
		OTHERS="0:4096 $((N + 4096)):1000"
		echo "0 $((N * 8)) crypt aes-xts-plain64 $KEY 0 $VOL $((4096 * 8))${2:+ 1 $2}"
	fi
}
# what lies beside the stack on the volume
others() {
	local one
	for one in $OTHERS; do
		"${@:2}" "$1" "${one%:*}" "${one#*:}"
	done
}
fill() { head -c $(($3 * 4096)) /dev/zero | tr '\0' x | dd of="$1" bs=1M seek=$(($2 * 4096)) oflag=seek_bytes conv=notrunc status=none iflag=fullblock; }
same() { cmp <(dd if="$1" bs=4096 skip="$2" count="$3" status=none) <(head -c $(($3 * 4096)) /dev/zero | tr '\0' x) > /dev/null || die "blocks $2 + $3, which are not the filesystem's, have changed"; }

vol_ram 448 256
for run in ${RUNS:-linear/xfs linear/ext4 crypt+allow_discards/ext4 crypt/xfs}; do
	kind=${run%/*} fs=${run#*/}
	option=
	[ "$kind" = "${kind%+*}" ] || option=${kind#*+}
	vol_format
	vol_up stream_kb=0 heat_sample=1
	PIECES=() OTHERS=
	stack "${kind%+*}" "$option" > /dev/shm/table
	others "$VOL" fill
	DM_DISABLE_UDEV=1 dmsetup create top /dev/shm/table
	make_fs "$fs" $TOP
	mount $TOP $M
	mkdir $M/db
	follows 'evaluate = yes' 'admit.fill = 0' 'cold_share = 1' 'heat = clock'
	follow

	# ---- two tables, the first MiB of one is hot; their merge ----
	tables write 1 2 4
	sync
	until_ "tables' places" at_least mapped 2
	for n in 1 2; do where $M/db/00000$n.ldb "${PIECES[@]}" > /dev/shm/in$n; done
	cat /dev/shm/in[12] > /dev/shm/in
	read -r mapped fast all <<< "$(where --state /dev/terrace/vol /dev/shm/in)"
	check_eq "blocks of the inputs" "$all" 2048
	check_eq "... that are mapped" "$mapped" 2048
	check_eq "... and fast" "$fast" 2048
	for ((n = 0; n < 20; n++)); do dd if=$M/db/000001.ldb of=/dev/null bs=4k count=256 iflag=direct status=none; done
	echo 3 > /proc/sys/vm/drop_caches
	tables compact 1,2 11,12
	sync
	until_ "a compaction" at_least compactions 1
	until_ "heat is passed on" at_least heirs_blocks 256
	for n in 11 12; do where $M/db/0000$n.ldb "${PIECES[@]}" > /dev/shm/out$n; done
	cat /dev/shm/out1[12] > /dev/shm/out
	read -r mapped fast all <<< "$(where --state /dev/terrace/vol /dev/shm/out)"
	check_eq "blocks of the outputs" "$all" 2048
	check_eq "... that are mapped" "$mapped" 2048
	[ "$fast" -le 1536 ] || die "$fast of 2048 blocks went to the fast tier, although both streams are hinted cold"
	hot=$(level /dev/shm/out 40 12) cold=$(level /dev/shm/out 1100 12)
	[ "$hot" -ge $((cold + 12)) ] || die "heat of the outputs: $hot where the hot part went, $cold elsewhere"
	pass "$run: hints keep $((all - fast)) of $all blocks off the fast tier; heat went where the hot part went ($hot, elsewhere $cold)"

	# ---- the dead: gone where discards pass, untouched where they do not ----
	if [ "$kind" = crypt ]; then
		until_ "trims are refused" at_least trim_errors 1
		check_eq "the reason" "$(number last_error)" -95
		sleep 1
		errors=$(number trim_errors)
		sleep 2
		check_eq "refused trims that are tried again" "$(number trim_errors)" "$errors"
		check_eq "bytes trimmed" "$(number trimmed_bytes)" 0
		vol_message commit
		read -r mapped _ all <<< "$(where --state /dev/terrace/vol /dev/shm/in)"
		check_eq "blocks of the dead" "$mapped" "$all"
	else
		until_ "8 MiB trimmed" at_least trimmed_bytes $((8 << 20))
		check_eq "refused trims" "$(number trim_errors)" 0
		sync
		vol_message commit
		read -r mapped _ all <<< "$(where --state /dev/terrace/vol /dev/shm/in)"
		[ "$mapped" -le 64 ] || die "$mapped of $all blocks of the dead are still mapped"
	fi
	read -r mapped _ all <<< "$(where --state /dev/terrace/vol /dev/shm/out)"
	check_eq "blocks of the living" "$mapped" "$all"
	others "$VOL" same
	sums=$(cd $M/db && md5sum 0000*.ldb)
	unmounted
	daemon_stop
	check_fs "$fs" $TOP
	echo 3 > /proc/sys/vm/drop_caches
	mount $TOP $M
	check_eq "tables" "$(cd $M/db && md5sum 0000*.ldb)" "$sums"
	umount $M
	dmr top
	others "$VOL" same
	vol_down
	vol_check
	pass "$run: only the dead are trimmed$([ "$kind" = crypt ] && echo ': none, for discards do not pass'), all else is as it was"
done
