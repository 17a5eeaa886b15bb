# SPDX-License-Identifier: GPL-2.0-only
# The verbs all, run_tests, install, emit_tests and clean of a directory of tests, by the same variables as
# tools/testing/selftests/lib.mk of the kernel. Own code, and enough where there is no kernel tree; a Makefile takes the
# kernel's instead if KSFT=/path/to/tools/testing/selftests says where that is.
#
#	TEST_PROGS			programs that run as they are
#	TEST_GEN_PROGS			programs that are built in OUTPUT, and run
#	TEST_GEN_PROGS_EXTENDED, TEST_GEN_FILES		built in OUTPUT, for the others
#	TEST_FILES			what the programs need
#	OUTPUT				where to build
#	INSTALL_PATH			where `install` copies all of them to

selfdir := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
OUTPUT ?= $(CURDIR)

TEST_GEN_PROGS := $(addprefix $(OUTPUT)/,$(TEST_GEN_PROGS))
TEST_GEN_PROGS_EXTENDED := $(addprefix $(OUTPUT)/,$(TEST_GEN_PROGS_EXTENDED))
TEST_GEN_FILES := $(addprefix $(OUTPUT)/,$(TEST_GEN_FILES))
generated := $(TEST_GEN_PROGS) $(TEST_GEN_PROGS_EXTENDED) $(TEST_GEN_FILES)

all: $(generated)

run_tests: all
	@$(selfdir)/run_kselftest.sh --programs $(TEST_GEN_PROGS) $(TEST_PROGS)

install: all
	$(if $(INSTALL_PATH),,$(error INSTALL_PATH says where to install to))
	mkdir -p $(INSTALL_PATH)
	cp -pL $(TEST_PROGS) $(TEST_FILES) $(generated) $(wildcard config settings) $(INSTALL_PATH)

emit_tests:
	@for program in $(notdir $(TEST_GEN_PROGS) $(TEST_PROGS)); do echo "$(COLLECTION):$$program"; done

clean:
	rm -rf $(generated) $(EXTRA_CLEAN)

.PHONY: all run_tests install emit_tests clean
