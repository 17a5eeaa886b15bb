#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# style.sh - the rules of the tree that a machine can check. KTAP on stdout.
# No judgement of C: checkpatch.pl of a kernel tree does that.

set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
cd "$DUALPI2_ROOT" || exit 1

# rule NAME COMMAND...: the rule holds if the command prints nothing.
rule() {
	local name=$1 found code=0
	shift
	found=$("$@" 2>&1 | head -n 20)
	[ -z "$found" ] || code=1
	result "$name" "$code" "$found"
}

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

versions() { files '*.c' '*.h' | grep -v '^include/compat/' | xargs -r grep -nE 'KERNEL_VERSION|LINUX_VERSION_CODE'; }
# The headers in extra that compile in user space: those that its unit tests include.
algorithms() {
	sed -n 's/^#include "\(.*\)"$/\1/p' extra/*/unit/*.[ch] | sort -u | grep -v '_test\.h$' |
		while read -r header; do ls extra/*/"$header"; done
}
kernel_code() {
	xargs <<<"$(ls include/net/*.h && algorithms)" grep -nE '\b(struct sk_buff|skb|struct Qdisc|ktime_get|get_random|printk)'
}
prefix() { # file-scope functions of the module and the algorithm
	grep -hoE '^(static )?(inline )?[a-z].* \*?([a-z0-9_]+)\(' sch_dualpi2.c include/{net,qdisc}/*.h |
		sed -E 's/.*[ *]([a-z0-9_]+)\($/\1/' | grep -vE '^dualpi2_|^module_|^static_assert$'
}
uapi_only() { grep -n '#include' iproute2-patch/tc/*.[ch] extra/*/q_*.c extra/common/options.h | grep -E '<net/|qdisc/|compat/'; }
# packaging/debian/rules includes extra/debian/rules.mk if it is there.
extra() {
	git grep -nE '\bextra/(common|csaqm|debian|pi2|ppv|prague)\b' -- sch_dualpi2.c Kbuild include iproute2-patch tools packaging \
		selftests/{fuzz,lib,net,tc,tdc,tools,unit} ':!packaging/debian/rules'
}
spdx() {
	local file
	for file in $(files '*.c' '*.h' '*.py' '*.sh' '*.qos' '*.service' scripts/suites.toml '*.awk' Kbuild extra/Kbuild '*.mk' Makefile .ci/run scripts/run selftests/in_vm 'selftests/*/Makefile' packaging/debian/tests ':!*/control'); do
		head -n 3 "$file" | grep 'SPDX-License-Identifier[:] GPL-2.0-only' >/dev/null || echo "$file: no SPDX line"
	done
}
not_executable() {
	local file
	for file in $(files '*/test_*.py' '*/test_*.sh'); do
		[ "$(head -c 2 "$file")" != '#!' ] || [ -x "$file" ] || echo "$file: must be executable: chmod +x"
	done
}
shell_files() { files '*.sh' '*.qos' .ci/run selftests/in_vm packaging/debian/tests ':!*/control'; }
shell() { shell_files | xargs shellcheck -f gcc; }
shell_layout() { shell_files | xargs "$DUALPI2_VENV/bin/shfmt" -d; }
# grep -q ends at the first match; what still writes to it ends with SIGPIPE, which pipefail takes for no match.
# grep >/dev/null reads to the end.
grep_quietly() { shell_files | xargs grep -nE '\| *grep (-[a-zA-Z]+ )*-[a-zA-Z]*q[a-zA-Z]* '; }
# The rules are in pyproject.toml.
types() { "$DUALPI2_VENV/bin/mypy" | grep -v '^Success'; }
python() { "$DUALPI2_VENV/bin/ruff" check --quiet --output-format concise; }
one_version() { files | grep -vxE 'sch_dualpi2\.c|scripts/requirements\.txt|docs/CHANGELOG\.md' | xargs grep -nF "$(version)"; }
blanks() { files | grep -vE '\.(png|svg|patch)$|/corpus/|^LICENSES/' | xargs grep -nE '[[:blank:]]+$'; }
# lintian refuses lines of more than 512 characters in source packages. Inputs and printed results are one line each.
long_lines() {
	files | grep -vE '\.(json|png|svg|patch)$|/corpus/|^selftests/tc/printed\.txt$|^LICENSES/|^evaluation/.*\.csv$' | xargs grep -HnIE '.{501}' |
		awk -F: '{ print $1 ":" $2 ": more than 500 characters; wrap the line or move the text out of the table" }'
}
hosts() { files | grep -vE '^(docs/|README|LICENSES/|packaging/debian/copyright)' | xargs grep -nE 'https?://[a-z.]*(debian|pypi|pythonhosted|npmjs)'; }
# Test results are printed by scripts/ktap.sh and selftests/lib/ktap.py; in C by unit.c and test_q_dualpi2.c.
writers() {
	files '*.py' '*.sh' scripts/run | grep -vxE 'scripts/(ktap|style)\.sh|selftests/lib/(test_)?ktap\.py|selftests/kselftest/.*' |
		xargs grep -nE '^[^#]*(echo|print[a-z]*)[ (]*[a-z]*["'"'"'](not )?ok[ "'"'"']|(echo|print[a-z]*)[ (]*f?["'"'"']1\.\.'
}
conformance() { "$DUALPI2_VENV/bin/python" scripts/conformance.py --check; }
option_lists() {
	python3 -B scripts/gen-options.py --check
	scripts/gen-completion.py --check
}

# Not errors are the words in codespell.txt: a codepoint, a conference, macros of manuals, an optical line terminal, the kernel's ABI.
spelling() { files README.md docs '*.8' packaging tools iproute2-patch | xargs codespell -I scripts/codespell.txt; }

plan 25
rule "version_tests_only_in_compat" versions
rule "algorithm_without_kernel_code" kernel_code
rule "file_scope_names_have_the_prefix" prefix
rule "tc_includes_only_the_uapi_header" uapi_only
rule "product_without_what_is_in_extra" extra
rule "every_source_has_a_licence" spdx
rule "test_programs_are_executable" not_executable
rule "pipes_do_not_end_in_grep_q" grep_quietly
rule "shell_scripts_pass_shellcheck" shell
rule "shell_scripts_are_formatted_by_shfmt" shell_layout
rule "python_passes_ruff" python
rule "netlink_reader_passes_mypy" types
rule "no_blanks_at_line_ends" blanks
rule "no_line_over_500_characters" long_lines
rule "no_archive_address_written_down" hosts
rule "version_in_one_place" one_version
rule "functions_and_files_are_short" scripts/sizes.py
rule "conformance_page_is_up_to_date" conformance
rule "manual_and_completion_have_the_options" option_lists
rule "ktap_comes_from_one_writer_in_each_language" writers
rule "documents_are_spelled_correctly" spelling
rule "links_of_documents_lead_somewhere" scripts/prose.py links
rule "long_pages_have_contents" scripts/prose.py contents
rule "shell_blocks_of_documents_pass_shellcheck" scripts/prose.py shell
rule "terms_are_those_of_the_glossary" scripts/prose.py words
[ -z "$failed" ]
