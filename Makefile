# SPDX-License-Identifier: GPL-2.0-only
# Verbs for people; how the module is built is in Kbuild.

KDIR	?= /lib/modules/$(shell uname -r)/build
TCLIB	?= $(shell strings "$$(command -v tc)" 2>/dev/null | grep -m1 -x '/.*/tc/')
CFLAGS	?= -O2
PLUGIN	:= build/tc/q_dualpi2.so

help:
	@echo 'make all        the module for the running kernel, and the tc plugin'
	@echo 'make modules    the module alone; make plugin: the tc plugin alone'
	@echo 'make extra      the experimental companions, pi2, csaqm, vdq_csaqm and ppv; docs/COMPANIONS.md'
	@echo 'make install    install both on this machine (as root)'
	@echo 'make uninstall  remove what install put there'
	@echo 'make check-quick  style, unit tests, tc, behaviour on a kernel with sanitizers (3 minutes)'
	@echo 'make check      every test that a change has to pass; installs what it needs, boots virtual machines (15 minutes)'
	@echo 'make check-long  all kernels, all packages, large amounts (hours); all three take SUITE=NAME'
	@echo 'make torture    the longest tests: goes on where it stopped; see docs/TESTING.md'
	@echo 'make unit       the tests of the algorithm alone, in user space'
	@echo 'make coverage   lines and branches of the algorithm that they reach'
	@echo 'make fuzz-tc    the fuzzer of the tc front end, in user space'
	@echo 'make demo       see it work: dualpi2 beside fq_codel and pfifo, real traffic'
	@echo 'make lab        one of the papers'"'"' experiments, Fig. 8, and its report (40 minutes); docs/LAB.md has the others'
	@echo 'make bench      what a packet and an instance cost, beside other qdiscs; how exact the shaper is (1 hour)'
	@echo 'make accept     the figures of docs/DESIGN.md, measured in virtual time'
	@echo 'make iproute2   a patch that brings dualpi2 with all options to iproute2'
	@echo 'make matrix     build for every kernel that Debian has headers of'
	@echo 'make deb        Debian packages: the module for DKMS, the tc plugin, TCP Prague, the companions; in build/deb'
	@echo 'make rpm        RPM packages of the module and the tc plugin; in build/rpm'
	@echo 'make packages-check  install, use, upgrade and remove them on fresh Debian trees'
	@echo 'make style      the checks of style that need no kernel'
	@echo 'make lint       static analysis: nine tools, no finding allowed'
	@echo 'make debug-kernel  build the kernel with sanitizers (10 minutes, once)'
	@echo 'make clean      remove build/'

all: modules plugin

modules:
	scripts/build-module.sh '$(KDIR)' build/module

plugin: $(PLUGIN)

$(PLUGIN): iproute2-patch/tc/q_dualpi2.c iproute2-patch/tc/tc_plugin.h include/uapi/linux/dualpi2.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -Wall -Wextra -fPIC -shared -DDUALPI2_PLUGIN -Iinclude/uapi -o $@ $<

extra:
	$(MAKE) -C extra KDIR='$(KDIR)'

extra-plugins:
	$(MAKE) -C extra plugins CFLAGS='$(CFLAGS)'

build/net/traffic: selftests/net/traffic.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -static -o $@ $<

build/fuzz/%: selftests/fuzz/%.c include/uapi/linux/dualpi2.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -static -pthread -Iinclude/uapi -o $@ $<

# It has the front end's tests in it, for their stand-ins for tc.
build/fuzz/tc_line: selftests/fuzz/tc_line.c iproute2-patch/tc/q_dualpi2.c iproute2-patch/tc/tc_plugin.h \
		selftests/tc/test_q_dualpi2.c include/uapi/linux/dualpi2.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -g -O2 -Wall -Wextra -Werror -Wno-unused-function \
		-fsanitize=address,undefined,float-cast-overflow,float-divide-by-zero -fno-sanitize-recover=all \
		-DDUALPI2_PLUGIN -Iinclude/uapi -Iiproute2-patch/tc -Iselftests/unit/include -Iinclude \
		-o $@ selftests/fuzz/tc_line.c iproute2-patch/tc/q_dualpi2.c

fuzz-tc: build/fuzz/tc_line
	build/fuzz/tc_line selftests/fuzz/corpus/tc

install: all
	scripts/install.sh install build/module/sch_dualpi2.ko $(PLUGIN) '$(TCLIB)'

uninstall:
	scripts/install.sh uninstall '' $(PLUGIN) '$(TCLIB)'

check check-quick check-long:
	scripts/setup.sh --tests
	scripts/run $@ $(SUITE:%=--suite '%')

torture:
	scripts/torture.sh

debug-kernel:
	scripts/debug-kernel.sh debug

unit:
	$(MAKE) -C selftests/unit check

coverage:
	$(MAKE) -C selftests/unit coverage

demo:
	scripts/demo.sh

bench:
	@missed=; for what in compare stats shaper rate instances native; do \
		scripts/bench.sh $$what || missed="$$missed $$what"; \
	done; [ -z "$$missed" ] || { echo "bench: below the aim, or without figures:$$missed" >&2; exit 1; }

accept:
	scripts/accept.sh

lab:
	scripts/lab.sh run fig8
	scripts/lab.sh report

iproute2:
	scripts/iproute2.sh

matrix:
	scripts/matrix.sh

deb:
	scripts/deb.sh

rpm:
	scripts/rpm.sh

packages-check:
	selftests/packages/test_packages.sh

style:
	scripts/style.sh

lint:
	scripts/lint.sh

clean:
	rm -rf build

.PHONY: help all modules plugin extra extra-plugins install uninstall check check-quick check-long torture debug-kernel fuzz-tc unit coverage demo \
	bench accept lab iproute2 matrix deb rpm packages-check style lint clean
