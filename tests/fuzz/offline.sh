#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# host: timeout=900 build=daemon
# No damage makes terracectl check, dump, salvage, repair or restore read astray, leak, hang or contradict each other
#
# offline.c says what an input is and what has to hold. The same LEAST= inputs each time; with FUZZ_SECONDS= for so long for each
# kind of volume, and again until there are so many in all; JOBS= kinds at a time. What was found on the way stays in build/fuzz/offline/; what the tools say to one input:
#	SAY=1 OFFLINE=build/fuzz/offline/journal [SHELVES=1] [MIRROR=1] [RESTORE=1] build/fuzz/offline/offline INPUT
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
work=$TERRACE_TREE/build/fuzz/$(basename "$0" .sh) seconds=${FUZZ_SECONDS:-} least=${LEAST:-12000} jobs=${JOBS:-1} failed=0 total=0
mkdir -p "$work"

echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' > "$work/probe.c"
clang -fsanitize=fuzzer,address,undefined -o "$work/probe" "$work/probe.c" 2> "$work/probe.log" ||
	skip 'clang has no libFuzzer; install libclang-rt-14-dev'

# ---- the tools, without the commands that are not asked ----
flags=(-std=gnu11 -D_GNU_SOURCE -gline-tables-only -O1 -Wall -Wextra -Werror -Itests -Itests/compat -Iuapi -Ikmod/core -Ikmod -Idaemon
	'-fsanitize=fuzzer-no-link,address,undefined' -fno-sanitize-recover=all -fno-sanitize-coverage=indirect-calls)
sources=(kmod/core/*.c daemon/pack_codec.c daemon/ctl/{check,dump,rebuild,repair,restore,salvage,shape}*.c
	daemon/ctl/{area,device,findings,journal,life,main,names,nvme,probe,term,trees,unfinished,volume}.c)
newest=$(find uapi kmod daemon tests/compat tests/fuzz/offline.sh \( -name '*.h' -o -name '*.sh' \) -printf '%T@ %p\n' | sort -n | sed -n '$s/[^ ]* //p')
objects=()
for source in "${sources[@]}"; do
	more=() object=${source%.c}
	object=$work/${object//\//-}.o
	objects+=("$object")
	[ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ] && continue
	# the loops over bitmaps would tell the fuzzer of each bit that they compare; what core/ compares halves the inputs that a defect takes
	[[ $source != daemon/ctl/* ]] || more+=(-fno-sanitize-coverage=trace-cmp)
	[ "$source" != daemon/ctl/main.c ] || more+=(-Dmain=terracectl_main)
	clang "${flags[@]}" "${more[@]}" -c -o "$object.new" "$source"
	# its table of commands needs those only that are linked
	[ "$source" != daemon/ctl/main.c ] || objcopy --weaken "$object.new"
	mv "$object.new" "$object"
done
wrapped=(exit open close ftruncate pread pwrite calloc aligned_alloc realloc free)	# by offline_calls.c, offline_heap.c
clang "${flags[@]}" -fno-sanitize-coverage=trace-cmp -fsanitize=fuzzer "${wrapped[@]/#/-Wl,--wrap=}" -o "$work/offline" tests/fuzz/offline{,_calls,_damage,_heap,_images,_restore,_tools,_truth}.c \
	"${objects[@]}" -Wl,--as-needed -ljson-c -llz4 -lzstd -lblkid -luuid -lnvme

# ---- volumes with something of everything: slots, loose shelves, packs, a directory of each tree ----
build_image
ctl=$TERRACE_TREE/build/terracectl
# volume KIND FORMAT-ARG... -- ARG...: of what image is given
volume() {
	local kind=$1 format=() devices=(fast slow)
	while shift && [ "$1" != -- ]; do format+=("$1"); done
	[[ " ${format[*]} " != *" --meta "* ]] || devices+=(meta)
	rm -rf "${work:?}/$kind"
	mkdir "$work/$kind"
	(
		cd "$work/$kind" || exit
		new_images fast 64M slow 200M
		[ ${#devices[@]} = 2 ] || new_images meta 8M
		"$ctl" format --tier nvme:atomic=fast --tier hdd:atomic=slow "${format[@]}" --journal 1M --size 16M
		if [ "$kind" = behind ]; then old_copy "${@:2}"; fi
		"$OUT/image" --packing 40 --blocks blocks "${@:2}" "${devices[@]}"
		if [ "$kind" = behind ]; then copy_area slow.old slow; rm slow.old; fi
		"$ctl" check --owners "${devices[@]}"
	) > "$work/$kind.log"
}
# old_copy ARG...: slow.old, of what was there after the first eight operations of the same seed
old_copy() {
	cp --sparse=always fast fast.old
	cp --sparse=always slow slow.old
	"$OUT/image" --packing 40 "$@" --before 8 --between 0 --after 0 fast.old slow.old
	rm fast.old
}
# copy_area FROM TO: the metadata
copy_area() {
	local start blocks
	read -r start blocks < <("$ctl" dump super "$2" fast | sed -n "s/^label device=$2 .* meta_start=\([0-9]*\) meta_blocks=\([0-9]*\).*/\1 \2/p")
	dd if="$1" of="$2" bs=4k skip="$start" seek="$start" count="$blocks" conv=notrunc status=none
}
volume clean --mirror none -- --clean --seed 467 --before 40 --between 0 --after 0	# six packs
volume journal --mirror none -- --seed 55 --before 20 --between 4 --after 16	# nine types of records
volume mirror --mirror sync -- --seed 32 --before 10 --between 8 --after 8
volume lazy --mirror lazy -- --clean --seed 10 --before 40 --between 0 --after 0	# eight packs, one of them large; its copy is the last word
volume behind --mirror lazy -- --generation 5 --seed 55 --before 20 --between 4 --after 16
volume apart --meta meta -- --seed 55 --before 20 --between 4 --after 16	# on a device of their own, mirrored on the fast one

# ---- the inputs ----
# once NAME KIND TURN MOST: for its time, in later turns no more than are left; or so many of them; prints how many, without
# those of before, which come first, and the seconds that passed, and of a processor
once() {
	local most=() old TIMEFORMAT='seconds %R %U %S'
	old=$(find "$work/$1.corpus" -type f | wc -l)
	[ ! "$seconds" ] || most+=("-max_total_time=$seconds")
	[ "$seconds" ] && [ "$3" = 1 ] || most+=("-runs=$((old + $4))")
	# -entropic: which inputs are rare costs as much as to try them
	{ time OFFLINE=$work/$2 "$work/offline" -seed="$3" -max_len=128 -len_control=0 -timeout=60 -rss_limit_mb=1024 \
		-entropic=0 -print_funcs=0 "${most[@]}" -print_final_stats=1 -artifact_prefix="$work/$1." "$work/$1.corpus"
	} > "$work/$1.log" 2>&1 || {
		tail -60 "$work/$1.log"
		die "$1: the input is in $work/$1.*-*"
	}
	awk -v old="$old" '/number_of_executed_units/ { runs = $2 } /^seconds / { passed = $2; cpu = $3 + $4 }
		END { print (runs > old ? runs - old : 0), passed, cpu }' "$work/$1.log"
}
# fuzz NAME KIND SHARE: until there are so many per cent of the least
fuzz() {
	local runs=0 turn=0 more passed=0 cpu=0
	rm -f "$work/$1.count"
	[ "$seconds" ] || rm -rf "${work:?}/$1.corpus"
	mkdir -p "$work/$1.corpus"
	while [ $turn = 0 ] || [ $((100 * runs)) -lt $((least * $3)) ]; do
		[ $turn -lt 20 ] || die "$1: only $runs inputs in $turn turns"
		turn=$((turn + 1))
		more=$(once "$1" "$2" $turn $((least * $3 / 100 + 1 - runs))) || { echo "$more"; exit 1; }
		runs=$((runs + ${more%% *}))
		read -r passed cpu < <(echo "$passed $cpu $more" | awk '{ print $1 + $4, $2 + $5 }')
	done
	awk -v name="$1" -v runs="$runs" -v passed="$passed" -v cpu="$cpu" 'BEGIN { printf "%s: %d inputs, %d a second (%d of a processor'\''s)",
		name, runs, runs / passed, runs / cpu }
		/^#.* cov: / { cov = $4 } /^each of/ { said = said ", " $0 } /^tools ran/ { said = said ", " $0 }
		END { print ", coverage " cov said }' "$work/$1.log"
	echo "$runs" > "$work/$1.count"
}
# start NAME KIND SHARE: beside others, while those are fewer than JOBS; of one that failed the others say nothing
start() {
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || failed=1; done
	[ $failed = 0 ] || return 0
	names+=("$1")
	fuzz "$@" &
}
names=()
for kind in clean journal mirror apart behind; do start $kind $kind 12; done
for kind in lazy behind apart; do MIRROR=1 start $kind-copy $kind 6; done	# of the metadata is damaged instead
SHELVES=1 start shelves journal 3
SHELVES=1 start shelves-behind behind 2
for kind in journal apart; do RESTORE=1 start $kind-restore $kind 9; done	# what restore is given is changed instead
wait
for name in "${names[@]}"; do
	[ -s "$work/$name.count" ] || die "$name has failed"
	total=$((total + $(cat "$work/$name.count")))
done
[ $total -ge "$least" ] || die "only $total inputs"
echo "ok: $total inputs in all"
