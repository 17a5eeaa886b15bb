# SPDX-License-Identifier: GPL-2.0-only
# Verbs for people; how the module is built is in Kbuild.

KDIR	?= /lib/modules/$(shell uname -r)/build
TCLIB	?= $(shell strings "$$(command -v tc)" 2>/dev/null | grep -m1 -x '/.*/tc/')
CFLAGS	?= -O2
PLUGIN	:= build/tc/q_dualpi2.so

help:
	@echo 'Build and install'
	@echo '  make all          the module for the running kernel and the tc plugin'
	@echo '  make extra        the experimental companions pi2, csaqm, vdq_csaqm and ppv; docs/COMPANIONS.md'
	@echo '  make install      install module, plugin and tools on this machine (as root)'
	@echo '  make uninstall    remove what install put there'
	@echo '  make clean        remove build/'
	@echo 'Test; all take SUITE=NAME, docs/TESTING.md'
	@echo '  make check-quick  style, unit tests, tc, behaviour on a kernel with sanitizers (3 minutes)'
	@echo '  make check        every test that a change has to pass; installs what it needs, boots machines (20 minutes)'
	@echo '  make check-long   all kernels, all packages, large amounts (hours)'
	@echo '  make torture      the longest tests; continues after an interruption'
	@echo 'Measure'
	@echo '  make demo         dualpi2, fq_codel and pfifo with real TCP, as a table and a plot in build/demo (8 minutes)'
	@echo '  make lab          a paper'"'"'s experiment, Fig. 8, and its report (40 minutes); docs/LAB.md has the others'
	@echo '  make bench        cost of a packet and of an instance, accuracy of the shaper (1 hour); docs/PERFORMANCE.md'
	@echo 'Package'
	@echo '  make deb          Debian packages in build/deb'
	@echo '  make rpm          RPM packages in build/rpm'
	@echo 'Variables'
	@echo '  KDIR=DIR          headers of another kernel than the running one, for all and install'
	@echo '  TCLIB=DIR         where tc looks for plugins, for install; default: as tc says'
	@echo '  DESTDIR=DIR       install below DIR, for packages'

all: modules plugin

modules:
	scripts/build-module.sh '$(KDIR)' build/module

plugin: $(PLUGIN)

$(PLUGIN): iproute2-patch/tc/q_dualpi2.c $(wildcard iproute2-patch/tc/*.h include/uapi/linux/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -Wall -Wextra -fPIC -shared -DDUALPI2_PLUGIN -Iinclude/uapi -o $@ $<
	ln -sf q_dualpi2.so $(@D)/q_dualpi2_mq.so

extra:
	$(MAKE) -C extra KDIR='$(KDIR)'

extra-plugins:
	$(MAKE) -C extra plugins CFLAGS='$(CFLAGS)'

# As a reader sees it; tests run the commands in it.
build/man/%.txt: %
	@mkdir -p $(@D)
	MANWIDTH=100 LC_ALL=C.UTF-8 man -l $< >$@

vpath %.8 iproute2-patch/man/man8 tools/share

build/net/traffic: selftests/net/traffic.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -static -o $@ $<

fuzz_shared := $(addprefix selftests/fuzz/,nl.c stats.c nl.h stats.h options.h) $(wildcard include/uapi/linux/*.h)
build/fuzz/netlink: selftests/fuzz/netlink.c $(wildcard selftests/fuzz/netlink/*) $(fuzz_shared)
build/fuzz/storm: selftests/fuzz/storm.c $(wildcard selftests/fuzz/storm/*) $(fuzz_shared)
build/fuzz/netlink build/fuzz/storm:
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -static -pthread -Iinclude/uapi -o $@ $(filter %.c,$^) -lm

# It has the front end's tests in it, for their stubs of tc.
build/fuzz/tc_line: selftests/fuzz/tc_line.c selftests/fuzz/tc_line.h selftests/fuzz/options.h iproute2-patch/tc/q_dualpi2.c \
		selftests/tc/test_q_dualpi2.c $(wildcard iproute2-patch/tc/*.h selftests/tc/*.h include/uapi/linux/*.h)
	@mkdir -p $(@D)
	clang -std=gnu11 -g -O2 -Wall -Wextra -Werror -Wno-unused-function \
		-fsanitize=fuzzer,address,undefined,float-cast-overflow,float-divide-by-zero -fno-sanitize-recover=all \
		-DDUALPI2_PLUGIN -Iinclude/uapi -Iiproute2-patch/tc -o $@ $(filter selftests/fuzz/%.c iproute2-patch/%.c,$^)

# Of the header only the parser, because the rest needs more of the kernel than parser.c stands in for.
build/fuzz/parser.h: include/qdisc/packet.h
	@mkdir -p $(@D)
	sed -n '/^\/\* Tags of a frame/,/^\/\* Set CE on/p' $< | sed '$$d' >$@

build/fuzz/parser: selftests/fuzz/parser.c build/fuzz/parser.h
	clang -std=gnu11 -g -O2 -Wall -Wextra -Werror -fsanitize=fuzzer,address,undefined -fno-sanitize=alignment \
		-fno-sanitize-recover=all -Ibuild/fuzz -o $@ $<

fuzz-parser: build/fuzz/parser
	build/fuzz/parser -seed=$${DUALPI2_FUZZ_SEED:-1} -runs=$${DUALPI2_FUZZ_PACKETS:-1000000} -max_len=256 \
		-use_value_profile=1 -timeout=10 -artifact_prefix=build/fuzz/parser-

fuzz-tc: build/fuzz/tc_line
	selftests/fuzz/tc_line.py

install: all
	scripts/dist/install.sh install build/module/sch_dualpi2.ko $(PLUGIN) '$(TCLIB)'

uninstall:
	scripts/dist/install.sh uninstall '' $(PLUGIN) '$(TCLIB)'

check check-quick check-long:
	scripts/setup.sh --tests
	scripts/run $@ $(SUITE:%=--suite '%')

torture:
	scripts/torture.sh

demo:
	scripts/lab.sh demo

lab:
	scripts/lab.sh run fig8
	scripts/lab.sh report

bench:
	@missed=; for what in compare stats shaper rate instances native; do \
		scripts/bench.sh $$what || missed="$$missed $$what"; \
	done; [ -z "$$missed" ] || { echo "bench: below the aim, or without figures:$$missed" >&2; exit 1; }

deb:
	scripts/dist/deb.sh

rpm source:
	scripts/dist/$@.sh

kernel-patches:
	scripts/kernel-patches/emit.py 6.12 7.2

clean:
	rm -rf build

# Parts of the above, by names that documents and users know.
unit coverage:
	$(MAKE) -C selftests/unit $(@:unit=check)

style lint matrix:
	scripts/$@.sh

iproute2:
	scripts/dist/iproute2.sh

accept:
	scripts/lab.sh accept

debug-kernel:
	scripts/debug-kernel.sh debug

packages-check: deb
	selftests/packages/test_packages.sh

.PHONY: help all modules plugin extra extra-plugins install uninstall check check-quick check-long torture demo lab bench deb \
	rpm source kernel-patches clean unit coverage fuzz-tc style lint matrix iproute2 accept debug-kernel packages-check
