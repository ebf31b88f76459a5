#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every test of the kinds vm, crash and fuzz stands in a row of a table of Documentation/testing.md, and every test that a row names exists.
# host: timeout=60
. "$TERRACE_TREE/tests/host/lib.sh"

# In a row `vm/volume-full`, `-full-queue` and `-throttle` are three of one kind: what
# follows a dash takes the beginning of the name before it.
listed() {
	/usr/bin/python3 -IS - "$@" << 'PYTHON'
import glob, os, re, sys
page, tests = sys.argv[1:]
kinds = ('vm', 'crash', 'fuzz')
have = {f'{kind}/{os.path.basename(path)[:-3]}' for kind in kinds for path in glob.glob(f'{tests}/{kind}/*.sh')} - {'vm/lib'}
named, wrong = set(), []
for nr, line in enumerate(open(page, encoding='utf-8'), 1):
    if not line.startswith('|'):
        continue
    last = ''
    for word in re.findall(r'`([^` ]+)`', line):
        if word.split('/')[0] in kinds and word.count('/') == 1:
            last = word
            named.add(word)
            if word not in have:
                wrong.append(f'line {nr}: there is no test {word}')
        elif re.fullmatch(r'-[a-z0-9][a-z0-9-]*', word) and last:
            parts = last.split('-')
            hits = {'-'.join(parts[:k]) + word for k in range(1, len(parts) + 1)} & have
            named |= hits
            if not hits:
                wrong.append(f'line {nr}: {word} after {last} is no test')
wrong += [f'{test} stands in no row' for test in sorted(have - named)]
print('\n'.join(wrong) or f'ok: {len(have)} tests, each in a row')
sys.exit(1 if wrong else 0)
PYTHON
}
# it must find what it is for
mkdir -p "$OUT/tests/vm"
touch "$OUT"/tests/vm/{lib,a-b,a-c,d}.sh
# shellcheck disable=SC2016 # quotes of the page
printf '%s\n' '| what | `vm/a-b`, `-c`, `no-test` |' 'beside the table `vm/d`' > "$OUT/page"
expect 1 '^vm/d stands in no row$' listed "$OUT/page" "$OUT/tests"
# shellcheck disable=SC2016
printf '%s\n' '| what | `vm/a-b`, `-e`, `vm/f` |' > "$OUT/page"
expect 1 'line 1: -e after vm/a-b is no test' listed "$OUT/page" "$OUT/tests"
expect 1 'line 1: there is no test vm/f' listed "$OUT/page" "$OUT/tests"
expect 1 'vm/a-c stands in no row' listed "$OUT/page" "$OUT/tests"

listed Documentation/testing.md tests
