# SPDX-License-Identifier: GPL-2.0-or-later
# The systems that are compared, each on drives of its own with the same models
# and sizes; sourced after volume.bash and daemon.bash. One at a time:
#
# system_up NAME	makes drives, sets the system up: $DEV
# system_settle NAME	ends what it keeps dirty: everything on the slow drive
# system_down NAME
# system_settings NAME	one line: how it is tuned
# system_lacks NAME	why it cannot be had here, or nothing
#
#	fast slow		the volume on one drive
#	ideal			the best static placement of $IDEAL (see tools/ideal.c)
#	cache-32 -64 -256	dm-cache, smq, blocks of so many KiB
#	writecache bcache	dm-writecache; bcache
#	vdo bcachefs		dm-vdo over cache-64, and bcachefs: both compress; of kernel 6.12 alone, see packed.bash
#	terrace			with terraced
#	janitor			Terrace, the kernel alone
#	frozen			Terrace, and nothing moves: what finds no room on the fast drive stays below
#
# FAST, SLOW: presets of the drive model, with FAST_OPTS, SLOW_OPTS. All systems have
# $FAST_MB of the fast drive, whatever they keep on it, and the first $VOLUME_MB of
# a slow one of $SLOW_MB; with MID Terrace has a tier between (Terrace and bcachefs, which append, and dm-vdo use all of that). Terrace's
# volume and those that compress are filled: to the others it is all the same, as the model takes as long to read what was never written.
#
# shellcheck shell=bash disable=SC2034

VOLUME_MB=${VOLUME_MB:-2048}
SHARE=${SHARE:-10}				# per cent
FAST_MB=$((VOLUME_MB * SHARE / 100))
SLOW_MB=${SLOW_MB:-$((VOLUME_MB * 5 / 4 + 320))}	# Terrace keeps a few shelves free
FAST_OPTS=${FAST_OPTS:-lbs=4096 powercut=off cache=off}
SLOW_OPTS=${SLOW_OPTS:-lbs=4096 powercut=off cache=off}
SLOW_KIND=${SLOW_KIND:-shelves}			# or home, of a drive that compresses inside
MID=${MID:-}					# a tier of shelves between, for Terrace alone
MID_MB=$((VOLUME_MB * 3 / 10 + 320))
MID_OPTS=${MID_OPTS:-lbs=4096 powercut=off cache=off}
CONF_LINES=${CONF_LINES:-}			# of [policy], separated by ;
# its memory in proportion: as 64 MiB before 2 GiB, or a small volume would be served from RAM
VOL_OPTIONS=${VOL_OPTIONS:-cache_mb=$((VOLUME_MB / 32))}
SECTORS=$((VOLUME_MB * 2048))
DEV=
# where drives() puts them: who wants others than drive models has a drives() of his own
FAST_DEV=/dev/mapper/fastd SLOW_DEV=/dev/mapper/slowd

PATH=$TERRACE_TREE/build/bench:$PATH in_ram fio dmsetup make-bcache ideal
load_drive
modprobe -a bcache dm_cache_smq dm_writecache

# ---- drives ----

# fill DEVICE: all that the volume will hold, in order
fill() {
	fio_ --name=fill --filename="$1" --rw=write --bs=1m --size="${VOLUME_MB}m" --ioengine=io_uring --direct=1 --iodepth=4 --end_fsync=1 \
		--buffer_compress_percentage="${COMPRESS:-0}" > /dev/null
}

# models: one line, for the page; what the presets mean is in tests/drive/preset.c
models() { echo "drives: fast $FAST ($FAST_OPTS)${MID:+, between $MID ($MID_OPTS)}, slow $SLOW ($SLOW_OPTS)"; }

drives() {	# MB of the fast one
	# shellcheck disable=SC2086
	mkdrive fastd "$FAST" "$1" $FAST_OPTS
	# shellcheck disable=SC2086
	[ -z "$MID" ] || mkdrive midd "$MID" "$MID_MB" $MID_OPTS
	# shellcheck disable=SC2086
	mkdrive slowd "$SLOW" "$SLOW_MB" $SLOW_OPTS
}

drives_reset() {
	drive fastd reset
	[ -z "$MID" ] || drive midd reset
	drive slowd reset
}

drives_off() {
	rmdrive fastd
	[ -z "$MID" ] || rmdrive midd
	rmdrive slowd
}

class_of() { case $1 in optane) echo optane ;; nvme-tlc) echo nvme ;; qlc) echo qlc ;; csd) echo csd ;; net) echo net ;; *) echo hdd ;; esac; }

# wait_for WHAT COMMAND...: at most an hour of virtual time
wait_for() {
	local what=$1 i
	shift
	for ((i = 0; i < 3600; i++)); do
		! "$@" || return 0
		sleep 1
	done
	die "never: $what"
}

# ---- one drive ----

fast_up() { drives "$VOLUME_MB"; DEV=$FAST_DEV; }
slow_up() { drives "$FAST_MB"; DEV=$SLOW_DEV; }

# ---- the best static placement ----

ideal_up() {
	drives "$FAST_MB"
	IDEAL_PPM=$(from_ram ideal "$IDEAL" $((VOLUME_MB * 256)) $((FAST_MB * 256)) $FAST_DEV $SLOW_DEV 2>&1 > /dev/shm/ideal)
	DM_DISABLE_UDEV=1 from_ram dmsetup create tested /dev/shm/ideal
	rm /dev/shm/ideal
	DEV=/dev/mapper/tested
}
ideal_down() { dmr tested; }

# ---- dm-cache ----

cache_table() {	# KB POLICY
	echo "0 $SECTORS cache /dev/mapper/cmeta /dev/mapper/cdata $SLOW_DEV $(($1 * 2)) 1 writeback $2 0"
}

# cache_meta KB: sectors of its metadata, as its documentation has it: 4 MiB and 16 bytes a block; in whole MiB
cache_meta() { echo $(((4 + (FAST_MB * 1024 / $1 * 16 + 1048575) / 1048576) * 2048)); }

cache_up() {	# KB
	drives "$FAST_MB"
	local meta
	meta=$(cache_meta "$1")
	dmc cmeta "0 $meta linear $FAST_DEV 0"
	dmc cdata "0 $((FAST_MB * 2048 - meta)) linear $FAST_DEV $meta"
	dmc tested "$(cache_table "$1" smq)"
	# LVM raises it to eight blocks where the default of 2048 sectors is less
	[ "$1" -le 128 ] || from_ram dmsetup message tested 0 migration_threshold $(($1 * 16))
	DEV=/dev/mapper/tested
}

cache_clean() {
	local words
	read -ra words <<< "$(from_ram dmsetup status tested)"
	[ "${words[13]}" = 0 ]
}

cache_settle() {	# KB
	from_ram dmsetup load tested --table "$(cache_table "$1" cleaner)"
	from_ram dmsetup suspend --noudevsync tested
	from_ram dmsetup resume --noudevsync --noudevrules tested
	wait_for "dm-cache is clean: $(from_ram dmsetup status tested)" cache_clean
}

cache_down() { dmr tested; dmr cmeta; dmr cdata; }

# ---- dm-writecache ----

writecache_up() {
	drives "$FAST_MB"
	dmc tested "0 $SECTORS writecache s $SLOW_DEV $FAST_DEV 4096 0"
	DEV=/dev/mapper/tested
}

writecache_clean() {	# all of its blocks are free
	local words
	read -ra words <<< "$(from_ram dmsetup status tested)"
	[ "${words[4]}" = "${words[5]}" ]
}

writecache_settle() {
	from_ram dmsetup message tested 0 cleaner
	from_ram dmsetup message tested 0 flush
	wait_for "dm-writecache is clean" writecache_clean
}

writecache_down() { dmr tested; }

# ---- bcache ----

BCACHE=/sys/block/bcache0/bcache
# KiB, at most its default: it refuses a device that has not more than 512 of them
bcache_bucket() {
	local kb=512
	while [ $((FAST_MB * 1024 / kb)) -lt 1024 ]; do kb=$((kb / 2)); done
	echo $kb
}

bcache_up() {
	local word
	drives "$FAST_MB"
	from_ram make-bcache --writeback --block 4k --bucket "$(bcache_bucket)k" -C $FAST_DEV -B $SLOW_DEV > /dev/shm/bcache.said 2>&1 ||
		die "make-bcache: $(cat /dev/shm/bcache.said)"
	echo $FAST_DEV > /sys/fs/bcache/register || die "bcache: $(dmesg | tail -3)"
	echo $SLOW_DEV > /sys/fs/bcache/register
	wait_for "bcache0 appears" [ -e $BCACHE/cache ]
	for word in sequential_cutoff cache/congested_read_threshold_us cache/congested_write_threshold_us; do
		echo 0 > $BCACHE/$word
	done
	DEV=/dev/bcache0
}

bcache_detached() { [ "$(cat $BCACHE/state)" = "no cache" ]; }

bcache_settle() {
	BCACHE_SET=$(readlink -f $BCACHE/cache)
	echo 0 > $BCACHE/writeback_percent
	echo 1 > $BCACHE/detach
	wait_for "bcache is clean: $(cat $BCACHE/state $BCACHE/dirty_data)" bcache_detached
}

bcache_down() {
	echo 1 > $BCACHE/stop
	echo 1 > "$BCACHE_SET/stop"
	wait_for "bcache lets go of its drives" bcache_gone
}
bcache_gone() { [ ! -e /sys/block/bcache0 ] && [ ! -e "$BCACHE_SET" ]; }

# ---- Terrace ----

volume_up() {
	local tiers=()
	drives "$FAST_MB"
	tiers+=(--tier "$(class_of "$FAST"):slots:atomic=$FAST_DEV")
	[ -z "$MID" ] || tiers+=(--tier "$(class_of "$MID"):shelves:atomic=/dev/mapper/midd")
	tiers+=(--tier "$(class_of "$SLOW"):$SLOW_KIND:atomic=$SLOW_DEV")
	vol_format --size "${VOLUME_MB}M" "${tiers[@]}"
	# shellcheck disable=SC2086
	vol_up $VOL_OPTIONS
	DEV=$VOL
	[ "${FILL:-yes}" = no ] || fill "$DEV"
}

terrace_up() {
	volume_up
	rm -rf /dev/shm/state
	{
		printf '[daemon]\nstate_directory = /dev/shm/state\nsocket = /dev/shm/socket\n[policy]\n'
		[[ $CONF_LINES = *sense* ]] || echo "sense = bpf"
		tr ';' '\n' <<< "$CONF_LINES"
	} > "$CONF"
	daemon_start
}

janitor_up() { volume_up; }

# A driver that orders nothing keeps the janitor out.
frozen_up() {
	volume_up
	: > /dev/shm/held	# what the holder of the load before has said is there until the new one runs
	LD_LIBRARY_PATH=$RAM/lib "$RAM/orders" "/dev/terrace/${DEV##*/}" hold > /dev/shm/held &
	holder=$!
	wait_for "the volume is held" grep -q held /dev/shm/held
}
frozen_settle() {
	kill $holder
	wait $holder 2> /dev/null || true
	janitor_settle
}

# Everything goes down by the janitor, until no more does.
janitor_settle() {
	local before=-1 now i
	vol_message set janitor_low=0
	vol_message set janitor_high=1
	for ((i = 0; i < 360; i++)); do
		now=$(vol_tier 0 used)
		[ "$now" != "$before" ] || break
		before=$now
		sleep 10
	done
	vol_message commit
	echo "# settled: fast tier ${now} used"
}
terrace_settle() {
	answers && cp /dev/shm/status "$OUT/status-$LOAD.json"
	daemon_stop
	janitor_settle
}
janitor_down() { vol_down; }
frozen_down() { vol_down; }
terrace_down() { vol_down; }

# ---- by name ----

. "$TERRACE_TREE/tests/bench/packed.bash"

system_up() {
	local lacks
	lacks=$(system_lacks "$1")
	[ -z "$lacks" ] || die "$1 is not available here: $lacks"
	case $1 in
	cache-*)	cache_up "${1#cache-}" ;;
	*)		"$1_up" ;;
	esac
	drives_reset
}

system_settle() {
	case $1 in
	fast|slow|ideal) ;;
	cache-*)	cache_settle "${1#cache-}" ;;
	*)		"$1_settle" ;;
	esac
}

system_down() {
	case $1 in
	fast|slow)	;;
	cache-*)	cache_down ;;
	*)		"$1_down" ;;
	esac
	drives_off
}

system_settings() {
	case $1 in
	fast)		echo "$VOLUME_MB MiB on the fast drive alone" ;;
	slow)		echo "$VOLUME_MB MiB on the slow drive alone" ;;
	ideal)		echo "dm-linear, the $((FAST_MB * 256)) likeliest blocks on the fast drive: $((IDEAL_PPM / 1000)) of 1,000 accesses" ;;
	cache-*)	echo "dm-cache smq, writeback, blocks of ${1#cache-} KiB, $(($(cache_meta "${1#cache-}") / 2048)) MiB of the fast drive for metadata, migration_threshold as LVM has it" ;;
	writecache)	echo "dm-writecache of kind s, blocks of 4096, watermarks as they are" ;;
	bcache)		echo "bcache, writeback, block 4k, bucket $(bcache_bucket)k, sequential_cutoff and both congested_*_threshold_us 0" ;;
	terrace)	echo "terraced, sense=bpf ${CONF_LINES:+; $CONF_LINES}${VOL_OPTIONS:+; $VOL_OPTIONS}" ;;
	vdo|bcachefs)	packed_settings "$1" ;;
	janitor|frozen)	echo "no daemon ${VOL_OPTIONS:+; $VOL_OPTIONS}" ;;
	esac
}
