# SPDX-License-Identifier: GPL-2.0-only
# Written by scripts/gen-completion.py; do not edit.

function __dualpi2_tc
    set -l valued \
        limit memlimit max_rtt typical_rtt target tupdate alpha beta step_thresh ramp min_qlen_step \
        coupling_factor classic_protection p_cmax overload_report hist_c hist_l bandwidth overhead mpu nqb \
        burst_max qprotect_delay qprotect_score qprotect_rate
    set -l lists \
        limit memlimit max_rtt typical_rtt \
        datacentre,lan,metro,regional,internet,oceanic,satellite,interplanetary target tupdate alpha beta \
        step_thresh ramp min_qlen_step coupling_factor classic_protection drop_on_overload,overflow \
        drop_enqueue,drop_dequeue l4s_ect,cla_ect,any_ect split_gso,no_split_gso recur,random l4s,no_l4s \
        p_cmax overload_report hist_c hist_l bandwidth,unlimited \
        conservative,ipoa-vcmux,ipoa-llcsnap,bridged-vcmux,bridged-llcsnap,pppoa-vcmux,pppoa-llc,pppoe-vcmux,pppoe-llcsnap,pppoe-ptm,bridged-ptm,docsis,ethernet \
        overhead mpu raw,noatm,atm,ptm ingress,egress nqb,no_nqb burst_max bypass,no_bypass \
        qprotect,qprotect_hash,no_qprotect qprotect_delay qprotect_score qprotect_rate ether-vlan
    set -l before (commandline -opc)
    contains -- $before[-1] $valued
    and return
    for list in $lists
        set -l words (string split , -- $list)
        set -l given
        for word in $words
            contains -- $word $before
            and set given $word
        end
        test -n "$given"
        or printf '%s\n' $words
    end
end
complete -c tc -n 'contains dualpi2 (commandline -opc)' -f -a '(__dualpi2_tc)'
complete -c tc -n 'contains dualpi2_mq (commandline -opc)' -f -a '(__dualpi2_tc)'
