#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every check of scripts/lint finds the fault it is there for, and is silent without it.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"
for tool in shellcheck sparse git perl; do command -v $tool >/dev/null || skip "$tool is not installed (scripts/setup)"; done

tree=$OUT/tree
mkdir -p "$tree"/{kmod/core,uapi,daemon/decide,daemon/sense,tests/drive,build}
cp -r scripts Makefile tests "$TERRACE_TREE/.gitignore" "$tree/" 2>/dev/null || true
rm -rf "$tree"/tests/{unit,vm,host,crash,fuzz,drive,hand,replay,bench-smoke}
mkdir -p build/cache
ln -s "$PWD/build/cache" "$tree/build/cache"
cd "$tree" || exit
git init -q .

# put FILE LICENCE TEXT
put() { printf '// SPDX-License-Identifier: %s\n%s\n' "$2" "$3" > "$1"; }
# finds CHECK PATTERN FILE LICENCE TEXT: silent before, found with the file
finds() {
	local check=$1 pattern=$2 file=$3
	shift 3
	put "$file" "$@"
	expect 1 "$pattern" scripts/lint "$check"
	rm "$file"
}
k=GPL-2.0 u=GPL-2.0-or-later

put kmod/good.c $k '#include <linux/module.h>
MODULE_LICENSE("GPL");'
printf '# SPDX-License-Identifier: GPL-2.0\nobj-m += toy.o\ntoy-y := good.o extra.o\n' > kmod/Kbuild
put kmod/extra.c $k ''
expect 0 '^ok    kernel' scripts/lint kernel checkpatch kerneldoc shell python layers spdx paths size

put kmod/extra.c $k '#include <linux/types.h>
u32 extra(__le32 x);
u32 extra(__le32 x)
{
	return x;
}'
expect 1 'incorrect type|restricted __le32' scripts/lint kernel
put kmod/extra.c $k 'int extra(void)
{
	int unused;
	return 0;
}'
expect 1 'unused variable|no previous prototype' scripts/lint kernel
put kmod/extra.c $k ''

skipped() { scripts/lint "$1" | grep -q ^skip; }
skipped checkpatch || finds checkpatch 'SPACING' kmod/bad.c $k 'int f(void){ if(1) return 1; }'
skipped kerneldoc || finds kerneldoc "not described" kmod/bad.c $k '/**
 * f() - does
 * @a: one
 */
int f(int a, int b);'
# shellcheck disable=SC2016
finds shell 'SC2086' scripts/bad.sh $u 'rm $1'
finds python 'invalid syntax' scripts/bad.py $u 'if:'
finds spdx "SPDX '' instead of 'GPL-2.0'" kmod/bad.c '' 'int x;'
finds spdx "instead of 'GPL-2.0 WITH Linux-syscall-note'" uapi/bad.h $k ''
finds layers 'core/bad.c:2:linux/slab.h' kmod/core/bad.c $k '#include <linux/slab.h>'
finds layers 'decide/bad.c:2:stdio.h' daemon/decide/bad.c $u '#include <stdio.h>'
finds layers 'sense never includes act' daemon/sense/bad.c $u '#include "act/orders.h"'
finds layers '__KERNEL__' kmod/core/bad.c $k '#ifdef __KERNEL__'
finds layers 'only daemon/main.c' daemon/bad.c $u '#include "sense/a.h"
#include "decide/b.h"
#include "act/c.h"'
finds paths 'daemon/bad.c:2' daemon/bad.c $u "/* see /ho""me/me/notes */"
finds paths 'daemon/bad.c:2' daemon/bad.c $u "/* see /wo""rk/notes */"
finds size 'daemon/bad.c: 900 lines' daemon/bad.c $u "$(seq 899)"
finds user 'unused variable' daemon/bad.c $u 'int f(void);
int f(void) { int x; return 0; }'
expect 2 "unknown check 'tidyness'" scripts/lint tidyness
