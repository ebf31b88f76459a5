# SPDX-License-Identifier: GPL-2.0-or-later
#
# Everything that is built lands in build/.  Sources are found by name, so a new
# file takes part without an edit here (the kernel module's own list is
# kmod/Kbuild, read by the kernel's build).
#
#	build/kernel/RELEASE/kmod/dm-terrace.ko		the module, once per kernel
#	build/kernel/RELEASE/tests/drive/*.ko		the drive model
#	build/terraced build/terracectl build/bpf/*.o	daemon, tool, BPF programs
#	build/unit/NAME					one program per tests/unit/NAME.c

.SUFFIXES:
.DELETE_ON_ERROR:
SHELL		:= /bin/bash
MAKEFLAGS	+= --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0)
JOBS		?= $(shell nproc)
MAKEFLAGS	+= -j$(JOBS)
endif

BUILD	:= build
PREFIX	?= /usr/local
KERNEL	?=
Q	:= $(if $(V),,@)
say	= @printf '  %-7s %s\n' '$(1)' '$(2)'
absent	= @echo "  $(1): nothing to build yet: $(2) does not exist"

# asked for only by the targets that need it: a kernel must be installed then
RELEASE	= $(eval RELEASE := $(or $(shell scripts/vm --print-kernel $(KERNEL:%=--kernel %)),$(error no kernel to build for)))$(RELEASE)

.PHONY: all
#: make, make all     kernel module, drive model, daemon, tools, BPF programs
all: kmod drive daemon bpf

# ---- kernel modules --------------------------------------------------------

.PHONY: kmod drive hand
#: make kmod          dm-terrace.ko, for the newest installed 6.1 or KERNEL=VER
#: make drive         the drive model that the tests use
#: make hand          the module that leads the allocator, for tests
kmod drive hand: folder = $(if $(filter kmod,$@),kmod,tests/$@)
kmod drive hand:
	$(Q)if [ -e $(folder)/Kbuild ]; then scripts/kbuild $(RELEASE) $(folder) $(if $(V),V=1); \
	else echo "  $@: nothing to build yet: $(folder)/Kbuild does not exist"; fi

# ---- user space --------------------------------------------------------------

# Warnings are errors: they are fixed, not collected.
WARN	:= -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla -Werror
INCLUDE	:= -Itests/compat -Iuapi -Ikmod/core -Ikmod -Idaemon -I$(BUILD)/bpf
CFLAGS	?= -O2 -g
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARN) $(INCLUDE)
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# only what a program uses is recorded in it
LIBS	:= -Wl,--as-needed $(addprefix -l,bpf nvme uring systemd zstd lz4 blkid devmapper uuid json-c inih m) -pthread

CORE_SRC := $(wildcard kmod/core/*.c)
LIB_SRC	:= $(CORE_SRC) $(filter-out daemon/main.c daemon/ctl/%,$(wildcard daemon/*.c daemon/*/*.c))
CTL_SRC	:= $(wildcard daemon/ctl/*.c)
MAIN_SRC := $(wildcard daemon/main.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
UNIT	:= $(UNIT_SRC:tests/unit/%.c=%)

obj	= $(1:%.c=$(BUILD)/user/%.o)
san	= $(1:%.c=$(BUILD)/san/%.o)

.PHONY: daemon unit
#: make daemon        terraced and terracectl
daemon: $(if $(LIB_SRC),$(BUILD)/user/libterrace.a) $(if $(MAIN_SRC),$(BUILD)/terraced) $(if $(CTL_SRC),$(BUILD)/terracectl)
	$(if $(MAIN_SRC),,$(call absent,terraced,daemon/main.c))
	$(if $(CTL_SRC),,$(call absent,terracectl,daemon/ctl/))
unit: $(UNIT:%=$(BUILD)/unit/%)

$(BUILD)/terraced: $(call obj,$(MAIN_SRC)) $(BUILD)/user/libterrace.a
$(BUILD)/terracectl: $(call obj,$(CTL_SRC)) $(BUILD)/user/libterrace.a
$(BUILD)/terraced $(BUILD)/terracectl:
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/unit/%: $(BUILD)/san/tests/unit/%.o $(BUILD)/san/libterrace.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SANITIZE) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

$(BUILD)/user/libterrace.a: $(call obj,$(LIB_SRC))
$(BUILD)/san/libterrace.a: $(call san,$(LIB_SRC))
$(BUILD)/%/libterrace.a:
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) qcs $@ $^

# the BPF skeletons must be there before the daemon's files include them
$(BUILD)/user/%.o: %.c | bpf
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/san/%.o: %.c | bpf
	$(call say,CC-SAN,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests/unit -Itests/compat/kernel $(SANITIZE) -MMD -MP -c -o $@ $<
# for scripts/lint: warnings in the unit tests, without the time that sanitizers take
.PHONY: lint-user
lint-user: $(UNIT_SRC:%.c=$(BUILD)/lint/user/%.ok)
$(BUILD)/lint/user/%.ok: %.c | bpf
	$(call say,WARN,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests/unit -Itests/compat/kernel -O1 -MMD -MP -MF $(@:.ok=.d) -MT $@ -fsyntax-only $< && touch $@
.SECONDARY:
-include $(shell find $(BUILD)/user $(BUILD)/san $(BUILD)/lint/user -name '*.d' 2>/dev/null)

# ---- programs that test the drive model ----------------------------------------

# with the system's headers: they talk to the kernel, so no shims
.PHONY: drive-tools
#: make drive-tools   build/drive/NAME from tests/drive/tools/NAME.c
drive-tools: $(patsubst tests/drive/tools/%.c,$(BUILD)/drive/%,$(wildcard tests/drive/tools/*.c))
$(BUILD)/drive/%: tests/drive/tools/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIBS)

# programs that measure, and the plugin that counts for QEMU
.PHONY: bench-tools
#: make bench-tools   build/bench/NAME from tests/bench/tools/NAME.c, lines.so from tests/bench/lines/, profile.so
bench-tools: $(patsubst tests/bench/tools/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/tools/*.c)) $(BUILD)/bench/lines.so $(BUILD)/bench/profile.so
$(BUILD)/bench/lines.so $(BUILD)/bench/profile.so: $(BUILD)/bench/%.so: tests/bench/%/plugin.c tests/bench/plugin.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -Wno-missing-prototypes $(CFLAGS) -shared -fPIC -o $@ $<
# replays with the code that the module has
$(BUILD)/bench/serial: tests/bench/tools/serial.c $(CORE_SRC) $(wildcard kmod/core/*.h)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS) $(if $(filter x86_64,$(shell uname -m)),-mpopcnt) $(LDFLAGS) -o $@ $< $(CORE_SRC)
# trims with the code that terraced has
$(BUILD)/bench/deaths: tests/bench/tools/deaths.c daemon/act/invalidate.c $(wildcard daemon/act/*.h)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LIBS)
$(BUILD)/bench/%: tests/bench/tools/%.c tests/bench/tools/blocks.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(LDFLAGS) -Iuapi -o $@ $< $(LIBS)

#: make bench-pages   build/bench/pages: data files of databases, whose pages are packed
.PHONY: bench-pages
bench-pages: $(BUILD)/bench/pages/sqlite
$(BUILD)/bench/pages/sqlite: tests/bench/tools/pages.py
	$(call say,RUN,$<)
	$(Q)mkdir -p $(BUILD)/bench && $< $(@D)

# YCSB's mixes on databases that live in a program
.PHONY: ycsb
#: make ycsb          build/ycsb from tests/bench/ycsb/, with the distribution's RocksDB, SQLite and MariaDB client
ycsb: $(BUILD)/ycsb
YCSB_OBJ := $(patsubst tests/bench/ycsb/%,$(BUILD)/user/ycsb/%.o,$(wildcard tests/bench/ycsb/*.c tests/bench/ycsb/*.cc))
$(BUILD)/user/ycsb/%.c.o: tests/bench/ycsb/%.c tests/bench/ycsb/ycsb.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -c -o $@ $<
# RocksDB's own interface is C++
$(BUILD)/user/ycsb/%.cc.o: tests/bench/ycsb/%.cc tests/bench/ycsb/ycsb.h
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++17 -Wall -Wextra -Wshadow -Wundef -Werror $(CFLAGS) -c -o $@ $<
$(BUILD)/ycsb: $(YCSB_OBJ)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(LDFLAGS) -o $@ $^ -lrocksdb -lsqlite3 -lmariadb -lm

# the random workload that knows what a volume may hold, and when
.PHONY: oracle
#: make oracle        build/oracle from tests/oracle/
oracle: $(BUILD)/oracle
$(BUILD)/oracle: $(wildcard tests/oracle/*.c tests/oracle/*.h)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -luring -pthread

# what power cuts could have left, from a record of the drive models
EXPLORE_SRC := $(wildcard tests/explore/*.c) tests/oracle/ledger.c tests/oracle/stamp.c tests/oracle/judge.c
.PHONY: explore
#: make explore       build/explore from tests/explore/: it recovers with terracectl's own code
explore: $(BUILD)/explore
$(BUILD)/explore: $(call obj,$(EXPLORE_SRC) $(CTL_SRC)) $(BUILD)/user/libterrace.a
	$(call say,LINK,$@)
	$(Q)objcopy --redefine-sym main=terracectl_main $(call obj,daemon/ctl/main.c) $@.ctl.o
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $@.ctl.o $(filter-out $(call obj,daemon/ctl/main.c),$^) $(LIBS)
	$(Q)rm -f $@.ctl.o

# dies or fails at a chosen change
.PHONY: die
#: make die           build/die.so from tests/die/
die: $(BUILD)/die.so
$(BUILD)/die.so: tests/die/die.c uapi/terrace.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -Iuapi -shared -fPIC -o $@ $< -ldl

# what packs cost and gain
.PHONY: pack-bench
#: make pack-bench    build/pack-bench from tests/bench/pack.c
pack-bench: $(BUILD)/pack-bench
$(BUILD)/pack-bench: tests/bench/pack.c $(BUILD)/user/libterrace.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -llz4 -lzstd -lm

# move orders by hand and at random
.PHONY: orders
#: make orders        build/orders from tests/orders/
orders: $(BUILD)/orders $(BUILD)/narrow
$(BUILD)/orders: $(wildcard tests/orders/*.[ch] uapi/*.h)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(LDFLAGS) -Iuapi -o $@ $(filter %.c,$^) -luring

# of 32 bits; without a compiler for that it says so instead, and exits with 77
$(BUILD)/narrow: tests/narrow/narrow.c uapi/terrace.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && if echo 'int main(void) { return 0; }' | $(CC) -m32 -xc -c -o $@ - 2> /dev/null; then \
		$(CC) -m32 -std=gnu11 $(WARN) -O1 -ffreestanding -fno-stack-protector -fno-pie -static -nostdlib \
			-Iuapi -idirafter /usr/include/$$($(CC) -print-multiarch) -Wl,--build-id=none -o $@ $<; \
	else printf '#!/bin/sh\necho "the compiler has no -m32"\nexit 77\n' > $@ && chmod +x $@; fi

# one allocation of a program's ioctls fails
.PHONY: failnth
failnth: $(BUILD)/failnth.so
$(BUILD)/failnth.so: tests/faults/failnth.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -shared -fPIC -o $@ $<

# anything at all for a control device
.PHONY: anyinput
anyinput: $(BUILD)/anyinput
$(BUILD)/anyinput: tests/faults/anyinput.c tests/faults/chance.h uapi/terrace.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(LDFLAGS) -Iuapi -o $@ $< -luring

# damaged metadata with right checksums
.PHONY: scribble
scribble: $(BUILD)/scribble
$(BUILD)/scribble: tests/faults/scribble.c tests/faults/chance.h tests/faults/structures.h $(BUILD)/user/libterrace.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.h,$^)

# ---- BPF programs --------------------------------------------------------------

BPF_SRC	:= $(wildcard bpf/*.bpf.c)
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -idirafter /usr/include/$(shell $(CC) -print-multiarch) -D__TARGET_ARCH_x86 -Wall -Wextra -Wno-unused-parameter -Werror -Iuapi -Ibpf -I$(BUILD)/bpf

.PHONY: bpf
#: make bpf           BPF programs and their skeletons
bpf: $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.skel.h)
	$(if $(BPF_SRC),,$(call absent,bpf,bpf/*.bpf.c))

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q){ echo '// NOLINTBEGIN: generated'; /usr/sbin/bpftool gen skeleton $< name $(subst -,_,$*) && echo '// NOLINTEND'; } > $@
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h uapi/*.h) $(BUILD)/bpf/vmlinux.h
	$(call say,BPF,$<)
	$(Q)clang $(BPF_CFLAGS) -c -o $@ $<
$(BUILD)/bpf/vmlinux.h:
	$(call say,BTF,$@)
	$(Q)mkdir -p $(@D) && /usr/sbin/bpftool btf dump file "$$(scripts/vm --print-vmlinux $(KERNEL:%=--kernel %))" format c > $@

# ---- tests, measurements, checks ------------------------------------------------

.PHONY: setup check check-long check-debug check-kernels check-seeded demo
.PHONY: bench bench-io bench-tier bench-policy bench-ablations bench-db bench-smoke bench-page bench-twice lint lint-deep
#: make setup         install what is missing for the targets below (they call it themselves)
setup:
	$(Q)scripts/setup
#: make check         unit, VM, crash and fuzz tests: an hour on 2 cores
check: setup
	$(Q)scripts/setup --kernel $(OTHER) || echo "make check: without the other kernel its build is skipped"
	$(Q)$(MAKE) all unit drive-tools oracle
	$(Q)tests/run all
#: make check-long    the same plus tests marked long
check-long: setup
	$(Q)scripts/setup --demo
	$(Q)scripts/setup --kernel $(OTHER) || echo "make check-long: without the other kernel its build is skipped"
	$(Q)$(MAKE) all unit drive-tools oracle
	$(Q)tests/run --long all
#: make check-debug   the tests of the machines on a kernel that watches (KASAN, lockdep, kmemleak), built first
DEBUG_TOO := vm/volume-resize vm/volume-swap vm/volume-all-at-once vm/drive-smp-long crash/volume-resize crash/drive-dies-long fuzz/control fuzz/metadata
check-debug: setup
	$(Q)scripts/setup --debug
	$(Q)scripts/debug-kernel
	$(Q)$(MAKE) all drive-tools oracle
	$(Q)tests/run -k debug vm crash $(DEBUG_TOO)
#: make check-kernels the other kernel line, OTHER=6.12: builds without a warning, and the tests of the machines on it
OTHER	?= 6.12
OTHER_TOO := vm/bpf-rocksdb vm/bpf-leveldb vm/bpf-lives vm/bpf-logs
check-kernels: setup
	$(Q)scripts/setup --kernel $(OTHER)
	$(Q)$(MAKE) all drive-tools oracle
	$(Q)OTHER=$(OTHER) tests/run host/kernel-builds
	$(Q)scripts/setup --demo
	$(Q)tests/run -k $(OTHER) vm crash fuzz
	$(Q)tests/run -k $(OTHER) --long $(OTHER_TOO)
#: make check-seeded  defects put into the product, each to be caught by a test: two hours
check-seeded: setup
	$(Q)tests/seeded/run
#: make demo          RocksDB on a disk alone, behind dm-cache, on Terrace: one page; in a virtual
#:                    machine, or with HOST=1 on this one, where root may load modules
demo: setup
	$(Q)scripts/setup --demo $(if $(HOST),--kernel $(shell uname -r))
	$(Q)$(MAKE) kmod drive daemon $(if $(HOST),KERNEL=$(shell uname -r))
	$(Q)tests/demo/run $(if $(HOST),--host)
#: make bench         the performance figures, in virtual time, and the page of them
bench: setup
	$(Q)scripts/setup --bench
	$(Q)$(MAKE) peers
	$(Q)$(MAKE) all oracle bench-tools bench-pages drive-tools orders pack-bench ycsb
	$(Q)tests/bench/run; missed=$$?; tests/bench/plot; tests/bench/page; exit $$missed
#: make bench-io      the figures of single I/Os, memory, opening, bandwidth, and the page of them
bench-io: setup
	$(Q)scripts/setup --bench
	$(Q)$(MAKE) kmod drive daemon oracle bench-tools drive-tools orders
	$(Q)tests/bench/run lines io fsync open scale bandwidth smp; missed=$$?; tests/bench/plot; tests/bench/page; exit $$missed
#: make bench-tier    Terrace beside dm-cache, dm-writecache and bcache on the same drives, and the page of it
#: make bench-policy  one technique switched at a time
#: make bench-ablations  that, and what files, packs and early termination are worth: one table
#: make bench-db      RocksDB, SQLite, PostgreSQL, MyRocks on all of them
bench-tier: scripts = $(patsubst tests/bench/%.sh,%,$(wildcard tests/bench/tier-*.sh))
bench-policy bench-db: scripts = $(@:bench-%=%)
bench-ablations: scripts = policy files moves
bench-tier bench-policy bench-ablations bench-db: setup
	$(Q)scripts/setup --bench
	$(if $(filter bench-tier,$@),$(Q)$(MAKE) peers)
	$(Q)$(MAKE) kmod drive daemon oracle bench-tools orders $(if $(filter bench-db,$@),ycsb) $(if $(filter bench-ablations,$@),bench-pages pack-bench)
	$(Q)tests/bench/run $(scripts); missed=$$?; tests/bench/plot; tests/bench/page; exit $$missed
#: make peers         the peers that only kernel 6.12 has, as far as they can be had, for make bench and bench-tier
.PHONY: peers
peers: setup
	$(Q)scripts/setup --peers && $(MAKE) kmod drive KERNEL=6.12 || echo "peers: not all can be had; their rows will say so"
#: make bench-page    Documentation/benchmarks/ (page and pictures) from build/bench
bench-page:
	$(Q)scripts/setup --bench
	$(Q)tests/bench/plot
	$(Q)tests/bench/page
# the scripts that have figures
bench-run = $(patsubst $(BUILD)/bench/%/bars.csv,%,$(wildcard $(BUILD)/bench/*/bars.csv))
#: make bench-twice   what was run, once more: do two runs agree within 1 %? SCRIPTS="io tier-shift" chooses
bench-twice: setup
	$(Q)scripts/setup --bench
	$(Q)tests/bench/twice $(or $(SCRIPTS),$(bench-run)); apart=$$?; tests/bench/plot; tests/bench/page; exit $$apart
#: make bench-smoke   no I/O costs more than it did: a minute, part of make check
bench-smoke: setup
	$(Q)tests/run -v bench-smoke
#: make lint          style, warnings, sparse, checkpatch, dependency rules: under a minute
lint:
	$(Q)scripts/setup --lint
	$(Q)scripts/lint
#: make lint-deep     slow analysers; those not installed are reported as skipped
lint-deep: setup
	$(Q)scripts/lint --deep

# ---- documentation, installation -------------------------------------------------

.PHONY: docs install uninstall
#: make docs          HTML from Documentation/
docs:
	$(Q)scripts/docs $(BUILD)/docs
#: make install       module for the running kernel or KERNEL=VER, programs under PREFIX, DESTDIR honoured
install uninstall:
	$(Q)scripts/install $@ "$(DESTDIR)" "$(PREFIX)" "$(RELEASE)"
#: make uninstall     remove what make install installed

#: make clean         remove what was built
#: make distclean     remove what was unpacked or downloaded for the build as well
#:
#: Variables: KERNEL=6.12 (release or its beginning), JOBS=N, V=1, PREFIX, DESTDIR, CFLAGS
.PHONY: clean distclean help
clean:
	$(Q)rm -rf $(addprefix $(BUILD)/,kernel user san unit drive oracle ycsb bpf test bench vm docs lint terraced terracectl)
distclean:
	$(Q)rm -rf $(BUILD)
#: make help          this list
help:
	@sed -n 's/^#: \?//p' Makefile
