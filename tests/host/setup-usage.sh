#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/setup is silent and quick when nothing is missing, and otherwise says what to do.
# host: timeout=60
. "$TERRACE_TREE/tests/host/lib.sh"

fake=$OUT/bin
mkdir -p "$fake"
fake() { printf '#!/bin/bash\n%s\n' "$2" > "$fake/$1"; chmod +x "$fake/$1"; }
setup() { env PATH="$fake:$PATH" scripts/setup "$@"; }
all_installed=$(scripts/setup --list | awk '{ printf " installed:%s ", $2 }')

# everything there: nothing said, no package tool asked to do anything
fake dpkg-query "echo '$all_installed'"
fake apt-get 'echo "apt-get was called"; exit 1'
fake id 'echo 0'
start=$(date +%s%N)
expect 0 "" setup
expect 0 "" setup --lint --deep --bench --docs
took=$((($(date +%s%N) - start) / 2000000))
[ $took -lt 1000 ] || die "took $took ms with nothing missing"

# something missing: named with its reason
fake dpkg-query "echo '${all_installed/ installed:fio /}'"
expect 1 'needs fio +load and measurements' setup
expect 1 'no network\?\); please run:' setup
expect 1 '^    sudo apt-get update && sudo apt-get install --no-install-recommends fio$' setup

# lists readable, the package not installable
fake apt-get '[[ " $* " == *" update "* ]] || { echo "E: Unable to locate package fio"; exit 100; }'
expect 1 'E: Unable to locate package fio' setup
expect 1 'apt-get install failed; please run:' setup

# installable: exactly the missing one is installed, nothing recommended
fake apt-get "echo \"\$*\" >> $OUT/calls"
expect 0 'installing fio' setup
tail -1 "$OUT/calls" | grep -q -- 'install --no-install-recommends fio$' || die "called: $(tail -1 "$OUT/calls")"

# not root, no sudo without a password
fake id 'echo 1000'
fake sudo 'exit 1'
expect 1 'only root can install packages; please run:' setup
[ "$(wc -l < "$OUT/calls")" = 2 ] || die "apt-get was called without being root"

# a kernel that nobody packages
fake id 'echo 0'
fake apt-cache 'true'
fake tee 'cat >/dev/null'
expect 1 'no configured package source offers|Debian has no kernel package of series 9.9' setup --kernel 9.9
expect 2 "bad kernel version 'new'" setup --kernel new
expect 2 "bad kernel version ''" setup --kernel
expect 2 "unknown option '--all'" setup --all

# every group and line is well formed: a group, a package, a reason
scripts/setup --list | awk 'NF < 3 || $1 !~ /^(build|test|lint|deep|bench|docs)$/ { print "odd line: " $0; bad = 1 } END { exit bad }'
