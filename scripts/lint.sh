#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# lint.sh - static analysis of all C here: compilers with more warnings than the build asks for, gcc's
# and clang's analyzers, sparse, coccinelle, cppcheck, checkpatch.pl, kernel-doc and codespell. KTAP on
# stdout; a finding of any of them is a failure. What is left out, and why, stands beside each. Shell and
# Python are looked at by style.sh; smatch is not, because Debian and PyPI do not have it.
#
# usage: lint.sh [RULE...]       all rules, or those named
#
# checkpatch.pl and coccinelle's scripts are the kernel's (linux-source.sh). The module is looked at with the
# headers of Debian 12's kernel, the newest that sparse 0.6.4 can read; clang looks at the programs and the
# algorithm only, because it refuses options of a kernel that gcc built.

set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
cd "$DUALPI2_ROOT" || exit 1

kernel=6.1
work=$DUALPI2_ROOT/build/lint

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

# finds PATTERN COMMAND...: the lines of its output that match; all of it, if it fails without such a line.
finds() {
	local pattern=$1 log code
	shift
	log=$(mktemp)
	"$@" >"$log" 2>&1
	code=$?
	grep -E "$pattern" "$log" | sort -u || [ "$code" -eq 0 ] || {
		cat "$log"
		echo "code $code: $*"
	}
	rm -f "$log"
}
diagnostics='(warning|error|style|performance|portability|note): .*\[|: (warning|error): |^(WARNING|ERROR|CHECK)|[Ee]rror [0-9]|command not found'

# ---- the module, in directories of its own ----

# module DIR MAKE-ARGUMENT...: what compiling says about our files. Warnings in the kernel's headers are
# not ours, and callbacks take what the kernel hands over, wanted or not: -Wno-unused-parameter.
module() {
	local out=$work/$1 part
	shift
	for part in '' --prague --extra; do
		finds "$diagnostics" scripts/build-module.sh ${part:+"$part"} "$KDIR" "$out$part" "$@"
	done | grep -v "^${KDIR%/*}/" | sed "s,${out}[^/]*/,,g"
}
module_gcc() { module gcc W=12 KCFLAGS='-Wextra -Wno-unused-parameter' CC="$KCC"; }
module_gcc_analyzer() { module analyzer KCFLAGS=-fanalyzer CC="$KCC"; }
module_sparse() { module sparse C=2 CF='-D__CHECK_ENDIAN__' CC="$KCC"; }

# ---- user space ----

include=(-std=gnu11 -DDUALPI2_PLUGIN -Iinclude/uapi -Iiproute2-patch/tc -Iselftests/unit/include
	-Iinclude "-I$work/dualpi2" -Iextra/common -Iextra/pi2 -Iextra/csaqm -Iextra/ppv -Iextra/prague -Ibuild/fuzz)
mapfile -t core < <(files iproute2-patch/tc/q_dualpi2.c 'extra/*/q_*.c')
[ ${#core[@]} -gt 0 ] || die "git lists no file in $DUALPI2_ROOT; is it a clone, and yours?"
# unit.c includes the others of its directory; trace_pc is a part of a module; proofs are in CBMC's C.
mapfile -t programs < <(files 'iproute2-patch/tc/*.c' 'selftests/tc/*.c' 'extra/*/q_*.c' 'extra/*/test_*.c' 'selftests/*.c' |
	grep -vE '(/unit/test_|^selftests/fuzz/trace_pc/|^selftests/proof/)')

each() { # COMMAND... : for each program
	local program
	for program in "${programs[@]}"; do finds "$diagnostics" "$@" "${include[@]}" "$program"; done
}
# With -O2 gcc 12 takes members for uninitialized where a struct is assigned as a whole.
user_gcc_analyzer() { each gcc -O1 -Wall -Wextra -Wno-unused-function -fanalyzer -c -o /dev/null; }
user_clang() { each clang -fsyntax-only -Wall -Wextra -Wno-unused-function; }
user_clang_analyzer() { each clang --analyze --analyzer-output text -o /dev/null; }
# Not the tests: in glibc's headers network order is no type of its own.
user_sparse() {
	local file
	for file in "$work/algorithm.c" "${core[@]}"; do finds "$diagnostics" sparse "${include[@]}" "$file"; done
}
# The algorithm and the front end, with all that clang has but for
# - conversions that lose bits: user_conversions sees what is really lost, and in the front end the fuzzer;
# - GNU C, without which there is no kernel, and its enumerators beyond int; its names of include guards; kernel-doc, which is not Doxygen's;
# - padding of structs, a function that one file does not use, comparing with a default under -Wswitch-enum,
#   and casts of netlink's own macros.
user_clang_everything() {
	local file
	for file in "$work/algorithm.c" "${core[@]}"; do
		finds "$diagnostics" clang -O2 -Weverything -Wno-implicit-int-conversion -Wno-shorten-64-to-32 \
			-Wno-sign-conversion -Wno-float-conversion -Wno-implicit-int-float-conversion -Wno-float-equal \
			-Wno-gnu -Wno-pedantic -Wno-reserved-identifier -Wno-reserved-macro-identifier -Wno-documentation-unknown-command \
			-Wno-padded -Wno-unused-function -Wno-switch-enum -Wno-cast-align -Wno-cast-qual -Wno-gnu-empty-initializer \
			-c -o /dev/null "${include[@]}" "$file"
	done
}
# Left out are opinions: two arguments of one type next to each other, names of include guards, macros whose
# argument is a type or a name, snprintf and memcpy as such; and the conversions, see above.
user_clang_tidy() {
	local file
	# One at a time: together, clang-tidy 14 finds va_list uninitialized in the second.
	for file in "$work/algorithm.c" "${core[@]}"; do
		finds "$diagnostics" clang-tidy --quiet --header-filter='.*' --checks='-*,bugprone-*,clang-analyzer-*,misc-*,performance-*,portability-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,-bugprone-macro-parentheses,-bugprone-narrowing-conversions,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,-misc-unused-parameters' \
			"$file" -- "${include[@]}"
	done
}
# Does the algorithm lose bits or a sign anywhere in the unit tests? The tests themselves may.
user_conversions() {
	local subject
	for subject in dualpi2 extra; do
		clang -O1 -g -w -fsanitize=implicit-conversion "-I$work/$subject" "${include[@]}" -o "$work/$subject/unit" \
			selftests/unit/unit.c -lm && "$work/$subject/unit" || echo "the unit tests do not pass under clang"
	done >"$work/conversions.log" 2>&1
	grep 'do not pass' "$work/conversions.log"
	grep -E '^[^ ]*(include/net|extra/[a-z0-9]*)/[a-z0-9_]*\.h:.*runtime error' "$work/conversions.log" | sort -u
}
# variableScope: the kernel declares at the head of a function; unusedStructMember: layouts, written as a whole;
# arithOperationsOnVoidPointer: GNU C, as in the kernel.
cppcheck_of() {
	finds "$diagnostics" cppcheck --quiet --inline-suppr --std=c11 --template=gcc --enable=warning,style,performance,portability \
		--suppress=variableScope --suppress=unusedStructMember --suppress=arithOperationsOnVoidPointer "$@"
}
user_cppcheck() { cppcheck_of "${include[@]:1}" "${programs[@]}"; }
# It does not know the kernel's macros, would take the struct of a header for a variable, and has callbacks differ from
# their types.
module_cppcheck() { cppcheck_of -Iinclude -D__KERNEL__ '-Dmodule_init(x)=' '-Dmodule_exit(x)=' --suppress=shadowVariable sch_dualpi2.c; }
extra_cppcheck() { cppcheck_of -Iinclude -Iextra/common -Iextra/csaqm -D__KERNEL__ '-Dmodule_init(x)=' '-Dmodule_exit(x)=' --suppress=shadowVariable --suppress=constParameter \
	extra/*/sch_*.c; }

# ---- all ----

# On the module alone: they would have the functions of the kernel used. Those without a report mode only change
# code, and those in OCaml want a compiler of it: what did not run is counted.
coccinelle() {
	local script
	find "$kernel_scripts/coccinelle" -name '*.cocci' | sort | xargs grep -l '^virtual report' |
		xargs grep -L 'script:ocaml' >"$work/cocci.list"
	xargs -a "$work/cocci.list" -I{} -P "$(nproc)" spatch --very-quiet -D report --no-show-diff \
		--include-headers --no-includes -I include --cocci-file {} sch_dualpi2.c extra/*/sch_*.c extra/*/*.h include/{net,qdisc,compat}/*.h 2>&1 |
		grep -vE '^$|^(HANDLING|SPECIAL|note|No OCaml|Using)|^warning: (line|.*should be)'
	script=$(wc -l <"$work/cocci.list")
	echo "$script of $(find "$kernel_scripts/coccinelle" -name '*.cocci' | wc -l) scripts of the kernel ran" >"$work/coccinelle.note"
}
# The types left out:
# CAMELCASE (Qdisc), BIT_MACRO (not in user space, and in the uapi), MACRO_ARG_REUSE and MACRO_ARG_PRECEDENCE
# (the arguments are names of members), EMBEDDED_FILENAME (one header stands in for another, and says so);
# ALLOC_WITH_SIZEOF (what it prefers is in the newest kernels only); LINE_SPACING in the uapi header (enum and its _MAX, as in the kernel's own).
# Of the tests: what only the kernel has (its types, strscpy, its attributes), rows of tables, LINE_SPACING (does not
# know "long double" for a type), SUSPECT_CODE_INDENT (loops over all combinations of cases), UNNECESSARY_PARENTHESES
# (gcc wants them), MULTISTATEMENT_MACRO_USE_DO_WHILE (macros that continue a loop) and MACRO_ARG_UNUSED (rows of options).
checkpatch_of() { # IGNORED FILE...
	local ignore=$1
	shift
	# It leaves a file where it stands.
	[ $# -eq 0 ] || (cd "$work" && perl "$kernel_scripts/checkpatch.pl" --no-tree --strict --terse --show-types \
		--no-summary --ignore "$ignore" --file "${@/#/$DUALPI2_ROOT/}" 2>&1) |
		grep -E ':[0-9]+: (ERROR|WARNING|CHECK)|[Ee]rror|cannot|locate' | sed "s,$DUALPI2_ROOT/,,"
}
kernels=CAMELCASE,BIT_MACRO,MACRO_ARG_REUSE,MACRO_ARG_PRECEDENCE,EMBEDDED_FILENAME,ALLOC_WITH_SIZEOF
checkpatch() {
	local list
	mapfile -t list < <(files sch_dualpi2.c 'include/net/*.h' 'include/qdisc/*.h' 'include/compat/*.h' 'iproute2-patch/tc/*.[ch]' \
		'extra/*/sch_*.c' 'extra/*/tcp_*.c' 'extra/*/q_*.c' 'extra/*/*.h' ':!extra/*_uapi.h' ':!extra/*/unit/*' ':!*/dualpi2_options.h' ':!*/tc/q_dualpi2.c' ':!*/tc/q_dualpi2_options.h')
	checkpatch_of "$kernels" "${list[@]}"
	mapfile -t list < <(files 'include/uapi/*.h' 'extra/*_uapi.h' ':!*/dualpi2_options.h')
	checkpatch_of "$kernels,LINE_SPACING" "${list[@]}"
	# A list of options is a macro that is rows, and what is made of a row needs few of its columns;
	# __printf() is the kernel's.
	mapfile -t list < <(files '*/dualpi2_options.h' iproute2-patch/tc/q_dualpi2.c iproute2-patch/tc/q_dualpi2_options.h)
	checkpatch_of "$kernels,COMPLEX_MACRO,MACRO_ARG_UNUSED,MULTISTATEMENT_MACRO_USE_DO_WHILE,TRAILING_SEMICOLON,PREFER_DEFINED_ATTRIBUTE_MACRO" "${list[@]}"
}
checkpatch_tests() {
	local list
	mapfile -t list < <(files 'selftests/tc/*.c' 'extra/*/test_*.c' 'extra/*/*_test.c' 'extra/*/unit/*' 'selftests/*.[ch]' ':!selftests/proof/*')
	checkpatch_of "$kernels,PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,STRCPY,NEW_TYPEDEFS,VOLATILE,LONG_LINE,LONG_LINE_STRING,SPLIT_STRING,LINE_SPACING,SUSPECT_CODE_INDENT,UNNECESSARY_PARENTHESES,MULTISTATEMENT_MACRO_USE_DO_WHILE,MACRO_ARG_UNUSED,COMPLEX_MACRO" "${list[@]}"
}
spelling() { files | grep -vE '^LICENSES/|/corpus/|\.png$' | xargs codespell -I scripts/codespell.txt; }
kernel_doc() { perl "$KBUILD/scripts/kernel-doc" -none -Werror include/{net,qdisc}/*.h sch_dualpi2.c extra/*/*.h extra/*/{sch,tcp}_*.c 2>&1; }

rules=(module_gcc module_gcc_analyzer module_sparse module_cppcheck extra_cppcheck user_gcc_analyzer user_clang
	user_clang_analyzer user_clang_everything user_clang_tidy user_conversions user_sparse user_cppcheck coccinelle
	checkpatch checkpatch_tests kernel_doc spelling)

if [ $# -gt 0 ]; then
	for rule in "$@"; do
		[[ " ${rules[*]} " == *" $rule "* ]] || die "unknown rule '$rule'; rules are ${rules[*]}"
	done
	rules=("$@")
fi
need gcc sparse spatch cppcheck clang clang-tidy codespell perl
source=$(scripts/linux-source.sh) || exit 1
kernel_scripts=$source/scripts
assignments=$(scripts/kernel.sh --headers "$kernel") || exit 1
eval "$assignments"
command -v "$KCC" >/dev/null || die "$KCC, which built kernel $KREL, is missing; install it"
KBUILD=$(dirname "$(realpath "$KDIR/scripts")")
rm -rf "$work"
mkdir -p "$work"
# All headers that the unit tests include, but not TCP Prague's, whose min() within min() shadows names.
sed -n 's/^#include "\(.*\)"$/\1/p' extra/{pi2,csaqm,ppv}/unit/*.[ch] | grep -v '_test\.h$' | sort -u | sed 's/.*/#include "&"/; 1i #include <net/dualpi2.h>' >"$work/algorithm.c"
for subject in dualpi2 extra; do
	make --no-print-directory -s -C selftests/unit SUBJECT="$subject" OUT="$work/$subject" generated || exit 1
done
make --no-print-directory -s build/fuzz/parser.h || exit 1

for rule in "${rules[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
	"$rule" >"$work/$rule.found" 2>&1 &
done
wait

plan "${#rules[@]}"
for rule in "${rules[@]}"; do
	[ ! -e "$work/$rule.note" ] || sed 's/^/# /' "$work/$rule.note"
	code=0
	found=$(head -n 40 "$work/$rule.found")
	[ -z "$found" ] || code=1
	# Each version has other opinions; those of Debian 12's are followed.
	[[ $code != 1 || $rule != *cppcheck || $(cppcheck --version) == 'Cppcheck 2.10' ]] ||
		{ code=77 found="found with $(cppcheck --version); Cppcheck 2.10 decides"; }
	result "$rule" "$code" "$found"
done
echo "# smatch: neither Debian nor PyPI has it, so it did not run"
[ -z "$failed" ]
