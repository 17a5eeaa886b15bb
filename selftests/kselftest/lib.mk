# SPDX-License-Identifier: GPL-2.0-only
# This directory has the layout of the kernel's tools/testing/selftests. net/dualpi2 is written for a kernel tree and runs
# there unchanged, with the kernel's helpers. The other files are own code with the few helpers that it uses, for runs from
# this repository.

layout := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
directory := $(patsubst $(layout)/%,%,$(CURDIR))
TOP := $(abspath $(layout)/../..)
OUTPUT := $(TOP)/build/kselftest/$(directory)
KHDR_INCLUDES := -isystem $(TOP)/include/uapi
# For a tc without dualpi2.
export TC_LIB_DIR ?= $(TOP)/build/tc
TEST_GEN_FILES := ../../../tc/q_dualpi2.so ../../../tc/q_dualpi2_mq.so

include $(layout)/../lib.mk

$(OUTPUT)/%: %.c $(layout)/kselftest.h $(wildcard $(TOP)/include/uapi/linux/*.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LDLIBS)

$(OUTPUT)/../../../tc/q_dualpi2.so $(OUTPUT)/../../../tc/q_dualpi2_mq.so &: $(wildcard $(TOP)/iproute2-patch/tc/* $(TOP)/include/uapi/linux/*.h)
	$(MAKE) --no-print-directory -C $(TOP) plugin

install: install-helpers
install-helpers:
	mkdir -p $(INSTALL_PATH)
	cd $(layout) && cp -Rp --parents net/lib.sh net/lib/py kselftest $(INSTALL_PATH:%/$(directory)=%)

.PHONY: install-helpers
