# SPDX-License-Identifier: GPL-2.0-or-later
# The peers that compress, which only kernel 6.12 has; sourced by systems.bash, whose functions these are.
#
# vdo: dm-vdo over dm-cache with blocks of 64 KiB. dm-vdo reserves 2.7 GiB for itself (the index of its deduplication, 2.5 of
# them, is never opened, so never read or written): its slow drive is that much larger. It finds no room where compressed
# blocks do not fit in one of 4 KiB beside its header: two blocks that compress to exactly a half do not.
#
# bcachefs: is no block device. The load works on a file: a loop device before it would add a queue and a thread to each
# I/O. LZ4 as in the example of its manual, in the background, since a write of 4 KiB alone cannot shrink below its block.
# The rest is as it comes: CRCs of extents of up to 64 KiB, which are read and promoted whole, and a mover with up to 32
# I/Os at the disk, behind which reads of users wait.
#
# What was never written would be answered from metadata alone, so both are filled, and at rest, when the load begins.
# Their tools are in build/peers: scripts/setup --peers.
#
# shellcheck shell=bash disable=SC2034

PEER_TOOLS=$TERRACE_TREE/build/peers
VDO_OWN_MB=2816
BCACHEFS_AT=/dev/shm/bcachefs

# system_lacks NAME: why it cannot be had here; nothing if it can
system_lacks() {
	case $1 in
	vdo)		lacks_either dm_vdo vdoformat ;;
	bcachefs)	lacks_either bcachefs bcachefs ;;
	esac
}
lacks_either() {	# MODULE TOOL
	if ! modprobe -q "$1"; then echo "kernel $(uname -r) has no module $1"
	elif [ ! -x "$PEER_TOOLS/$2" ]; then echo "$2 is not there: scripts/setup --peers"
	fi
}

# ---- dm-vdo over dm-cache ----

# vdo_drive COMMAND...: with the size of its slow drive
vdo_drive() {
	local SLOW_MB=$((SLOW_MB + VDO_OWN_MB))
	local SECTORS=$((SLOW_MB * 2048))
	"$@"
}

vdo_used() {	# blocks, its own included
	local words
	read -ra words <<< "$(from_ram dmsetup status vdo)"
	echo "${words[8]}"
}

vdo_up() {
	local said
	vdo_drive cache_up 64
	said=$("$PEER_TOOLS/vdoformat" --logical-size="${VOLUME_MB}M" --uds-memory-size=0.25 --slab-bits=15 "$DEV" 2>&1) || die "vdoformat: $said"
	dmc vdo "0 $SECTORS vdo V4 $DEV $(((SLOW_MB + VDO_OWN_MB) * 256)) 4096 32768 16380 deduplication off compression on"
	DEV=/dev/mapper/vdo
	VDO_EMPTY=$(vdo_used)
	fill $DEV
	echo "# vdo: filled, $VOLUME_MB MiB take $((($(vdo_used) - VDO_EMPTY) / 256)) MiB"
}

vdo_settle() {
	local used
	used=$(vdo_used)
	dmr vdo		# which writes down what it keeps in memory
	vdo_drive cache_settle 64
	echo "# settled: $VOLUME_MB MiB take $(((used - VDO_EMPTY) / 256)) MiB"
}

vdo_down() { cache_down; }

# ---- bcachefs ----

bcachefs_up() {
	local said
	drives "$FAST_MB"
	said=$("$PEER_TOOLS/bcachefs" format --force --block_size=4k --background_compression=lz4 \
		--label=fast.drive "$FAST_DEV" --label=slow.drive "$SLOW_DEV" \
		--foreground_target=fast --promote_target=fast --background_target=slow 2>&1 < /dev/null) || die "bcachefs format: $said"
	mkdir -p $BCACHEFS_AT
	mount -t bcachefs "$FAST_DEV:$SLOW_DEV" $BCACHEFS_AT
	BCACHEFS=$(echo /sys/fs/bcachefs/*-*)
	DEV=$BCACHEFS_AT/file
	fill $DEV
	bcachefs_rest
	echo "# bcachefs: filled, $VOLUME_MB MiB take $(bcachefs_used)"
}

# bcachefs_moved: nothing of the file is on the fast drive but as a copy. Its mover waits for writes when it has found nothing to
# do, and what came since waits with it: setting the target has it look again.
bcachefs_moved() {
	local state dirty
	read -r state < "$BCACHEFS/rebalance_status"
	dirty=$(awk '$1 == "user" { print $3 }' "$BCACHEFS/dev-0/alloc_debug")
	[ "$state" = waiting ] || return
	[ "$dirty" != 0 ] || return 0
	echo slow > "$BCACHEFS/options/background_target"
	return 1
}

bcachefs_rest() {
	sync $BCACHEFS_AT
	echo slow > "$BCACHEFS/options/background_target"
	sleep 1
	wait_for "bcachefs has moved all to the slow drive" bcachefs_moved
}

# of the slow drive, MiB: sectors in use, with those of its buckets that are garbage
bcachefs_used() { awk '$1 == "user" { printf "%d MiB, with garbage %d MiB\n", $3 / 2048, ($3 + $4) / 2048 }' "$BCACHEFS/dev-1/alloc_debug"; }

bcachefs_settle() {
	bcachefs_rest
	echo "# settled: $VOLUME_MB MiB take $(bcachefs_used)"
	umount $BCACHEFS_AT
}

bcachefs_down() { :; }

# ---- for both ----

packed_settings() {
	case $1 in
	vdo)		echo "dm-vdo, compression on (LZ4), deduplication off, one thread for all maps, block map cache of 32768 blocks, over $(system_settings cache-64)" ;;
	bcachefs)	echo "bcachefs of the kernel, tools $("$PEER_TOOLS/bcachefs" version): foreground_target and promote_target the fast drive, background_target the slow one, background_compression lz4, blocks of 4k, all else as formatted; fio works on a file with O_DIRECT" ;;
	esac
}
