#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/setup is silent and quick when nothing is missing, and otherwise says what to do.
# host: timeout=600
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
expect 0 "" setup --lint --deep --demo --bench --docs --debug
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
expect 1 'apt-get install failed \(no network\?\); please run:' setup

# installable: exactly the missing one is installed, nothing recommended
fake apt-get "echo \"\$*\" >> $OUT/calls"
expect 0 'installing fio' setup
tail -1 "$OUT/calls" | grep -q -- 'install --reinstall --no-install-recommends fio$' || die "called: $(tail -1 "$OUT/calls")"

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
fake apt-get 'case " $* " in *" indextargets "*) echo "http://mirror/debian /key.gpg end" ;; esac'
fake apt-cache 'printf "%s\n" linux-image-amd64 linux-image-6.1.0-9-amd64 linux-image-6.1.0-10-rt-amd64 linux-image-6.12.1+deb12-amd64'
fake rm 'exit 0'
expect 1 'Debian has no kernel package of series 9.9; choose one of: 6.1 6.12 $' setup --kernel 9.9
rm -f "$fake/rm"
expect 2 "bad kernel version 'new'" setup --kernel new
expect 2 "bad kernel version ''" setup --kernel
expect 2 "unknown option '--all'" setup --all

# not Debian
fake dpkg-query 'exit 127'
expect 1 'this is not a Debian system: install the equivalents of scripts/setup --list' setup
one_line setup

# the files of the kernel are gone, although its packages are there
if unshare -rm true 2>/dev/null; then
	fake dpkg-query "echo '$all_installed'"
	fake id 'echo 1000'
	without() { unshare -rm env PATH="$fake:$PATH" bash -c "mount -t tmpfs none $1 && scripts/setup"; }
	for folder in /boot /lib/modules; do
		expect 1 'needs kernel 6.1, image and headers' without $folder
		expect 1 '^    sudo scripts/setup --kernel 6.1$' without $folder
	done
	# and root unpacks them anew
	fake id 'echo 0'
	fake apt-get "echo \"\$*\" >> $OUT/calls"
	expect 1 'kernel 6.1 still lacks its image or headers' without /boot
	tail -1 "$OUT/calls" | grep -q -- 'install --reinstall .*linux-image-6.1.0-9-amd64 linux-headers-6.1.0-9-amd64$' || die "called: $(tail -1 "$OUT/calls")"
fi

# the tools of peers: from suites that stay off, unpacked beside the build, once
if unshare -rm true 2>/dev/null; then
	tree=$OUT/tree
	mkdir -p "$tree/scripts" "$OUT"/boot "$OUT"/modules/{6.1.0-9-amd64,6.12.1+deb12-amd64}/build
	cp scripts/setup "$tree/scripts/"
	touch "$OUT"/boot/vmlinuz-{6.1.0-9-amd64,6.12.1+deb12-amd64} "$OUT"/modules/{6.1.0-9-amd64,6.12.1+deb12-amd64}/build/Makefile
	peers() {
		unshare -rm env PATH="$fake:$PATH" bash -c "mount --bind $OUT/boot /boot && mount --bind $OUT/modules /lib/modules && $tree/scripts/setup --peers"
	}
	fake dpkg-query "echo '$all_installed'"
	fake id 'echo 0'
	fake apt-get "echo \"\$*\" >> $OUT/calls.peers"'
		case " $* " in
		*" indextargets "*) echo "http://mirror/debian /key.gpg end" ;;
		*" download vdo/"*) [ ! -e '"$OUT"'/no-vdo ] || exit 100; touch vdo.deb ;;
		*" download "*) touch tools.deb ;;
		esac'
	# shellcheck disable=SC2016
	fake dpkg-deb 'mkdir -p "$3/usr/bin"; echo > "$3/usr/bin/vdoformat"; chmod +x "$3/usr/bin/vdoformat"'
	touch "$OUT/no-vdo"
	expect 1 'vdoformat cannot be had: its peer will be said not to be here' peers
	[ ! -e "$tree/build/peers/vdoformat" ] || die "a tool that was not had is there"
	[ -x "$tree/build/peers/bcachefs" ] || die "the tool behind the one that cannot be had is not there"
	rm "$OUT/no-vdo"
	expect 0 'setup: unpacking vdoformat into build/peers' peers
	[ -x "$tree/build/peers/vdoformat" ] || die "the tool is not there"
	grep -q 'download vdo/bookworm-backports$' "$OUT/calls.peers" || die "called: $(cat "$OUT/calls.peers")"
	! grep -v -e 'indextargets' -e 'Dir::Etc::SourceParts=/dev/null' "$OUT/calls.peers" || die "that was asked of the system's own lists"
	! grep -w install "$OUT/calls.peers" || die "a tool was installed"
	expect 0 "" peers
fi

# every group and line is well formed: a group, a package, a reason
scripts/setup --list | awk 'NF < 3 || $1 !~ /^(build|test|lint|deep|demo|bench|docs|debug)$/ { print "odd line: " $0; bad = 1 } END { exit bad }'
