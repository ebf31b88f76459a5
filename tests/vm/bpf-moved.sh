#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A filesystem whose logical volume moves on the volume, as pvmove does it: what is said of its files from then on is said of the blocks where they are. Its folder has a space.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M="/dev/shm/m m"
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4
PATH=$TERRACE_TREE/build:$PATH in_ram orders
TOP=/dev/mapper/top
N=$((96 << 8)) OLD=4096 NEW=$((4096 + (128 << 8)))	# in blocks

at_() { echo "0 $((N * 8)) linear $VOL $(($1 * 8))"; }
# written NUMBER: a table of 8 MiB, until its place is known
written() {
	local before
	before=$(number mapped)
	tables write "$1" 1 8
	until_ "the place of table $1" at_least mapped $((before + 1))
	sync
}
# blocks_of NUMBER FIRST: where that table lies, if the filesystem does from FIRST on, into /dev/shm/NUMBER.FIRST
blocks_of() { where "$M/db/$(printf %06d "$1").ldb" "0:$N:$2" > "/dev/shm/$1.$2"; }
fast() {
	local fast
	vol_message commit
	read -r _ fast _ <<< "$(where --state /dev/terrace/vol "$1")"
	echo "$fast"
}
# all_up FILE: orders its regions up; what is marked dead goes down, whatever an order says. ENOENT: nothing is to be done
all_up() {
	local region said
	sync
	vol_message commit
	while read -r region; do
		said=$(from_ram orders /dev/terrace/vol move "$region" append up=all tier_down=1 codec=lz4) || [[ $said = *ENOENT* ]] || die "region $region: $said"
	done < <(awk '{ print int($1 / 1024) }' "$1" | sort -nu)
}
# move_to FIRST: all of it
move_to() {
	dmsetup suspend top
	dd if="$VOL" of="$VOL" bs=1M skip=$(($1 == NEW ? OLD / 256 : NEW / 256)) seek=$(($1 / 256)) count=$((N / 256)) conv=notrunc iflag=direct oflag=direct status=none
	at_ "$1" | dmsetup reload top
	DM_DISABLE_UDEV=1 dmsetup resume top
}

vol_ram 448 768
vol_format
vol_up stream_kb=0 heat_sample=1
at_ $OLD | DM_DISABLE_UDEV=1 dmsetup create top
make_fs ext4 $TOP
mount $TOP "$M"
mkdir "$M/db"
follows 'evaluate = yes' 'dead_wait_ms = 600000' 'trim_dead = no'
follow
pass "a folder with a space in its name is one"
for n in 1 2; do
	written $n
	blocks_of $n $OLD
	blocks_of $n $NEW
done
tails=$(number pinned_tails_blocks)

# ---- a table dies right after the move: the blocks where it was are others' by now ----
move_to $NEW
# as if another logical volume were there now
dd if=/dev/urandom of="$VOL" bs=1M seek=$((OLD / 256)) count=$((N / 256)) conv=notrunc oflag=direct status=none
died=$(number died)
rm "$M/db/000001.ldb"
until_ "its death" at_least died $((died + 1))
before=$(fast "/dev/shm/1.$OLD")
check_eq "blocks where it was, that are fast" "$before" 2048
all_up "/dev/shm/1.$OLD"
n=$(fast "/dev/shm/1.$OLD")
[ "$n" -ge $((before - 16)) ] || die "$((before - n)) blocks of others are marked dead"
all_up "/dev/shm/1.$NEW"
n=$(fast "/dev/shm/1.$NEW")
[ "$n" -le 16 ] || die "only $((2048 - n)) of its 2048 blocks are marked dead"
check_eq "tails of who lives" "$(number pinned_tails_blocks)" $((tails / 2))
pass "a table's death is said of the blocks where it was then"

# ---- and one that is born there ----
written 3
blocks_of 3 $NEW
rm "$M/db/000003.ldb"
until_ "its death" at_least died $((died + 2))
all_up "/dev/shm/3.$NEW"
n=$(fast "/dev/shm/3.$NEW")
[ "$n" -le 16 ] || die "only $((2048 - n)) of its 2048 blocks are marked dead"
check_eq "moves heard of" "$(number devices_below_changed)" 1

# ---- it grows: nothing has moved ----
echo "0 $((N * 8 + 80)) linear $VOL $((NEW * 8))" | dmsetup reload top
DM_DISABLE_UDEV=1 dmsetup resume top
written 4
check_eq "moves heard of" "$(number devices_below_changed)" 1
sums=$(cd "$M/db" && md5sum 0000*.ldb)

# ---- through a device that does more for a while: what died meanwhile is not known any more, what lives is ----
written 6
written 7
tails=$(number pinned_tails_blocks)
echo "0 $((N * 8 + 80)) delay $VOL $((NEW * 8)) 0" | dmsetup reload top
DM_DISABLE_UDEV=1 dmsetup resume top
sync "$M"
until_ "that it is followed no longer" is pinned_tails_blocks 0
rm "$M/db/000006.ldb"
sync
echo 3 > /proc/sys/vm/drop_caches
echo "0 $((N * 8 + 80)) linear $VOL $((NEW * 8))" | dmsetup reload top
DM_DISABLE_UDEV=1 dmsetup resume top
until_ "that tables are pinned again, but for the one that died" is pinned_tails_blocks $((tails * 3 / 4))
died=$(number died)
rm "$M/db/000007.ldb"
until_ "a death" at_least died $((died + 1))
sums=$(cd "$M/db" && md5sum 0000*.ldb)
pass "a filesystem that was out of reach for a while is followed again"

# ---- mounted elsewhere as well, then there only ----
mkdir /dev/shm/m3
mount --bind "$M/db" /dev/shm/m3
sleep 5
unmounted
sleep 5
written_elsewhere=$(number mapped)
python3 "$TERRACE_TREE/tests/vm/tables.py" /dev/shm/m3 write 5 1 8
until_ "the place of a table that is mounted elsewhere" at_least mapped $((written_elsewhere + 1))
umount /dev/shm/m3
daemon_stop
check_fs ext4 $TOP
mount $TOP "$M"
check_eq "tables" "$(cd "$M/db" && md5sum 00000[24].ldb)" "$sums"
umount "$M"
dmr top
vol_down
vol_check
pass "a filesystem that grows has not moved; one that is mounted elsewhere only is followed there"
