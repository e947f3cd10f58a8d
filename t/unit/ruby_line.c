/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Line tables of Ruby: the line of each instruction is what Ruby's own
 * disassembler says, for tables that a program reads from its own memory.
 */
#include "base/base.h"
#include "base/tap.h"
#include "record/ruby.h"
#include "../lib/edge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Prints for each instruction sequence of some files: the version, its table in hex
 * as bpf/ruby.bpf.h sends it, and POSITION:LINE of each instruction.
 */
static const char program[] =
	"require 'fiddle'\n"
	"V = RUBY_VERSION.split('.').map(&:to_i)\n"
	"INSNS = V[0] == 3 && V[1] >= 2 ? 112 : 120\n"
	"ENTRY = (V <=> [3, 1]) < 0 ? 8 : 12\n"
	"def at(a, n) n == 0 ? '' : Fiddle::Pointer.new(a)[0, n] end\n"
	"def u64(a) at(a, 8).unpack1('Q') end\n"
	"def u32(a) at(a, 4).unpack1('L') end\n"
	"def show(wrapper)\n"
	"  body = u64(u64(Fiddle.dlwrap(wrapper) + 32) + 16)\n"
	"  size, n = u32(body + 4), u32(body + INSNS + 16)\n"
	"  index = n < 2 ? 0 : size < 54 ? (size + 8) / 9 * 8 : 48 + (size - 54 + 511) / 512 * 80\n"
	"  table = [size, n].pack('LL') + at(u64(body + INSNS + 24), index) + at(u64(body + INSNS), n * "
	"ENTRY)\n"
	"  line, lines = 0, []\n"
	"  wrapper.disasm.lines.drop(1).each do |l|\n"
	"    break if l =~ /^(\\| )*== disasm/\n"
	"    next unless l =~ /^(\\d{4,}) /\n"
	"    pos = $1.to_i\n"
	"    line = $1.to_i if l =~ /\\(\\s*(\\d+)\\)(\\[\\w+\\])?$/\n"
	"    lines << \"#{pos}:#{line}\"\n"
	"  end\n"
	"  puts \"#{V[0] << 24 | V[1] << 16 | V[2] << 8} #{table.unpack1('H*')} #{lines.join(' ')}\"\n"
	"  wrapper.each_child { |c| show(c) }\n"
	"end\n"
	"%w[set optparse fileutils pp net/http/generic_request ostruct].each do |f|\n"
	"  show(RubyVM::InstructionSequence.compile_file($:.map { |d| \"#{d}/#{f}.rb\" }.find { |p| "
	"File.exist?(p) } || next))\n"
	"end\n"
	"show(RubyVM::InstructionSequence.compile(\"a = 1\\n\" * 300 + \"\\n\" * 300 + \"b = [a,\\n\" + "
	"\"\\n\" * 200 + \" a]\\n\"))\n"
	"[1, 52, 53, 54, 55, 56, 565, 566, 567].each { |n| show(RubyVM::InstructionSequence.compile('nil;' * "
	"3 + "
	"'x = 1;' * (n / 4) + \"\\n\" + 'x = 2')) }\n";

struct counts {
	unsigned long sequences, right, none, wrong, cut_wrong, cut_known, blocks;
};

/* One line of the program's output. */
static void check(char *text, struct counts *c)
{
	char *save = NULL;
	uint32_t version = (uint32_t)strtoul(strtok_r(text, " ", &save), NULL, 10);
	size_t n;
	const uint8_t *table = edge_end_hex(strtok_r(NULL, " ", &save), &n);

	c->sequences++;
	for (char *w; (w = strtok_r(NULL, " \n", &save));) {
		uint32_t at = (uint32_t)strtoul(w, &w, 10), want = (uint32_t)strtoul(w + 1, NULL, 10);
		/* a position is that of the next instruction, or of anything else behind this one's first
		 * word */
		uint32_t got = ruby_line(version, 0, table, n, false, at + 1);
		uint32_t part = ruby_line(version, 0, table, n * 3 / 4, true, at + 1);

		c->blocks += at >= 54 + 512;
		if (got == want)
			c->right++;
		else if (!got) /* code that the compiler added has none; the disassembler does not say so */
			c->none++;
		else if (c->wrong++ < 5)
			printf("# version %x, position %u: got %u, want %u\n", version, at, got, want);
		c->cut_known += part != 0;
		c->cut_wrong += part && part != want;
	}
}

static void test_ruby(struct tap *t, const char *ruby)
{
	char path[] = "/tmp/unit-ruby_line.XXXXXX", command[512];
	int fd = mkstemp(path);
	struct counts c = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	if (write(fd, program, sizeof(program) - 1) < 0)
		abort();
	close(fd);
	snprintf(command, sizeof(command), "%s %s", ruby, path);
	f = popen(command, "r");
	while (f && getline(&text, &size, f) > 0)
		check(text, &c);
	if (f)
		pclose(f);
	free(text);
	unlink(path);
	tap_ok(t, c.sequences > 100 && c.right > 5000 && c.blocks > 100 && !c.wrong && c.none < c.right / 20,
		"%s: the line of each of %lu instructions is Ruby's", ruby, c.right);
	tap_ok(t, c.cut_known && !c.cut_wrong, "%s: no line is wrong if the table is cut", ruby);
}

static void test_bytes(struct tap *t)
{
	uint32_t seed = 1;
	uint64_t sum = 0;
	size_t n;

	for (int round = 0; round < 20000; round++) {
		char hex[513];
		size_t digits = (size_t)(round % 256) * 2;
		const uint8_t *table;

		for (size_t i = 0; i < digits; i++) {
			seed = seed * 1664525 + 1013904223;
			/* sizes that may fit: their upper bytes are 0 */
			hex[i] = "0123456789abcdef"[i < 16 && i % 8 > 1 ? 0 : seed >> 28];
		}
		hex[digits] = 0;
		table = edge_end_hex(hex, &n);
		for (uint32_t version = 0x02070400; version < 0x03040000; version += 0x9a00)
			sum += ruby_line(version, 0, table, n, seed & 1, seed >> 24);
	}
	tap_ok(t, sum != 0, "arbitrary bytes are read to their end and no further");
	tap_ok(t, !ruby_line(0x03010200, 7, edge_end_hex("", &n), 0, true, 3),
		"without a table there is no line");
	tap_ok(t, !ruby_line(0x03010200, 7, edge_end_hex("", &n), 0, true, SCRIPT_POSITION_NONE),
		"without a position there is none either");
}

static void test_layouts(struct tap *t)
{
	static const uint32_t known[] = { 0x0207, 0x0300, 0x0301, 0x0302, 0x0303 };

	for (uint32_t v = 0x0200; v < 0x0400; v++) {
		struct runtime_file f = { .version = v << 16 };
		bool want = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			want |= v == known[i];
		if (ruby_layout(&f, 0) != want || (want && !f.ruby.frame_bytes)) {
			tap_ok(t, false, "version %x", v);
			return;
		}
	}
	tap_ok(t, true, "2.7 to 3.3 have offsets, other versions are refused");
}

int main(void)
{
	struct tap t = { 0 };
	const char *more = getenv("RUBIES");
	char *list = strdup(more ? more : "/usr/bin/ruby"), *save = NULL;

	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		if (access(p, X_OK) == 0)
			test_ruby(&t, p);
		else
			tap_skip(&t, p, "it is not there");
	}
	free(list);
	test_bytes(&t);
	test_layouts(&t);
	return tap_done(&t);
}
