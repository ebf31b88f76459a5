#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The same as daemon-soak on one CPU in virtual time.
# vm: mode=vtime memory=3G timeout=3000 build=daemon,orders,oracle long
SOAK=${SOAK:-240} EACH=${EACH:-4}
# shellcheck source=tests/vm/daemon-soak.sh
. "$TERRACE_TREE/tests/vm/daemon-soak.sh"
