# SPDX-License-Identifier: GPL-2.0-or-later
# Words for scripts in which terraced follows the files of a filesystem; sources all that it needs itself.
#
# $M			where that is mounted: the script says it, before it sources this
# follows [LINE...]	its configuration: files followed, the dead trimmed after 200 ms, and these lines; its state in $STATE, if that is set;
#			DEAD_WAIT= leaves the product's own time till they are trimmed
# follow [WORD...]	terraced, started by these words, until it follows the files of $M
# is NAME N, at_least NAME N	a number of the status
# tables WORD...	tables.py on the folder $M/db
# where WORD...		where.py
# make_fs FS [DEVICE]	ext4 or xfs; no room is trimmed but what died
# check_fs FS [DEVICE]	fsck finds nothing
# unmounted		$M is let go while terraced runs, which has a file that was just written open for a moment, to ask where it lies
#
# shellcheck shell=bash disable=SC2034

. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

mkdir -p "$M"
modprobe -q xfs || true

follows() {
	printf '%s\n' '[daemon]' "state_directory = ${STATE:-/dev/shm/state}" 'socket = /dev/shm/socket' '[policy]' 'files = yes' "${DEAD_WAIT-dead_wait_ms = 200}" "$@" > "$CONF"
}
follow() {
	: > "$LOG"
	LD_LIBRARY_PATH=$RAM/lib "$@" "$RAM/terraced" --config "$CONF" --verbose >> "$LOG" 2>&1 &
	daemon=$!
	until_ "files are followed" logged "the files of $M are followed"
}
is() { [ "$(number "$1")" -eq "$2" ]; }
at_least() { [ "$(number "$1")" -ge "$2" ]; }
tables() { python3 "$TERRACE_TREE/tests/vm/tables.py" "$M/db" "$@"; }
where() { python3 "$TERRACE_TREE/tests/vm/where.py" "$@"; }
make_fs() {
	if [ "$1" = ext4 ]; then
		mkfs.ext4 -q -E nodiscard,lazy_itable_init=0 "${2:-$VOL}"
	else
		mkfs.xfs -qfK "${2:-$VOL}"
	fi
}
unmounted() { until_ "nothing of it is kept open" umount "$M"; }
check_fs() {
	if [ "$1" = ext4 ]; then
		fsck.ext4 -fn "${2:-$VOL}" > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "fsck"; }
	else
		xfs_repair -n "${2:-$VOL}" > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "xfs_repair"; }
	fi
}
