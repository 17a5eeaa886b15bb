# SPDX-License-Identifier: GPL-2.0-only
# The packages of TCP Prague and of the companions; packaging/debian/rules includes it.

TARGETS := extra-plugins
PLUGINS := $(patsubst %.c,%.so,$(notdir $(wildcard extra/*/q_*.c))) q_vdq_csaqm.so

override_dh_install::
	echo $(VERSION) >VERSION
	dh_install -ptcp-prague-dkms extra/prague/Kbuild extra/prague/tcp_prague.c extra/prague/prague.h \
		VERSION usr/src/tcp-prague-$(VERSION)
	dh_install -pdualpi2-extra-dkms extra/Kbuild extra/*/sch_*.c extra/*/*.h include \
		VERSION usr/src/dualpi2-extra-$(VERSION)
	dh_install -pdualpi2-extra-tools $(PLUGINS:%=build/tc/%) $(LIBDIR)
	dh_install -pdualpi2-extra-tools extra/common/tc-dualpi2-extra etc/bash_completion.d

override_dh_link::
	dh_link -pdualpi2-extra-tools $(foreach plugin,$(PLUGINS),$(LIBDIR)/$(plugin) usr/lib/tc/$(plugin))

override_dh_dkms::
	dh_dkms -ptcp-prague-dkms -V$(VERSION) -- extra/prague/dkms.conf
	dh_dkms -pdualpi2-extra-dkms -V$(VERSION) -- extra/dkms.conf
