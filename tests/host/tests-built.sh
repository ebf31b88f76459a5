#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A test has built what the words it uses take into the machine: alone, on a clean tree, it does not fail for want of that.
# host: timeout=60
. "$TERRACE_TREE/tests/host/lib.sh"

# What a sourced file wants only if it is there is not counted: those lines begin with a test.
built() {
	/usr/bin/python3 -IS - "$@" << 'PYTHON'
import glob, os, re, sys
tree = sys.argv[1]
made = {'terraced': 'daemon', 'orders': 'orders', 'oracle': 'oracle', 'scribble': 'scribble'}


def whole(path, seen):
    if path in seen:
        return ''
    seen.add(path)
    with open(path, encoding='utf-8') as f:
        text = f.read()
    return text + ''.join(whole(f'{tree}/{s}', seen) for s in re.findall(r'^\s*\. "\$TERRACE_TREE/([^"]+)"', text, re.M))


wrong, looked = [], 0
for path in sorted(glob.glob(f'{tree}/tests/*/*.sh')):
    text = whole(path, set())
    says = re.search(r'^# vm:.*$', text, re.M)
    if not says:
        continue
    looked += 1
    build = re.search(r'\bbuild=(\S+)', says[0])
    wants = {made[w] for line in re.findall(r'^(?:PATH=\S+ )?in_ram ([^;&|\n]*)', text, re.M) for w in line.split() if w in made}
    for w in sorted(wants - set(build[1].split(',') if build else ())):
        wrong.append(f'{os.path.relpath(path, tree)} needs build={w}')
print('\n'.join(wrong) or f'ok: {looked} tests')
sys.exit(bool(wrong))
PYTHON
}
# it must find what it is for
mkdir -p "$OUT/tests/vm"
# shellcheck disable=SC2016
printf '%s\n' 'PATH=$TERRACE_TREE/build:$PATH in_ram terraced orders' > "$OUT/tests/vm/words.bash"
# shellcheck disable=SC2016
printf '%s\n' '# vm: mode=functional build=daemon long' '. "$TERRACE_TREE/tests/vm/words.bash"' > "$OUT/tests/vm/a.sh"
expect 1 '^tests/vm/a.sh needs build=orders$' built "$OUT"
sed -i 's/build=daemon/&,orders/' "$OUT/tests/vm/a.sh"
expect 0 '^ok: 1 tests$' built "$OUT"

built "$TERRACE_TREE"
