#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every way to call scripts/vm wrongly gets one clear line and a status of its own.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"

refuse() {
	local status=$1 pattern=$2
	shift 2
	expect "$status" "$pattern" "$@"
	one_line "$@"
}
refuse 2 'no mode given' scripts/vm
refuse 2 "unknown mode 'fast': functional or vtime" scripts/vm fast -- true
refuse 2 'no command given' scripts/vm functional
refuse 2 "bad timeout 'soon'" scripts/vm --timeout soon functional -- true
refuse 2 "bad timeout '0'" scripts/vm --timeout 0 functional -- true
refuse 2 "bad timeout '-5'" scripts/vm --timeout -5 functional -- true
refuse 2 "bad memory size '2'" scripts/vm --memory 2 functional -- true
refuse 2 "bad number of CPUs 'x'" scripts/vm --cpus x functional -- true
refuse 2 'vtime mode has one CPU' scripts/vm --cpus 2 vtime -- true
refuse 2 'option --colour not recognized' scripts/vm --colour functional -- true
refuse 2 "bad --env" scripts/vm --env 1=2 functional -- true
refuse 2 "bad --nvme 'big': MB or MB:zoned" scripts/vm --nvme big functional -- true
refuse 2 "bad --allow" scripts/vm --allow '(' functional -- true
refuse 2 "bad kernel version 'newest'" scripts/vm --kernel newest functional -- true
refuse 125 'no installed kernel image matches 4.19 .*run: scripts/setup --kernel 4.19' scripts/vm --kernel 4.19 functional -- true
refuse 125 'qemu-system-x86_64 is not installed; run: scripts/setup' env PATH=/nowhere scripts/vm functional -- true
expect 0 'exit status' scripts/vm --help
expect 0 '^6\.1\.' scripts/vm --print-kernel
expect 0 "$(scripts/vm --print-kernel)" scripts/vm --list-kernels

refuse 1 'no headers of kernel 4.19; run: scripts/setup' scripts/kbuild 4.19 kmod
expect 2 'no kernel to build for' make kmod KERNEL=4.19

# no image at all; an image without headers
if unshare -rm true 2>/dev/null; then
	release=$(scripts/vm --print-kernel)
	without() { unshare -rm bash -c "mount -t tmpfs none $1 && ${*:2}"; }
	refuse 125 'no installed kernel image matches 6.1 \(installed: none\); run: scripts/setup --kernel 6.1' without /boot scripts/vm functional -- true
	refuse 1 "no headers of kernel $release; run: scripts/setup --kernel $release" without "/lib/modules/$release" scripts/kbuild "$release" kmod
fi
