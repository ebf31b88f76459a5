#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/seeded/run: a test that was not over in its time, or had no machine, has caught nothing; hanging counts where the patch says so.
# host: timeout=120
. "$TERRACE_TREE/tests/host/lib.sh"

# a tree whose tests end as the defect in it says
mkdir -p "$OUT/tree/tests/seeded" "$OUT/tree/tests/vm"
cp tests/seeded/run "$OUT/tree/tests/seeded/"
cd "$OUT/tree" || exit
echo well > defect
printf 'kmod daemon:\n' > Makefile
touch tests/vm/toy.sh
cat > tests/run << 'END'
#!/bin/bash
defect=$(cat "$(dirname "$0")/../defect")
[ "$defect" != well ] || exit 0
echo "FAIL  vm/toy                                      1.0 s  ($defect)"
exit 1
END
chmod +x tests/run
seed() {
	printf 'A defect.\n\nCaught-by: vm/toy\n%s\n--- a/defect\n+++ b/defect\n@@ -1 +1 @@\n-well\n+%s\n' "${3:+Caught-how: $3$'\n'}" "$2" > "tests/seeded/$1.patch"
}
seed wrong "exit status 1"
seed oops "the kernel complained"
seed late "time limit of 600 s"
seed machine "exit status 125"
seed stuck "time limit of 600 s" hangs
seed quick "exit status 1" hangs
git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm x

expect 0 '^CAUGHT    wrong  by vm/toy' tests/seeded/run wrong
expect 0 '^CAUGHT    oops  by vm/toy' tests/seeded/run oops
expect 0 '^CAUGHT    stuck  by vm/toy' tests/seeded/run stuck
expect 1 '^SURVIVED  late$' tests/seeded/run late
expect 1 '^LATE      vm/toy: .time limit of 600 s.$' tests/seeded/run late
expect 1 '^SURVIVED  machine$' tests/seeded/run machine
expect 1 '^SURVIVED  quick$' tests/seeded/run quick
expect 1 '^3 caught, 3 survived, 0 do not apply or build$' tests/seeded/run
