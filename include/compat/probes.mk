# SPDX-License-Identifier: GPL-2.0-only
# What the kernel headers are probed for; include/compat/compat.h says what each is about.

# dualpi2-have: -D$(3) if file $(1) of the kernel's headers matches $(2)
dualpi2-have = $(if $(shell grep -qsE '$(2)' $(srctree)/include/$(1) && echo y),-DDUALPI2_HAVE_$(3))

ccflags-y += $(call dualpi2-have,net/gso.h,skb_gso_segment,NET_GSO_H)
ccflags-y += $(call dualpi2-have,net/pkt_cls.h,tcf_classify_ingress,TCF_CLASSIFY_INGRESS)
ccflags-y += $(call dualpi2-have,net/sch_generic.h,[^a-z_]pkt_segs;,PKT_SEGS)
ccflags-y += $(call dualpi2-have,net/sch_generic.h,tcf_set_qdisc_drop_reason,QDISC_DROP_REASON)
ccflags-y += $(call dualpi2-have,net/pkt_cls.h,tcf_set_drop_reason.const struct sk_buff,SKB_DROP_REASON)
ccflags-y += $(call dualpi2-have,net/sch_generic.h,tcf_set_drop_reason.const struct sk_buff,SKB_DROP_REASON)
ccflags-y += $(call dualpi2-have,linux/skbuff.h,SKB_DROP_REASON_QDISC_DROP,QDISC_DROP)
ccflags-y += $(call dualpi2-have,net/dropreason*.h,SKB_DROP_REASON_QDISC_DROP,QDISC_DROP)
ccflags-y += $(call dualpi2-have,net/gen_stats.h,^struct gnet_stats_basic_sync,GNET_STATS_BASIC_SYNC)
ccflags-y += $(call dualpi2-have,net/sch_generic.h,change_real_num_tx,CHANGE_REAL_NUM_TX)
