#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl create, list, status, set, deactivate, activate, remove, convert: a volume's life, and what each of them refuses.
# vm: mode=functional cpus=1 memory=1G timeout=680 build=die
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

# large enough to hold 8 MiB of slots in readiness: a write that finds none there goes to a shelf
vol_ram 256 256
fast=$(readlink /dev/ram/fast) slow=$(readlink /dev/ram/slow)
load_terrace
tiers=(--tier "optane:slots:atomic=$fast" --tier "hdd:shelves:atomic=$slow")

# ---- create
says "^no volume is active" status
refuses 1 "nobody to ask .*--yes" create db "${tiers[@]}"
cmp -n 8192 "$fast" /dev/zero
says "is taken for nvme:slots: flash: it does not rotate" create db --tier "$fast" --tier "hdd=$slow" --dry-run
mkfs.ext4 -q -F "$slow"
refuses 1 "^terracectl: $slow holds a filesystem \(ext4\): nothing changed" create db "${tiers[@]}" --yes
dd if=/dev/zero of="$slow" bs=1M count=1 oflag=direct status=none
dmsetup create stacked --table "0 1000 linear $fast 0"
refuses 1 "$fast is in use: part of /dev/dm-" create db "${tiers[@]}" --yes
refuses 1 "there is a device-mapper device 'stacked' already: nothing changed" create stacked "${tiers[@]}" --yes
dmsetup remove stacked
refuses 2 "no name given" create "${tiers[@]}" --yes
says "^/dev/mapper/db$" create db "${tiers[@]}" --yes
[ -b /dev/mapper/db ] || die "no /dev/mapper/db"
dd if=/dev/urandom of=/dev/shm/a bs=1M count=4 status=none
dd if=/dev/shm/a of=/dev/mapper/db bs=1M oflag=direct status=none
dd if=/dev/mapper/db of=/dev/null bs=1M count=4 iflag=direct status=none
refuses 1 "in use: part of /dev/dm-" create other "${tiers[@]}" --yes --force
pass "create"

# ---- list, status, set
says "^db +[0-9a-f-]{36} +active +.* MiB +optane=$fast hdd=$slow$" list
check_eq "names" "$(terracectl list --names)" db
check_eq "devices" "$(terracectl list --json | json "[d['device'] for d in o[0]['devices']]")" "['$fast', '$slow']"
says "^volume 'db' \([0-9a-f-]{36}\): .* on /dev/mapper/db, mode write$" status
says "tier 0  optane slots +4 MiB of .* used .* reads, [0-9]+ writes" status db
says "tier 1  hdd    shelves .* 2 free shelves" status db
says "100.0 % of [0-9]+ reads since activation hit tier 0" status /dev/mapper/db
says "forecast: terraced does not drive it; terracectl top" status db
disk=/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname db)
check_eq "generation" "$(terracectl status --json db | json "o[0]['generation']")" "$(cat "$disk/generation")"
check_eq "tiers" "$(terracectl status --json | json "[t['class'] for t in o[0]['tier']]")" "['optane', 'hdd']"
says "^commit_ms=1000$" set db
says "" set db commit_ms 500
check_eq "commit_ms" "$(cat "$disk/tune/commit_ms")" 500
says "^commit_ms=500$" set db commit_ms
refuses 1 "commit_ms cannot be '1': not a number in its range" set db commit_ms 1
refuses 1 "there is no tunable 'comit_ms'" set db comit_ms 1
refuses 1 "not a number in its range" set --keep db commit_ms 1
refuses 2 "needs a tunable and its value" set --keep db commit_ms
check_eq "kept" "$(terracectl set --json db commit_ms | json "o['commit_ms']['value'], o['commit_ms']['kept']")" "(500, None)"
mkdir -p /etc/terrace && mount -t tmpfs tmpfs /etc/terrace
says "" set --keep db age_s 61
says "" set --keep db commit_ms 700
check_eq "kept" "$(terracectl set --json db | json "o['commit_ms']['value'], o['commit_ms']['kept']")" "(700, '700')"
refuses 1 "no volume 'nodb' is active" status nodb
pass "list, status, set"

# ---- deactivate, activate
exec 5< /dev/mapper/db
refuses 1 "volume 'db' is in use: open by a program" deactivate db
exec 5<&-
# so that where a block goes does not depend on what the kernel writes with it
says "" set db stream_kb 0
mkfs.ext4 -q -F /dev/mapper/db
mkdir -p /tmp/mounted
mount /dev/mapper/db /tmp/mounted
refuses 1 "volume 'db' is in use: mounted at /tmp/mounted" deactivate db
refuses 1 "volume 'db' is in use: mounted at /tmp/mounted" remove --yes db
cp /dev/shm/a /tmp/mounted/a
sync -f /tmp/mounted
# ---- which
says "^ +at 0 +blocks [0-9]+-[0-9]+: fast$" which /tmp/mounted/a
says "^/tmp/mounted/a: 1024 fast$" which /tmp/mounted/a
first=$(terracectl which --json /tmp/mounted/a | json "o[0]['block']")
dd if=/dev/mapper/db bs=4k skip="$first" count=1 iflag=direct status=none | cmp -n 4096 - /dev/shm/a
check_eq "its blocks" "$(terracectl which --json db "$first" | json "[(r['block'], r['blocks'], r['where']) for r in o]")" "[($first, 1, 'fast')]"
says "nowhere \(reads as zeros\)" which db
refuses 1 "is not on an active volume" which /dev/shm/a
refuses 1 "volume 'db' has blocks 0 to" which db 99999999
refuses 1 "no volume 'nodb' is active" which nodb
refuses 1 "No such file" which ./nofile
pass "which"
umount /tmp/mounted
says "" deactivate /dev/mapper/db
[ ! -e /dev/mapper/db ] || die "/dev/mapper/db is still there"
says "^db .* inactive " list
says "" deactivate db
refuses 1 "no device carries the label of a volume 'bd'" deactivate bd
terracectl check --full "$fast" "$slow" > /dev/null || die "not sound after deactivate"
check_eq "activate --json" "$(terracectl activate --json db | json "o['name'], o['active'], o['device'], o['waits_for']")" "('db', True, '/dev/mapper/db', None)"
terracectl deactivate db
says "^/dev/mapper/db$" activate db
refuses 1 "volume 'db' is active already, as /dev/mapper/db" activate "$fast" "$slow"
mount /dev/mapper/db /tmp/mounted
cmp /dev/shm/a /tmp/mounted/a
umount /tmp/mounted
terracectl deactivate db
says "^/dev/mapper/ro$" activate --as ro --read-only "$(terracectl list --json | json "o[0]['uuid']")"
says "^db .* read-only .* as /dev/mapper/ro$" list
expect_fail . dd if=/dev/shm/a of=/dev/mapper/ro bs=4k count=1 oflag=direct
check_eq "deactivate --json" "$(terracectl deactivate --json ro | json "o[0]['name'], o[0]['active']")" "('ro', False)"
says "." activate --option commit_ms=250 db
grep -q " 2 commit_ms=250 age_s=61" <<< "$(dmsetup table db)" || die "option lost: $(dmsetup table db)"
check_eq "kept" "$(terracectl set db age_s)" "age_s=61"
says "" set --forget db commit_ms
says "" set --forget db age_s
check_eq "forgotten" "$(ls /etc/terrace)" ""
terracectl deactivate db
# of a label one copy is enough, as after a power cut in the middle of a replace; check says so, and what mends it does
dd if=/dev/zero of="$slow" bs=4k seek=1 count=1 oflag=direct status=none
says "^problem: $slow: label copy 1 .*nothing of ours" activate db
terracectl deactivate db
says "^note: labels: the other copy is good.*terracectl repair --in-place" activate db
terracectl deactivate db
refuses 1 "1 problem" check "$fast" "$slow"
says "nothing lost" repair --in-place "$fast" "$slow"
says ": sound" check "$fast" "$slow"
refuses 1 "option|Option" activate --option commit_ms=1 db
[ ! -e /dev/mapper/db ] || die "a refused activation left a device"
klog_has "Option value is out of range" || die "not in the kernel log"
refuses 1 "no device carries the label of a volume 'nodb'" activate nodb
# killed once the device is created, and once its table is loaded
cp "$TERRACE_TREE/build/die.so" "$RAM/"
dies() { env COUNT=/dev/shm/count DIE_AT="$1" LD_PRELOAD="$RAM/die.so" LD_LIBRARY_PATH="$RAM/lib" "$RAM/terracectl" "${@:2}" > /dev/shm/said 2>&1; }
for at in 2 3; do
	! dies $at activate db 2> /dev/null || die "not killed: $(cat /dev/shm/said)"
	dmsetup info db > /dev/null || die "no device 'db': $(cat /dev/shm/said)"
	says "left by a call that was stopped: it is made anew" activate db
	terracectl deactivate db
done
pass "deactivate, activate"

# ---- a tier is missing; metadata are damaged
refuses 1 "tier 1: is missing" activate "$fast"
says "tier 1: is missing" activate --degraded "$fast"
# colour for an alarm, on a terminal only, and not if NO_COLOR says so
coloured() { [[ $(env "$@" script -qec "$TERRACE_TREE/build/terracectl status db" /dev/null) == *$'\e[1;31m'MISSING* ]]; }
coloured TERM=linux || die "no colour on a terminal"
coloured NO_COLOR= || die "NO_COLOR that is empty takes the colour away"
! coloured NO_COLOR=1 || die "colour in spite of NO_COLOR"
[[ $(terracectl status db) != *$'\e'* ]] || die "colour in a pipe"
says "MISSING" status db
terracectl deactivate db
meta=$(terracectl dump --json super "$fast" "$slow" | json "[i for i in o['items'] if i['item'] == 'label'][0]['meta_start']")
current=$(terracectl dump --json super "$fast" "$slow" | json "[i for i in o['items'] if i['item'] == 'superblock' and i['role'] == 'primary' and not i['current']][0]['copy']")
dd if="$fast" of=/dev/shm/super bs=4k skip=$((meta + current)) count=1 iflag=direct status=none
dd if=/dev/urandom of="$fast" bs=4k seek=$((meta + current)) count=1 oflag=direct status=none
refuses 1 "superblock copy $current" activate db
says "/dev/mapper/db" activate --force db
terracectl deactivate db
dd if=/dev/shm/super of="$fast" bs=4k seek=$((meta + current)) count=1 oflag=direct status=none || true
pass "activation runs the quick check"

# ---- one made with dmsetup by hand is known as well
vol_format --force "${tiers[@]}"
vol_up
says "^vol .* active " list
refuses 1 "active already" activate "$fast" "$slow"
says "mode write" status vol

# ---- remove
refuses 1 "nobody to ask" remove vol
says "Volume 'vol'" remove --yes vol
check_eq "volumes" "$(terracectl list)" ""
[ ! -e /dev/mapper/vol ] || die "/dev/mapper/vol is still there"
refuses 1 "no device carries the label" remove --yes vol
refuses 1 "/nofile: cannot be read: No such file" create db "${tiers[@]}" --yes --force --config /nofile
printf '# of db\ncommit_ms 900\n' > /dev/shm/options
refuses 1 "line 2: 'commit_ms 900' is no line TUNABLE=VALUE" create db "${tiers[@]}" --yes --force --config /dev/shm/options
printf '# of db\ncommit_ms=900\nage_s=0\n' > /dev/shm/options
refuses 1 "is made, but not active, and nothing of --config is kept" create db "${tiers[@]}" --yes --force --config /dev/shm/options
says "." remove --yes db
sed -i s/age_s=0/age_s=62/ /dev/shm/options
says "^/dev/mapper/db$" create db "${tiers[@]}" --yes --force --config /dev/shm/options
check_eq "--config" "$(terracectl set --json db | json "o['commit_ms']['value'], o['age_s']['kept']")" "(900, '62')"
cmp -n $((1 << 20)) /dev/mapper/db /dev/zero
check_eq "remove --json" "$(terracectl remove --yes --json db 2> /dev/null | json "o['name'], o['removed'], len(o['devices'])")" "('db', True, 2)"
pass "remove"

# ---- convert
mkram source 24 512
# what is on it ends within a block
dmc odd "0 49001 linear /dev/ram/source 0"
source=/dev/mapper/odd
mkfs.ext4 -q -F -b 1024 $source
convert=(convert db --from "$source" "${tiers[@]}" --force)
refuses 2 "whose data\? --from DEVICE" convert db "${tiers[@]}"
refuses 2 "--size: the volume gets the size of" "${convert[@]}" --size 1G
refuses 2 "--from: it is terracectl convert that" create db "${tiers[@]}" --from "$source"
refuses 2 "cannot become a device of the volume while its data are copied" convert db --from "$slow" "${tiers[@]}"
refuses 1 "reads and writes units of 1024 bytes; a volume has sectors of 4096" convert db --from "$source" "${tiers[@]}"
mkfs.ext4 -q -F -b 4096 $source
mount $source /tmp/mounted
refuses 1 "unmount it, or mount -o remount,ro; then the same call" "${convert[@]}" --yes
cp /dev/shm/a /tmp/mounted/a
mount -o remount,ro /tmp/mounted
refuses 1 "nobody to ask" "${convert[@]}"
says "^Volume 'db' .*: 23.93 MiB" "${convert[@]}" --dry-run
check_eq "volumes" "$(terracectl list)" ""
# stopped while it is filled: no filesystem yet; the same call goes on, another one does not
! dies 39 "${convert[@]}" --yes 2> /dev/null || die "not killed: $(cat /dev/shm/said)"
[ -b /dev/mapper/db ] || die "killed before the volume was there, at $(cat /dev/shm/count): $(cat /dev/shm/said)"
check_eq "what blkid finds" "$(blkid -p -o value -s TYPE /dev/mapper/db || true)" ""
truncate -s 24M /dev/shm/other
refuses 1 "with other data than those of /dev/shm/other: nothing changed" convert db --from /dev/shm/other "${tiers[@]}" --force --yes
said=$(terracectl "${convert[@]}" --yes --json 2> /dev/shm/said) || die "convert: $(cat /dev/shm/said)"
check_eq "convert --json" "$(json "o['bytes'], o['went_on'], o['was_done'], o['compared_again_bytes']" <<< "$said")" "(25088512, True, False, 0)"
grep -q "going on" /dev/shm/said || die "said $(cat /dev/shm/said)"
umount /tmp/mounted
cmp -n 25088512 $source /dev/mapper/db
says "^/dev/mapper/db holds all of $source already" "${convert[@]}" --yes
# the first MiB alone does not make it the same
dd if=/dev/mapper/db of=/dev/shm/block bs=4k skip=3000 count=1 iflag=direct status=none
dd if=/dev/urandom of=/dev/mapper/db bs=4k seek=3000 count=1 oflag=direct status=none
refuses 1 "one of them was written to since: 1 MiB differ" "${convert[@]}" --yes
dd if=/dev/shm/block of=/dev/mapper/db bs=4k seek=3000 oflag=direct status=none
terracectl status db > /dev/shm/said
grep -qE "tier 1  hdd    shelves +[4-9]\.[0-9]* MiB" /dev/shm/said || die "not in a stream to the shelves: $(cat /dev/shm/said)"
mount /dev/mapper/db /tmp/mounted
cmp /dev/shm/a /tmp/mounted/a
umount /tmp/mounted
refuses 1 "with other data than those of $source" "${convert[@]}" --yes
says "." remove --yes db
pass "convert"
