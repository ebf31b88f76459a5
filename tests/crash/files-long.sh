#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ext4 and xfs on a volume, the power cut at its flushes: after the filesystem's own recovery fsck finds nothing, and every file that was synced is as it was.
# host: timeout=5400 build=kmod,drive,daemon,explore long
#
# The machine records (tests/explore/files.sh), this host builds the states, the
# machine recovers them. About STATES= of each filesystem, evenly over all moments at
# which something becomes durable, PER= of a moment; Documentation/decisions/0021.
. "$TERRACE_TREE/tests/host/lib.sh"

SEED=${SEED:-1}
STATES=${STATES:-100}
PER=${PER:-2}
BATCH=${BATCH:-40}		# states that one machine recovers
explore=build/explore

# recovered FS FOLDER: in batches; their images take room
recovered() {
	local states=("$2"/*/) k
	for ((k = 0; k < ${#states[@]}; k += BATCH)); do
		rm -rf "$OUT/batch"
		mkdir "$OUT/batch"
		mv "${states[@]:k:BATCH}" "$OUT/batch"
		scripts/vm -t 2400 -m 2G -o "$OUT/vm" -e "FS=$1" -e "LOG=$OUT/vm-$1/$1.log" -e "STATES=$OUT/batch" functional -- bash tests/explore/files.sh recover || return 1
	done
	rm -rf "$OUT/batch"
}

for fs in ${FS:-ext4 xfs}; do
	rm -rf "$OUT/states"
	scripts/vm -t 900 -m 3G -o "$OUT/vm-$fs" -e "FS=$fs" -e "SEED=$SEED" -e "COUNT=${COUNT:-80}" functional -- bash tests/explore/files.sh record
	$explore --seed "$SEED" --per "$PER" --states "$STATES" --save "$OUT/states" --sample 1 "$OUT/vm-$fs/$fs.record" || die "$fs: see above; the record is $OUT/vm-$fs/$fs.record"
	recovered "$fs" "$OUT/states" || die "$fs (seed $SEED)"
	rm -rf "$OUT/states" "$OUT/vm-$fs/$fs.record"
done
