#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# sysfs shows what the status line says and what is documented, sets the tunables like messages do, and goes with the volume.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=oracle
# shellcheck disable=SC2016,SC2119 # the backticks are Markdown
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

vol_ram 64 512
vol_format
load_terrace
[ -d /sys/fs/terrace ] || die "no /sys/fs/terrace after loading the module"
check_eq "volumes before one is started" "$(ls /sys/fs/terrace)" ""
vol_up
disk=$(dmsetup info -c --noheadings -o blkdevname vol)
dir=/sys/fs/terrace/$disk
check_eq "volumes" "$(ls /sys/fs/terrace)" "$disk"
at() { echo "$(< "$dir/$1")"; }

# what is documented is there, and nothing else
(cd "$dir" && find . -type f | sed 's|^\./||; s|^tier[0-9]*/|tierN/|' | sort -u) > /dev/shm/there
doc=$TERRACE_TREE/Documentation/target.md
{
	sed -n '/^## Status and sysfs/,/^## [^S]/p' "$doc" | sed -nE 's/^\| `([^`]*)` \|.*/\1/p'
	sed -n '/^## Options and tunables/,/^## Messages/p' "$doc" | sed -nE 's/^\| `([a-z0-9_]*)` \| [0-9]+ \| [0-9]+ … .*/tune\/\1/p'
} | grep -v '^tierN/physical_' | sort > /dev/shm/documented	# of drives that compress inside: vm/volume-homes
diff /dev/shm/documented /dev/shm/there || die "sysfs is not what is documented (< documented, > there)"
[ ! -e "$dir/tier0/free_shelves" ] || die "a tier of slots has free_shelves"
pass "$(wc -l < /dev/shm/there) kinds of files, all documented"

# the same values as the status line
dd if=/dev/urandom of="$VOL" bs=1M count=4 oflag=direct status=none
sync "$VOL"
vol_message checkpoint
for word in mode tiers zeros new moved left_out records durable dirty_regions generation mirror nowait; do
	check_eq "$word" "$(at $word)" "$(vol_get $word)"
done
check_eq "journal" "$(at journal_used)/$(at journal_blocks)" "$(vol_get journal)"
for t in 0 1; do
	check_eq "used of tier $t" "$(at tier$t/used_blocks)/$(at tier$t/blocks)" "$(vol_tier $t used)"
	check_eq "reads of tier $t" "$(at tier$t/reads)" "$(vol_tier $t reads)"
	check_eq "writes of tier $t" "$(at tier$t/writes)" "$(vol_tier $t writes)"
done
check_eq "free shelves" "$(at tier1/free_shelves)" "$(vol_tier 1 free_shelves)"
check_eq "class and kind" "$(at tier0/class):$(at tier0/kind) $(at tier1/class):$(at tier1/kind)" "optane:slots hdd:shelves"
check_eq "name" "$(at name)" vol
check_eq "size" "$(($(at virtual_blocks) * 8))" "$(sectors "$VOL")"
[ "$(at tier0/used_blocks)" -ge 1024 ] || die "4 MiB were written, tier 0 has $(at tier0/used_blocks) blocks in use"
[ "$(at memory)" -gt 0 ] || die "memory is $(at memory)"
pass "the same values as the status line"

# tunables: every one can be set to its limits, nothing else; messages and sysfs are one
range() { sed -nE "s/^\| \`$1\` \| [0-9]+ \| ([0-9]+) … ([0-9]+) \|.*/\1 \2/p" "$doc"; }
put() { echo "$1" > "$dir/$2"; }
printf -v nines '%4000s' ''
nines=${nines// /9}
for file in "$dir"/tune/*; do
	name=${file##*/}
	before=$(at "tune/$name")
	read -r min max <<< "$(range "$name")"
	for value in "$min" "$max"; do
		echo "$value" > "$dir/tune/$name"
		check_eq "$name" "$(at "tune/$name")" "$value"
	done
	expect_fail "Invalid argument" put $((max + 1)) "tune/$name"
	klog_has "vol: set $name=$((max + 1)): Option value is out of range" || die "$name=$((max + 1)): no reason in the log"
	expect_fail "Invalid argument" put fast "tune/$name"
	klog_has "vol: set $name=fast: Option value is not a number" || die "$name=fast: no reason in the log"
	expect_fail "Invalid argument" put "$nines" "tune/$name"
	check_eq "$name after refusals" "$(at "tune/$name")" "$max"
	vol_message set "$name=$before"
	check_eq "$name after a message" "$(at "tune/$name")" "$before"
done
expect_fail "out of range|Invalid argument" vol_message set commit_ms=1
klog_has "vol: set commit_ms=1: Option value is out of range" || die "a message gives another reason"
expect_fail "Permission denied|Operation not permitted|Input/output error" bash -c "echo 1 > $dir/new"
pass "tunables are set, and refused, as by message"

# the values of a table are there, too
vol_reload commit_ms=500
check_eq "commit_ms of a reloaded table" "$(at tune/commit_ms)" 500

# files held open and read all the time, while volumes stop and start
cat > /dev/shm/reader.py <<'PY'
import glob, errno, os, sys, time
end, seen, gone = time.time() + 8, 0, 0
while time.time() < end:
    files = []
    for path in glob.glob('/sys/fs/terrace/*/*') + glob.glob('/sys/fs/terrace/*/*/*'):
        try:
            files.append(os.open(path, os.O_RDONLY))
        except OSError:
            pass
    for _ in range(20):
        for fd in files:
            try:
                os.pread(fd, 4096, 0)
                seen += 1
            except OSError as e:
                if e.errno not in (errno.ENODEV, errno.EISDIR):
                    raise
                gone += e.errno == errno.ENODEV
    for fd in files:
        os.close(fd)
print(seen, gone)
PY
python3 /dev/shm/reader.py > /dev/shm/reader.out &
reader=$!
rounds=0
while kill -0 $reader 2> /dev/null; do
	vol_down
	vol_up
	rounds=$((rounds + 1))
done
wait $reader || die "the reader failed: $(cat /dev/shm/reader.out)"
read -r seen gone < /dev/shm/reader.out
if [ "$seen" -le 100 ] || [ "$rounds" -le 2 ]; then die "only $seen reads in $rounds rounds"; fi
pass "$seen reads, $gone of files whose volume had stopped, in $rounds rounds"

# another volume has its name
table=$VOL_TABLE
first=("${VOL_DRIVES[@]}")
klog_expect 'no control device: orders cannot be given'
mkram fast2 64
mkram slow2 512
VOL_DRIVES=(/dev/ram/fast2 /dev/ram/slow2)
vol_format
dmc twin "$(vol_table)"
dd if=/dev/zero of=/dev/mapper/twin bs=1M count=1 oflag=direct conv=fsync status=none
[ -c /dev/terrace/vol ] || die "the first volume's control device has gone"
dmr twin
[ -c /dev/terrace/vol ] || die "the first volume's control device went with the other's volume"
VOL_DRIVES=("${first[@]}")
VOL_TABLE=$table
pass "a volume without a control device says so, and works"

exec 5< "/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname vol)/memory"
vol_down
check_eq "volumes after the last one stopped" "$(ls /sys/fs/terrace)" ""
expect_fail "No such device" cat <&5
rmmod dm_terrace
[ ! -e /sys/fs/terrace ] || die "/sys/fs/terrace is there without the module"
expect_fail "No such device" cat <&5
exec 5<&-
pass "an open file outlives volume and module, and reads as ENODEV"
vol_check
