# SPDX-License-Identifier: GPL-2.0-or-later
#
#   make              every tool into bin/; unit tests and the programs of benchmarks into obj/t/
#   make offline      the tools that only read files: no BPF, for other architectures too
#   make check        build, then prove t/
#   make check-unit   build, then the unit tests alone
#   make coverage     the unit tests under ASan and UBSan, and the lines of lib/ that they reach, as pages of lcov
#   make bench        ratios against the peers (scripts/bench)
#   make vmtest       Debian's kernels 5.10 to 7.3 in virtual machines (scripts/vmtest)
#   make lint         clang-format, cppcheck, shellcheck, layers, manual, CLI contract
#   make fuzz         libFuzzer programs into obj/t/fuzz/ (clang); scripts/fuzz runs them for a minute
#   make completions  what bash, zsh and fish need to complete command lines, into obj/
#   make install      prefix=/usr/local DESTDIR=; make uninstall takes the same
#   make dist         the committed tree as stacktools-VERSION.tar.gz
#   make deb          packages for Debian 12, by a build of their own (scripts/deb)
#   make tags         for editors (universal-ctags)
#   make compile_commands.json   for clangd and other readers of C
#   make clean
#
#   O=DIR             build there instead of here      V=1   show commands
#   SAN=1             with ASan and UBSan, in bin/san  CI=1  warnings are errors
#   STATIC=1          tools that need no library where they run, in bin/static: to be copied

O ?= .
V ?=
SAN ?=
STATIC ?=

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libexecdir ?= $(prefix)/libexec
mandir ?= $(prefix)/share/man
# each shell's own folder for what packages bring
bashcompdir ?= $(prefix)/share/bash-completion/completions
zshcompdir ?= $(prefix)/share/zsh/site-functions
fishcompdir ?= $(prefix)/share/fish/vendor_completions.d

CC ?= cc
AR ?= ar
CLANG ?= clang
# in sbin, which is not in everybody's PATH
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
INSTALL ?= install
PROVE ?= prove

BIN := $(O)/bin
OBJ := $(O)/obj

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wcast-qual -Wformat=2 -Wundef -Wvla
CFLAGS ?= -O2 -g
# BPF programs and generated headers: the same for every kind of build, which share those of the plain one.
SHARED ?= $(O)/obj
ifneq ($(SAN),)
SAN_CFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ifeq ($(O),.)
BIN := bin/san
OBJ := obj/san
endif
endif
# Linked of the same objects as the others, but for one.
ifneq ($(STATIC),)
ifneq ($(SAN),)
$(error STATIC=1 and SAN=1 exclude one another)
endif
BIN := $(O)/bin/static
endif
ifneq ($(CI),)
WERROR := -Werror
endif

# The tools read files that other people wrote. _FORTIFY_SOURCE needs an optimizing compiler, and hides
# from the sanitizers what they look for. CFLAGS and LDFLAGS come later, so they have the last word.
HARD_CFLAGS = -fPIE -fstack-protector-strong $(if $(BPF_ARCH:x86=),,-fcf-protection) \
	$(if $(SAN_CFLAGS),,$(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
# A static program too is loaded at a random address. It has no symbols, since it is to be copied.
HARD_LDFLAGS = $(if $(STATIC),-static-pie -s,-pie) -Wl,-z,relro,-z,now,-z,noexecstack

# -MD and not -MMD: the skeletons are included as system headers, for the
# warnings in them are not ours, and a changed BPF program must rebuild its users.
# Debug information names sources from the top of the tree, wherever that was.
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) '-fdebug-prefix-map=$(CURDIR)=.' $(CFLAGS) $(SAN_CFLAGS) -Ilib -Ibpf \
	-isystem $(SHARED)/bpf -isystem $(SHARED)/gen
DEPS = -MD -MP
# NULL + 0 is "pointer-overflow" to clang, not to gcc, and no fault: an empty array is NULL.
FUZZ_FLAGS := -gline-tables-only -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	-fno-sanitize=pointer-overflow -Wno-everything
LINK = $(CC) $(HARD_CFLAGS) $(ALL_CFLAGS) -Wl,--as-needed $(HARD_LDFLAGS) $(LDFLAGS)
LIBS := -lbpf -lcap -lseccomp -lz -ldeflate -lzstd -llzma -liberty -lm
# archives do not say what they need
ifneq ($(STATIC),)
LIBS := -Wl,--start-group $(LIBS) -lelf -Wl,--end-group
endif

# clang -target bpf does not look into the multiarch folder, where asm/types.h is; of another machine, it is that in
# the folder that CC='aarch64-linux-gnu-gcc --sysroot=DIR' names
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
SYSROOT := $(patsubst %/,%,$(shell $(CC) -print-sysroot 2>/dev/null))
# the compiler's target, which need not be this machine
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))))
BPF_CFLAGS := -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Wshadow -Wno-unused-parameter \
	-D__TARGET_ARCH_$(BPF_ARCH) -Ibpf -idirafter $(SYSROOT)/usr/include/$(MULTIARCH)
# BTF has the names of the sources, and becomes part of the tools, which should not say where they were built.
BPF_CFLAGS += '-ffile-prefix-map=$(CURDIR)=.'

# Workloads are programs to be recorded: frame pointers kept, nothing inlined away.
WORK_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls \
	-fno-inline -Wall -Wextra -pthread

ifneq ($(V),)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
endif

# These need neither libbpf nor a running kernel, and so none of these folders. For a machine that has no unwinder
# there are no others.
OFFLINE := capinfo flame fold kallsyms-resolve stackdiff stackexport stackreport symbolize unwindinfo
TOOLS := $(if $(wildcard bpf/unwind_$(BPF_ARCH).bpf.h),$(patsubst tools/%.c,%,$(wildcard tools/*.c)),$(OFFLINE))
# the benchmarks' programs too, so that a change that breaks them is noticed
# They are not linked statically: libdw, which unit tests compare with, would need more archives than the tools.
UNITS := $(if $(STATIC),,$(patsubst t/%.c,%,$(filter-out %.bpf.c,$(wildcard t/unit/*.c t/bench/*.c))))
WORKS := $(if $(STATIC),,$(patsubst t/%.c,%,$(wildcard t/work/*.c)))
# Made of the system's own headers: see the rule.
GENERATED := $(SHARED)/gen/syscalls.h $(SHARED)/gen/kinds.h \
	$(patsubst lib/flame/%,$(SHARED)/gen/%.h,$(wildcard lib/flame/*.html lib/flame/*.css lib/flame/*.js)) \
	$(patsubst lib/flame/%,$(SHARED)/gen/%.sha256.h,$(wildcard lib/flame/*.css lib/flame/*.js))
VARIANTS := $(patsubst bpf/%.bpf.c,$(SHARED)/gen/%.gz.h,$(filter-out %-raw.bpf.c,$(wildcard bpf/offcpu-*.bpf.c)))
SKELS := $(patsubst bpf/%.bpf.c,$(SHARED)/bpf/%.skel.h,$(wildcard bpf/*.bpf.c))
LIB_OBJS := $(patsubst lib/%.c,$(OBJ)/lib/%.o,$(wildcard lib/*/*.c))
OFFLINE_OBJS := $(filter-out $(foreach dir,check procfs record stackmap,$(OBJ)/lib/$(dir)/%),$(LIB_OBJS))
TOOL_OBJS := $(TOOLS:%=$(OBJ)/tools/%.o)
UNIT_OBJS := $(UNITS:%=$(OBJ)/t/%.o)
TOOL_BINS := $(TOOLS:%=$(BIN)/%)
# Other names of a tool, by which it does something else: a link each.
LINKS = $(if $(filter offcpu-record,$(TOOLS)),oncpu-record)
LINK_BINS := $(LINKS:%=$(BIN)/%)
UNIT_BINS := $(UNITS:%=$(OBJ)/t/%)
WORK_BINS := $(WORKS:%=$(OBJ)/t/%)
FUZZ_OBJS := $(patsubst lib/%.c,$(OBJ)/fuzz/%.o,$(wildcard lib/*/*.c))
FUZZ_BINS := $(patsubst t/%.c,$(OBJ)/t/%,$(wildcard t/fuzz/*.c))

PREREQUISITES = CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)'
all: $(TOOL_BINS) $(LINK_BINS) $(OBJ)/static/loader.o $(UNIT_BINS) $(WORK_BINS) completions
# The comment at the top.
help:
	@sed -n '/^$$/q; s/^#   //p; s/^#$$//p' $(firstword $(MAKEFILE_LIST))
tools: $(TOOL_BINS) $(LINK_BINS)
$(BIN)/oncpu-record: $(BIN)/offcpu-record
	$(Q)ln -sf $(<F) $@
offline: $(OFFLINE:%=$(BIN)/%)

# Their own object of loader.c comes before the archive, which then adds none.
ifneq ($(STATIC),)
$(TOOL_BINS): $(OBJ)/static/loader.o | archives
endif
$(OBJ)/static/loader.o: lib/base/loader.c $(OBJ)/.flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(HARD_CFLAGS) $(ALL_CFLAGS) -DSTATIC $(WERROR) $(DEPS) -c -o $@ $<
archives:
	@$(PREREQUISITES) STATIC=1 sh scripts/prerequisites

$(OFFLINE:%=$(BIN)/%): $(OBJ)/liboffline.a
$(OFFLINE:%=$(BIN)/%): LIBS := $(filter-out -lbpf,$(LIBS))
$(filter-out $(OFFLINE:%=$(BIN)/%),$(TOOL_BINS)): $(OBJ)/libstack.a
$(TOOL_BINS): $(BIN)/%: $(OBJ)/tools/%.o
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

# oracles, which no tool has
$(UNIT_BINS): LIBS += -ldw -lelf
$(OBJ)/t/unit/unwindcmp: $(OBJ)/t/lib/unwindcmp.o $(OBJ)/t/lib/dwarfeval.o
$(UNIT_BINS): %: %.o $(OBJ)/libstack.a
	$(say) LINK $@
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

$(WORK_BINS): $(OBJ)/t/%: t/%.c
	@mkdir -p $(@D)
	$(say) WORK $@
	$(Q)$(CC) $(WORK_CFLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $<

$(OBJ)/libstack.a: $(LIB_OBJS)
$(OBJ)/liboffline.a: $(OFFLINE_OBJS)
$(OBJ)/libstack.a $(OBJ)/liboffline.a:
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(OBJ)/%.o: %.c $(OBJ)/.flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(HARD_CFLAGS) $(ALL_CFLAGS) $(WERROR) $(DEPS) -c -o $@ $<

# Whatever includes a skeleton names it; the first build has no .d files yet.
$(filter-out $(OFFLINE_OBJS) $(OFFLINE:%=$(OBJ)/tools/%.o),$(LIB_OBJS) $(TOOL_OBJS) $(UNIT_OBJS)): | $(SKELS) $(VARIANTS)
$(LIB_OBJS) $(TOOL_OBJS) $(UNIT_OBJS): | $(GENERATED)

$(SHARED)/bpf/%.bpf.o: bpf/%.bpf.c $(SHARED)/bpf/.flags
	@mkdir -p $(@D)
	$(say) BPF $@
	$(Q)$(CLANG) $(BPF_CFLAGS) $(WERROR) $(DEPS) -c -o $@ $<

# "gen object" leaves out what only debuggers read, which is half.
$(SHARED)/bpf/%.skel.h: $(SHARED)/bpf/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen object $(@:.skel.h=.o) $< && \
		$(BPFTOOL) gen skeleton $(@:.skel.h=.o) name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

# Part of the recorder in this form: lib/record/bpf_variants.c.
$(SHARED)/gen/%.gz.h: $(SHARED)/bpf/%.skel.h
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)gzip -9nc $(SHARED)/bpf/$*.o | od -An -v -to1 | sed 's/ /\\/g; s/.*/"&"/' >$@.tmp && mv $@.tmp $@

# Names of system calls by number, as the headers of this architecture have them.
$(SHARED)/gen/syscalls.h: $(SHARED)/bpf/.flags
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)printf '#include <asm/unistd.h>\n' | $(CC) -E -dM - | \
		sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$$/[\2] = "\1",/p' | LC_ALL=C sort >$@.tmp && \
		test -s $@.tmp && mv $@.tmp $@

# The table of kinds as a string, and what a page of flame consists of: they are part of the programs. No
# line may have what C would take for a trigraph.
as_string = sed 's/[\\"?]/\\&/g; s/.*/"&\\n"/'
$(SHARED)/gen/kinds.h: lib/symbols/kinds.table $(SHARED)/bpf/.flags
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)$(as_string) $< >$@.tmp && mv $@.tmp $@
$(SHARED)/gen/%.h: lib/flame/% $(SHARED)/bpf/.flags
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)$(as_string) $< >$@.tmp && mv $@.tmp $@
# A page's policy allows its scripts and styles by their SHA-256, in base64: three hexadecimal digits are two of it.
$(SHARED)/gen/%.sha256.h: lib/flame/% $(SHARED)/bpf/.flags
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)sha256sum $< | awk '{ digits = substr($$1, 1, 64) "00"; \
		alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"; \
		for (i = 1; i < 66; i += 3) { v = 0; \
			for (k = 0; k < 3; k++) v = 16 * v + index("0123456789abcdef", substr(digits, i + k, 1)) - 1; \
			text = text substr(alphabet, int(v / 64) + 1, 1) substr(alphabet, v % 64 + 1, 1) } \
		print "\"" substr(text, 1, 43) "=\"" }' >$@.tmp && mv $@.tmp $@

# What everything was compiled with: other flags compile everything again. The
# first time, and whenever they change, the prerequisites are looked for too.
SHARED_FLAGS_NOW := $(CC) / $(CLANG) $(subst $(CURDIR),TOP,$(BPF_CFLAGS)) / $(BPFTOOL)
FLAGS_NOW := $(subst $(CURDIR),TOP,$(subst $(SHARED),SHARED,$(subst -static-pie -s,-pie,$(LINK)))) / $(SHARED_FLAGS_NOW) / $(FUZZ_FLAGS)
$(OBJ)/.flags: NOW := $(FLAGS_NOW)
$(SHARED)/bpf/.flags: NOW := $(SHARED_FLAGS_NOW)
ifneq ($(file <$(OBJ)/.flags),$(FLAGS_NOW))
$(OBJ)/.flags: FORCE
endif
ifneq ($(file <$(SHARED)/bpf/.flags),$(SHARED_FLAGS_NOW))
$(SHARED)/bpf/.flags: FORCE
endif
$(SHARED)/bpf/.flags: | $(OBJ)/.flags
$(OBJ)/.flags $(SHARED)/bpf/.flags:
	@$(if $(filter %/bpf/.flags,$@),,$(PREREQUISITES) sh scripts/prerequisites)
	@mkdir -p $(@D) && printf '%s' '$(subst ','\'',$(NOW))' >$@

check: all
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) $(PROVE) $(PROVE_FLAGS) t/

# The unit tests alone, without the lanes of .proverc: what runs under SAN=1 in CI. One compares what unwindinfo prints.
UNIT_TESTS = t/unit/
check-unit: $(UNIT_BINS) $(BIN)/unwindinfo
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) \
		$(PROVE) --norc -Mlib=t/lib -PUnitTests -j2 --failures --comments $(PROVE_FLAGS) $(UNIT_TESTS)

# A build of its own with sanitizers and counters, the unit tests on it, pages for each file, and one line with the figure.
# What runs in a sandbox cannot write its counts, so of that code the figure has what also runs outside.
# Threads may lose a count to one another, but not a line: atomic counters take a third more time.
COVERAGE = $(abspath $(OBJ))/coverage
coverage: coverage-tests
	$(Q)$(MAKE) coverage-report
coverage-tests:
	$(Q)$(MAKE) O=$(COVERAGE) SHARED=$(SHARED) SAN=1 CFLAGS='-O2 -g --coverage' check-unit
coverage-report:
	$(Q)lcov -q -c -d $(COVERAGE)/obj -o $(COVERAGE)/all.info 2>/dev/null
	$(Q)lcov -q -e $(COVERAGE)/all.info '$(CURDIR)/lib/*' -o $(COVERAGE)/lib.info
	$(Q)genhtml -q -p '$(CURDIR)' -o $(COVERAGE)/html $(COVERAGE)/lib.info
	$(Q)lcov --summary $(COVERAGE)/lib.info 2>&1 | sed -n 's/^ *lines\.*: \(.*\)/coverage of lib\/: \1/p'
	$(say) HTML $(COVERAGE)/html/index.html

# One libFuzzer program a t/fuzz/*.c: obj/t/fuzz/NAME [-max_total_time=60] [CORPUS...]
# The library is instrumented too, in objects of its own; a finding of either sanitizer ends the run.
fuzz: $(FUZZ_BINS)

$(FUZZ_OBJS): $(OBJ)/fuzz/%.o: lib/%.c $(OBJ)/.flags | $(SKELS) $(GENERATED)
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CLANG) $(ALL_CFLAGS) $(FUZZ_FLAGS) $(DEPS) -c -o $@ $<

$(OBJ)/fuzz/libstack.a: $(FUZZ_OBJS)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(FUZZ_BINS): $(OBJ)/t/%: t/%.c $(OBJ)/fuzz/libstack.a
	@mkdir -p $(@D)
	$(say) FUZZ $@
	$(Q)$(CLANG) $(ALL_CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer $(DEPS) -MF $@.d -MT $@ -Wl,--as-needed $(LDFLAGS) \
		-o $@ $< $(OBJ)/fuzz/libstack.a $(LIBS)

bench: all
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) sh scripts/bench

vmtest: all
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) sh scripts/vmtest $(VMTEST_FLAGS)

lint: tools
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) sh scripts/lint

# fold would shadow coreutils' fold(1): it goes to libexec under its own name
# and to bin as stackfold. Its manual page is stackfold's alone, in its text too.
INSTALLED = $(patsubst fold,stackfold,$(TOOLS)) $(LINKS)
PAGES = $(INSTALLED:%=%.1) $(notdir $(wildcard docs/*.[2-9]))
# A path below DESTDIR as a word of the shell, whatever characters it has.
to = '$(subst ','\'',$(DESTDIR)$(1))'
page_of = $(call to,$(mandir)/man$(subst .,,$(suffix $(1)))/$(1))
# The tools print their completions, under the names that they are installed by. Those that are built for
# another machine do not run here: then none are made, but with RUN= what runs them, such as qemu-aarch64.
# They are of "all" so that make install has nothing to write here.
completion_of = $(call to,$(if $(filter bash,$(1)),$(bashcompdir)/$(2),$(if $(filter zsh,$(1)),$(zshcompdir)/_$(2),$(fishcompdir)/$(2).fish)))
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
SHELLS := $(if $(RUN)$(filter $(shell uname -m),$(MACHINE)),bash zsh fish)
COMPLETIONS := $(foreach shell,$(SHELLS),$(INSTALLED:%=$(OBJ)/completions/$(shell)/%))
completions: $(COMPLETIONS)
$(OBJ)/completions/stackfold: $(BIN)/fold
	@mkdir -p $(@D)
	$(Q)ln -sf $(abspath $<) $@
define completion_rule
$(OBJ)/completions/$(1)/$(2): $(if $(filter stackfold,$(2)),$(OBJ)/completions,$(BIN))/$(2)
	@mkdir -p $$(@D)
	$$(say) GEN $$@
	$$(Q)$$(RUN) $$< --completion=$(1) >$$@
endef
$(foreach shell,bash zsh fish,$(foreach tool,$(INSTALLED),$(eval $(call completion_rule,$(shell),$(tool)))))

install: tools completions
	$(Q)$(INSTALL) -d $(call to,$(bindir)) $(call to,$(libexecdir)/stacktools)
	$(Q)$(INSTALL) $(filter-out $(BIN)/fold,$(TOOL_BINS)) $(call to,$(bindir))
	$(Q)$(INSTALL) $(BIN)/fold $(call to,$(bindir)/stackfold)
	$(Q)$(foreach link,$(LINKS),ln -sf offcpu-record $(call to,$(bindir)/$(link)) &&) :
	$(Q)$(INSTALL) $(BIN)/fold $(if $(filter bpfcheck,$(TOOLS)),scripts/setup-permissions) $(call to,$(libexecdir)/stacktools)
	$(Q)$(foreach page,$(PAGES),$(INSTALL) -D -m 644 docs/$(page:stackfold.1=fold.1) $(call page_of,$(page)) &&) :
	$(Q)sed -i 's/^\.Dt FOLD/.Dt STACKFOLD/; s/^\.Nm fold$$/.Nm stackfold/; s/| fold /| stackfold /g' $(call page_of,stackfold.1)
	$(Q)$(foreach shell,$(SHELLS),$(foreach tool,$(INSTALLED),\
		$(INSTALL) -D -m 644 $(OBJ)/completions/$(shell)/$(tool) $(call completion_of,$(shell),$(tool)) &&)) :
	$(say) INSTALL $(call to,$(prefix))

# What install put there, whatever the machine, and its folder in libexec if nothing else is in it.
uninstall: TOOLS := $(patsubst tools/%.c,%,$(wildcard tools/*.c))
uninstall:
	rm -f $(foreach tool,$(INSTALLED),$(call to,$(bindir)/$(tool))) \
		$(foreach helper,fold setup-permissions,$(call to,$(libexecdir)/stacktools/$(helper))) \
		$(foreach page,$(PAGES),$(call page_of,$(page))) \
		$(foreach shell,bash zsh fish,$(foreach tool,$(INSTALLED),$(call completion_of,$(shell),$(tool))))
	$(Q)[ ! -d $(call to,$(libexecdir)/stacktools) ] || rmdir --ignore-fail-on-non-empty $(call to,$(libexecdir)/stacktools)

VERSION = $(shell sed -n 's/.*cli_version_string\[\] = "\(.*\)".*/\1/p' lib/base/cli.c)
dist:
	$(Q)git archive --prefix=stacktools-$(VERSION)/ -o $(abspath $(O))/stacktools-$(VERSION).tar.gz HEAD
	$(say) DIST $(O)/stacktools-$(VERSION).tar.gz

deb:
	$(Q)sh scripts/deb -o $(O)

tags:
	$(Q)ctags -f $(O)/tags $(wildcard lib/*/*.[ch] bpf/*.[ch] tools/*.c t/*/*.[ch])

# What the compiler is called with, for each file of C.
define compile_entry
{ "directory": "$(CURDIR)", "file": "$(2)", "output": "$(1)", "command": "$(CC) $(HARD_CFLAGS) $(ALL_CFLAGS) -c -o $(1) $(2)" }
endef
compile_commands.json: | $(SKELS) $(GENERATED)
	$(say) GEN $@
	$(file >$@,[)
	$(foreach obj,$(LIB_OBJS) $(TOOL_OBJS) $(UNIT_OBJS),$(file >>$@,$(call compile_entry,$(obj),$(obj:$(OBJ)/%.o=%.c)),))
	$(Q)sed -i '$$s/,$$/ ]/' $@

clean:
	rm -rf $(O)/bin $(O)/obj

FORCE:

.PHONY: help archives completions uninstall dist deb tags compile_commands.json fuzz all tools offline check check-unit coverage coverage-tests coverage-report bench vmtest lint install clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(sort $(wildcard $(OBJ)/*/*.d $(OBJ)/*/*/*.d $(SHARED)/bpf/*.d))
