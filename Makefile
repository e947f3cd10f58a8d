# SPDX-License-Identifier: GPL-2.0-or-later
#
#   make              every tool into bin/, every unit test into obj/t/
#   make check        build, then prove t/
#   make bench        ratios against the peers (scripts/bench)
#   make lint         clang-format, cppcheck, shellcheck, floors, CLI contract
#   make install      prefix=/usr/local DESTDIR=
#
#   O=DIR             build there instead of here      V=1   show commands
#   SAN=1             with ASan and UBSan              CI=1  warnings are errors

O ?= .
V ?=
SAN ?=

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libexecdir ?= $(prefix)/libexec
mandir ?= $(prefix)/share/man

CC ?= cc
AR ?= ar
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
INSTALL ?= install
PROVE ?= prove

BIN := $(O)/bin
OBJ := $(O)/obj

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wcast-qual -Wformat=2 -Wundef -Wvla
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -Ilib -Ibpf -isystem $(OBJ)/bpf -MMD -MP
# clang -target bpf does not look into the multiarch folder, where asm/types.h is
MULTIARCH := $(shell $(CC) -print-multiarch)
BPF_CFLAGS := -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Wshadow -Wno-unused-parameter \
	-D__TARGET_ARCH_x86 -Ibpf -idirafter /usr/include/$(MULTIARCH) -MMD -MP
LIBS := -lbpf -ldw -lelf -lcap -lz -liberty
ifneq ($(SAN),)
ALL_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ifeq ($(O),.)
BIN := bin/san
OBJ := obj/san
endif
endif
ifneq ($(CI),)
ALL_CFLAGS += -Werror
BPF_CFLAGS += -Werror
endif
LDFLAGS += -Wl,--as-needed

ifneq ($(V),)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
endif

TOOLS := $(patsubst tools/%.c,%,$(wildcard tools/*.c))
UNITS := $(patsubst t/%.c,%,$(wildcard t/unit-*.c))
WORKS := $(patsubst t/%.c,%,$(wildcard t/work-*.c))
SKELS := $(patsubst bpf/%.bpf.c,$(OBJ)/bpf/%.skel.h,$(wildcard bpf/*.bpf.c))
LIB_OBJS := $(patsubst lib/%.c,$(OBJ)/lib/%.o,$(wildcard lib/*.c))
TOOL_BINS := $(TOOLS:%=$(BIN)/%)
TEST_BINS := $(UNITS:%=$(OBJ)/t/%) $(WORKS:%=$(OBJ)/t/%)

all: $(TOOL_BINS) $(TEST_BINS)
tools: $(TOOL_BINS)

$(TOOL_BINS): $(BIN)/%: $(OBJ)/tools/%.o $(OBJ)/libstack.a
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(UNITS:%=$(OBJ)/t/%): $(OBJ)/t/%: $(OBJ)/t/%.o $(OBJ)/libstack.a
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Workloads are programs to be recorded: frame pointers kept, nothing inlined away.
$(WORKS:%=$(OBJ)/t/%): $(OBJ)/t/%: t/%.c
	@mkdir -p $(@D)
	$(say) WORK $@
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls \
		-Wall -Wextra -MMD -MP -pthread -o $@ $<

$(OBJ)/libstack.a: $(LIB_OBJS)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Whatever includes a skeleton names it; the first build has no .d files yet.
$(LIB_OBJS) $(TOOLS:%=$(OBJ)/tools/%.o) $(UNITS:%=$(OBJ)/t/%.o): | $(SKELS)

$(OBJ)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(say) BPF $@
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(OBJ)/bpf/%.skel.h: $(OBJ)/bpf/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

check: all
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) $(PROVE) $(PROVE_FLAGS) t/

# The unit tests alone: what runs under SAN=1 in CI.
check-unit: all
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) $(PROVE) $(PROVE_FLAGS) t/unit-*.t

bench: all
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) STACKTOOLS_OBJ=$(abspath $(OBJ)) sh scripts/bench

lint: tools
	$(Q)STACKTOOLS_BIN=$(abspath $(BIN)) sh scripts/lint

# fold would shadow coreutils' fold(1): it goes to libexec under its own name
# and to bin as stackfold.
install: tools
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(libexecdir)/stacktools
	$(INSTALL) $(filter-out $(BIN)/fold,$(TOOL_BINS)) $(DESTDIR)$(bindir)
	$(INSTALL) $(BIN)/fold $(DESTDIR)$(bindir)/stackfold
	$(INSTALL) $(BIN)/fold $(DESTDIR)$(libexecdir)/stacktools/fold
	for page in docs/*.[1-9]; do \
		dir=$(DESTDIR)$(mandir)/man$${page##*.}; name=$${page##*/}; \
		[ "$$name" = fold.1 ] && name=stackfold.1; \
		$(INSTALL) -d "$$dir" && $(INSTALL) -m 644 "$$page" "$$dir/$$name" || exit 1; \
	done

clean:
	rm -rf $(O)/bin $(O)/obj

.PHONY: all tools check check-unit bench lint install clean
.SECONDARY:
.DELETE_ON_ERROR:
-include $(wildcard $(OBJ)/*/*.d)
