#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ext4 and xfs on a volume, the power cut at its flushes: after the filesystem's own recovery fsck finds nothing, and every file that was synced is as it was; with drives that lie it is not.
# host: timeout=5400 build=kmod,drive,daemon,explore long
#
# The machine records (tests/explore/files.sh), this host builds the states, the
# machine recovers them. About STATES= of each filesystem, evenly over all moments at
# which something becomes durable, PER= of a moment; Documentation/decisions/0021. A third
# of STATES= must have been compared: before the first file is synced there is nothing to.
. "$TERRACE_TREE/tests/host/lib.sh"

SEED=${SEED:-1}
STATES=${STATES:-100}
PER=${PER:-2}
LEAST=${LEAST:-$((STATES / 3))}
BATCH=${BATCH:-40}		# states that one machine recovers
explore=build/explore

# recovered FS FOLDER [LIE=1]: in batches, their images take room; NR states, BAD of them wrong, FILES compared
recovered() {
	local states=("$2"/*/) k counts
	NR=0 BAD=0 FILES=0
	for ((k = 0; k < ${#states[@]}; k += BATCH)); do
		rm -rf "$OUT/batch" "$OUT/vm/recovered"
		mkdir "$OUT/batch"
		mv "${states[@]:k:BATCH}" "$OUT/batch"
		scripts/vm -t 2400 -m 2G -o "$OUT/vm" -e "FS=$1" -e "LOG=$OUT/vm-$1/$1.log" -e "STATES=$OUT/batch" ${3:+-e "$3"} functional -- bash tests/explore/files.sh recover || return 1
		read -ra counts < "$OUT/vm/recovered"
		NR=$((NR + counts[0])) BAD=$((BAD + counts[1])) FILES=$((FILES + counts[2]))
	done
	rm -rf "$OUT/batch"
}
record() { scripts/vm -t 900 -m 3G -o "$OUT/vm-$1" -e "FS=$1" -e "SEED=$SEED" -e "COUNT=$2" ${3:+-e "$3"} functional -- bash tests/explore/files.sh record; }

# they come first: what does not notice them need not go on
lies_show() {
	record "$1" 20 LIE=1
	$explore --seed "$SEED" --per 3 --states 12 --save "$OUT/states" --sample 1 "$OUT/vm-$1/$1.record" > "$OUT/said" || true	# it notices them as well
	recovered "$1" "$OUT/states" LIE=1 > "$OUT/said" || { cat "$OUT/said"; die "$1 on drives that lie (seed $SEED)"; }
	grep -q ': files: .*BROKEN' "$OUT/said" || { cat "$OUT/said"; die "$1: of $NR states of drives that lie no file was lost"; }
	echo "$1: drives that lie are noticed: $BAD of $NR states are wrong"
	rm -rf "$OUT/states" "$OUT/vm-$1/$1.record"
}

rm -rf "$OUT/states"
lies_show ext4
for fs in ${FS:-ext4 xfs}; do
	record "$fs" "${COUNT:-80}"
	$explore --seed "$SEED" --per "$PER" --states "$STATES" --save "$OUT/states" --sample 1 "$OUT/vm-$fs/$fs.record" || die "$fs: see above; the record is $OUT/vm-$fs/$fs.record"
	recovered "$fs" "$OUT/states" || die "$fs (seed $SEED)"
	((NR >= LEAST && FILES >= NR)) || die "$fs: only $NR states with a promise, $FILES files in them"
	echo "ok: $fs: $NR states, $FILES files as they were synced"
	counted "$NR" cuts
	rm -rf "$OUT/states" "$OUT/vm-$fs/$fs.record"
done
