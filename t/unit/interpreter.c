/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interpreters are recognised by their symbols: readelf and the interpreter
 * itself say the same; files that are none are not taken for one; damaged files
 * are read without harm.
 */
#include "unwind/interpreter.h"
#include "base/base.h"
#include "base/tap.h"
#include "record/hotspot.h"
#include "record/v8.h"
#include "runtime_abi.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBJVM "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"

static struct unwindtab_interpreter find(const char *path)
{
	struct unwindtab_interpreter i = { .kind = 99 };
	struct unwindtab_hotspot hotspot;
	struct elffile *f = NULL;

	if (elffile_open(AT_FDCWD, path, false, &f, NULL) == 0)
		i = interpreter_find(f, &hotspot);
	elffile_close(f);
	return i;
}

static uint64_t run(const char *command, uint64_t *second)
{
	FILE *f = popen(command, "r");
	uint64_t a = 0, b = 0;

	if (f && fscanf(f, "%" SCNx64 " %" SCNi64, &a, (int64_t *)&b) < 1)
		a = 0;
	if (f)
		pclose(f);
	if (second)
		*second = b;
	return a;
}

static uint64_t symbol(const char *path, const char *name, uint64_t *size)
{
	char command[PATH_MAX + 200];

	snprintf(command, sizeof(command),
		"readelf -W --dyn-syms %s | awk '$8 == \"%s\" { print $2, $3; exit }'", path, name);
	return run(command, size);
}

static void test_python(struct tap *t, const char *python)
{
	char path[PATH_MAX + 1], command[PATH_MAX + 200], own[PATH_MAX + 1];
	struct unwindtab_interpreter i;
	uint64_t size, state_size;
	FILE *f;

	/* the file that maps the evaluation function: the executable or libpython */
	snprintf(command, sizeof(command),
		"%s -I -c \"import sys, os; m = {l.split()[-1] for l in open('/proc/self/maps') if "
		"'libpython3.' in l};"
		"print(*m or [os.path.realpath(sys.executable)])\"",
		python);
	f = popen(command, "r");
	if (!f || fscanf(f, "%4096s", own) != 1 || !realpath(own, path))
		path[0] = 0;
	if (f)
		pclose(f);
	i = find(path);
	tap_ok(t, i.kind == RUNTIME_PYTHON, "%s is recognised: %s", python, path);
	snprintf(command, sizeof(command), "%s -I -c 'import sys; print(\"%%x\" %% sys.hexversion)'", python);
	tap_ok(t, (i.version | 0xff) == (run(command, NULL) | 0xff) && i.version,
		"%s: its version is its own", python);
	tap_ok(t,
		i.eval[0] == symbol(path, "_PyEval_EvalFrameDefault", &size) &&
			i.eval[1] - i.eval[0] == size && size,
		"%s: the evaluation function is where readelf sees it", python);
	tap_ok(t,
		i.state == symbol(path, "_PyRuntime", &state_size) && i.state && i.state_bytes == state_size,
		"%s: so is the runtime's state", python);
	if (i.version >> 16 == 0x030c) {
		snprintf(command, sizeof(command),
			"readelf -W --syms %s | awk '$8 == \"_Py_next_func_version\" { print $2, $3; exit }'",
			path);
		state_size = run(command, &size);
		tap_ok(t, i.counter && (!state_size || i.counter == state_size),
			"%s: so is what counts code objects, if it has a symbol", python);
	}
}

/* A runtime whose file is PATH: VERSION prints its version in hexadecimal digits. */
static void test_other(struct tap *t, const char *path, uint32_t kind, const char *version, const char *state,
	const char *eval)
{
	struct unwindtab_interpreter i = find(path);
	uint64_t size;

	if (access(path, X_OK) != 0) {
		tap_skip(t, path, "it is not there");
		return;
	}
	tap_ok(t, i.kind == kind, "%s is recognised", path);
	tap_ok(t, i.version == run(version, NULL) && i.version, "%s: its version is its own", path);
	tap_ok(t,
		i.eval[0] == symbol(path, eval, &size) && i.eval[1] - i.eval[0] == size && size &&
			i.state == symbol(path, state, NULL),
		"%s: %s and %s are where readelf sees them", path, eval, state);
}

/* In a program, the upper half of state_bytes leads to the first interpreter. */
static void test_perl(struct tap *t, const char *path)
{
	static const char library[] = "/usr/lib/x86_64-linux-gnu/libperl.so.5.36";
	struct unwindtab_interpreter i = find(path);
	uint64_t first = i.state + (uint64_t)(int64_t)(int32_t)(i.state_bytes >> 32);

	tap_ok(t, i.state_bytes >> 32 && first == symbol(path, "PL_curinterp", NULL),
		"%s: PL_curinterp is where readelf sees it", path);
	if (access(library, R_OK) != 0) {
		tap_skip(t, library, "it is not there");
		return;
	}
	i = find(library);
	tap_ok(t, i.kind == RUNTIME_PERL && i.state_bytes && !(i.state_bytes >> 32),
		"%s: a library says nothing about its users' interpreters", library);
}

/* A libruby. The oracle is what objdump disassembles of the functions that lead to each. */
static void test_ruby(struct tap *t, const char *path)
{
	static const char version[] =
		"/usr/bin/ruby -e 'printf(\"%x%02x%02x00\", *RUBY_VERSION.split(%q(.)).map(&:to_i))'";
	const struct unwindtab_interpreter i = find(path);
	char command[PATH_MAX + 300];

	if (access(path, R_OK) != 0) {
		tap_skip(t, path, "it is not there");
		return;
	}
	tap_ok(t, i.kind == RUNTIME_RUBY, "%s is recognised", path);
	tap_ok(t, i.version == run(version, NULL) && i.version, "%s: its version is its own", path);
	snprintf(command, sizeof(command),
		"objdump -d --no-show-raw-insn --disassemble=rb_vm_exec %s | grep -c 'call  *%" PRIx64 " '",
		path, i.eval[0]);
	tap_ok(t, run(command, NULL) >= 1, "%s: rb_vm_exec() calls the evaluation function", path);
	snprintf(command, sizeof(command),
		"readelf --debug-dump=frames-interp %s 2>/dev/null | grep -c 'pc=0*%" PRIx64
		"\\.\\.0*%" PRIx64 "$'",
		path, i.eval[0], i.eval[1]);
	tap_ok(t, run(command, NULL) == 1, "%s: it has the size that readelf sees", path);
	snprintf(command, sizeof(command),
		"readelf -rW %s | awk '$3 == \"R_X86_64_DTPMOD64\"' | grep -c '^0*%" PRIx64 "'", path,
		i.state);
	tap_ok(t, i.thread_way == RUBY_THREAD_MODULE && run(command, NULL) == 1,
		"%s: the thread's variable is in a block that the dynamic linker numbers", path);
	snprintf(command, sizeof(command),
		"objdump -d --no-show-raw-insn --disassemble=rb_sym_all_symbols %s | grep -c '# %" PRIx64
		" '",
		path, i.names);
	tap_ok(t, run(command, NULL) == 2, "%s: the table of symbols is used twice where all are listed",
		path);
}

static void test_damage(struct tap *t, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t len = lseek(fd, 0, SEEK_END);
	uint8_t *bytes = malloc((size_t)len);
	unsigned int seed = 1, found = 0, tried = 0;
	struct unwindtab_hotspot hotspot;

	if (!bytes || pread(fd, bytes, (size_t)len, 0) != len)
		abort();
	close(fd);
	for (int round = 0; round < 1500; round++) {
		size_t at[8];
		uint8_t old[8];
		struct elffile *f = NULL;

		for (size_t k = 0; k < 8; k++) {
			seed = seed * 1664525 + 1013904223;
			/* behind the headers: the hash table, the symbols and their names */
			at[k] = 1000 + (seed >> 8) % (round % 2 ? 200000 : 3000);
			old[k] = bytes[at[k]];
			bytes[at[k]] = (uint8_t)(seed >> 20);
		}
		if (elffile_image(bytes, (size_t)len, &f, NULL) == 0) {
			tried++;
			found += interpreter_find(f, &hotspot).kind == RUNTIME_PYTHON;
		}
		elffile_close(f);
		for (size_t k = 8; k-- > 0;)
			bytes[at[k]] = old[k];
	}
	tap_ok(t, tried > 500 && found, "damaged files are read without harm (%u, %u of them recognised)",
		tried, found);
	free(bytes);
}

/* The value of SYMBOL in .symtab, which Debian's libjvm has. */
static uint64_t local_symbol(const char *path, const char *name)
{
	char command[PATH_MAX + 200];

	snprintf(command, sizeof(command), "nm %s | awk '$3 == \"%s\" { print $1; exit }'", path, name);
	return run(command, NULL);
}

static bool find_jvm(struct elffile *f, struct unwindtab_interpreter *i, struct unwindtab_hotspot *h)
{
	*i = interpreter_find(f, h);
	return i->kind == RUNTIME_JAVA;
}

static void test_java(struct tap *t, const char *path)
{
	struct unwindtab_hotspot h, other;
	struct unwindtab_interpreter i = { 0 };
	struct runtime_file version;
	struct hotspot_file layout;
	struct elffile *f = NULL;
	char command[PATH_MAX + 200];
	uint64_t major, update;

	if (elffile_open(AT_FDCWD, path, false, &f, NULL) != 0) {
		tap_ok(t, true, "no libjvm # SKIP no Java 17 of Debian");
		return;
	}
	tap_ok(t, find_jvm(f, &i, &h), "libjvm is recognised");
	snprintf(command, sizeof(command),
		"strings -a %s | sed -n 's/^\\([0-9]*\\)\\.0\\.\\([0-9]*\\)[0-9.]*+.*Debian.*/0x\\1 "
		"\\2/p' | "
		"head -1",
		path);
	major = run(command, &update);
	tap_ok(t, major == 0x17 && i.version == (17u << 24 | (uint32_t)update << 8),
		"its version is that of the string in it (%x)", i.version);
	tap_ok(t,
		h.heaps && h.heaps == local_symbol(path, "_ZN9CodeCache6_heapsE") &&
			h.call_return ==
				local_symbol(path, "_ZN12StubRoutines25_call_stub_return_addressE") &&
			h.interpreter == local_symbol(path, "_ZN19AbstractInterpreter5_codeE"),
		"the variables are where nm sees them");
	version.version = i.version;
	tap_ok(t,
		hotspot_version(&version, 0) && hotspot_layout(i.version, &h, &layout) &&
			layout.heaps == h.heaps,
		"its layout is known");
	other = h;
	other.sizes[HOTSPOT_NMETHOD] += 8;
	tap_ok(t, !hotspot_layout(i.version, &other, &layout), "another size of a structure is refused");
	version.version = 18u << 24;
	tap_ok(t, !hotspot_version(&version, 0) && !hotspot_layout(18u << 24, &h, &layout),
		"a version that is not in the table is refused");
	tap_ok(t,
		!hotspot_layout(11u << 24, &h, &layout) && !hotspot_layout(21u << 24, &h, &layout) &&
			!hotspot_layout(25u << 24, &h, &layout),
		"the layout of another version is refused");
	elffile_close(f);
}

/* Damage to the tables of libjvm or libruby and what is around them must not be followed anywhere. */
static void test_data_damage(struct tap *t, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t len = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	uint8_t *bytes = len ? malloc((size_t)len) : NULL;
	unsigned int seed = 7, found = 0;

	for (int round = 0; bytes && round < 60; round++) {
		struct unwindtab_interpreter i;
		struct unwindtab_hotspot h;
		struct elffile *f = NULL;

		if (pread(fd, bytes, (size_t)len, 0) != len)
			abort();
		if (elffile_image(bytes, (size_t)len, &f, NULL) != 0)
			abort();
		for (size_t s = 0; s < f->n_sections; s++) {
			const struct elffile_section *x = &f->sections[s];

			/* .rela.dyn, .data: many words, anywhere */
			if (!(x->type == SHT_RELA || (x->type == SHT_PROGBITS && (x->flags & SHF_WRITE))))
				continue;
			for (uint64_t k = 0; k < x->size / (round < 30 ? 4000 : 100); k++) {
				seed = seed * 1664525 + 1013904223;
				bytes[x->offset + seed % x->size] = (uint8_t)(seed >> 20);
			}
		}
		i = interpreter_find(f, &h);
		if (i.kind == RUNTIME_JAVA)
			found += find_jvm(f, &i, &h);
		else
			found += i.kind == RUNTIME_RUBY;
		elffile_close(f);
	}
	tap_ok(t, !bytes || found, "if it is damaged, %s is read without harm", path);
	free(bytes);
	if (fd >= 0)
		close(fd);
}

/* Compile a program with what proves CPython, with OPTIONS. False if that failed. */
static bool compile(const char *program, const char *options)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "cc -O2 -rdynamic %s -o %s t/data/python/split.c && echo 1",
		options, program);
	return run(command, NULL) == 1;
}

/* The part of the evaluation function that the compiler moved elsewhere, with and without .symtab. */
static void test_split(struct tap *t)
{
	char folder[] = "/tmp/interpreter.XXXXXX", program[64], command[PATH_MAX];
	struct unwindtab_interpreter i;
	uint64_t start, size = 0;

	if (!mkdtemp(folder))
		abort();
	snprintf(program, sizeof(program), "%s/split", folder);
	tap_ok(t,
		compile(program, "-DVERSION=0x030e0af0 -DFREE_THREADED=1") && !find(program).state_bytes &&
			compile(program, "-DVERSION=0x030e0af0 -DFREE_THREADED=0") &&
			find(program).state_bytes,
		"a build without the interpreter's lock is known by what 3.13 and later publish");
	snprintf(command, sizeof(command),
		"nm -S %s | awk '$4 == \"_PyEval_EvalFrameDefault.cold\" { print $1, \"0x\" $2 }'", program);
	start = run(command, &size);
	i = find(program);
	tap_ok(t, start && size && i.cold[0] == start && i.cold[1] == start + size,
		"the part of the evaluation function that is elsewhere is where nm sees it");
	snprintf(command, sizeof(command), "strip %s && echo 1", program);
	tap_ok(t, run(command, NULL) == 1, "the file is stripped");
	i = find(program);
	tap_ok(t, i.cold[0] == start && i.cold[1] == start + size, "and the same is found by jumps into it");
	snprintf(command, sizeof(command), "rm -rf %s && echo 1", folder);
	run(command, NULL);
}

/* What counts code objects in 3.12: FORM is that of t/data/python/counter.c. */
static uint64_t counter(const char *folder, const char *options, int form)
{
	char program[64], command[PATH_MAX];
	uint64_t ret;

	snprintf(program, sizeof(program), "%s/counter", folder);
	snprintf(command, sizeof(command),
		"cc -O2 -rdynamic %s -DFORM=%d -o %s t/data/python/counter.c && nm %s | "
		"awk '$3 == \"next_version\" { print $1 }' && strip %s",
		options, form, program, program, program);
	ret = run(command, NULL);
	return ret && find(program).kind == RUNTIME_PYTHON ? find(program).counter ^ ret : 1;
}

static void test_counter(struct tap *t)
{
	static const char *const options[] = { "-fPIE -pie", "-no-pie -fno-pie", "-O1",
		"-O3 -march=x86-64-v3" };
	char folder[] = "/tmp/interpreter.XXXXXX", command[PATH_MAX];

	if (!mkdtemp(folder))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		tap_ok(t, counter(folder, options[i], 0) == 0 && counter(folder, options[i], 1) == 0,
			"stripped, %s: what counts code objects is where nm saw it", options[i]);
		for (int form = 2; form < 5; form++) {
			snprintf(command, sizeof(command), "%s/counter", folder);
			tap_ok(t, counter(folder, options[i], form) > 1 && !find(command).counter,
				"%s: none is found if %s", options[i],
				form == 2   ? "it is not written"
				: form == 3 ? "it goes elsewhere in the object"
					    : "two are like it");
		}
	}
	snprintf(command, sizeof(command), "rm -rf %s && echo 1", folder);
	run(command, NULL);
}

/* The file of node that has V8: node itself, or Debian's library. */
static const char *node_file(void)
{
	static const char *const files[] = { "/usr/lib/x86_64-linux-gnu/libnode.so.108", "/usr/bin/node" };

	for (size_t k = 0; k < ARRAY_LEN(files); k++)
		if (find(files[k]).kind == RUNTIME_V8)
			return files[k];
	return NULL;
}

static void test_node(struct tap *t)
{
	const char *path = node_file();
	struct unwindtab_interpreter i = { 0 };
	struct runtime_file file = { 0 };
	uint64_t version, begin;

	if (!path) {
		tap_ok(t, true, "no node # SKIP no node");
		return;
	}
	i = find(path);
	version = run(
		"node -p '(v => (v[0] * 256 + +v[1]).toString(16))(process.versions.v8.split(\".\"))'", NULL);
	tap_ok(t, version && i.version == version << 16, "V8's version is what node says (%x)", i.version);
	begin = local_symbol(path, "v8_Default_embedded_blob_code_data_");
	tap_ok(t,
		i.eval[0] && i.eval[1] - i.eval[0] > 1 << 20 && i.eval[1] - i.eval[0] < 16 << 20 &&
			(!begin || begin == i.eval[0]),
		"the code of its builtins is where nm sees it, if the file has symbols");
	file.version = i.version;
	memcpy(file.eval, i.eval, sizeof(file.eval));
	memcpy(file.cold, i.cold, sizeof(file.cold));
	if (version != 0xa02 && version != 0xb03 && version != 0xc04) {
		tap_ok(t, !v8_layout(&file, i.state_bytes), "its layout is not known # SKIP another version");
		return;
	}
	tap_ok(t, v8_layout(&file, i.state_bytes) && file.v8.n_bytecodes > 150, "its layout is known");
	tap_ok(t, !v8_layout(&file, i.state_bytes ^ 1), "other constants are refused");
	file.version += 1 << 16;
	tap_ok(t, !v8_layout(&file, i.state_bytes), "another version is refused");
}

int main(void)
{
	const char *more = getenv("RUNTIME");
	char *list = strdup(more ? more : "/usr/bin/python3"), *save = NULL, python[PATH_MAX];
	struct tap t = { 0 };

	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save))
		test_python(&t, p);
	free(list);
	test_split(&t);
	test_counter(&t);
	tap_ok(&t, find("/bin/sh").kind == RUNTIME_NONE, "a shell is not a known interpreter");
	test_other(&t, "/usr/bin/php8.2", RUNTIME_PHP,
		"/usr/bin/php8.2 -n -r 'printf(\"%x%02x%02x00\", PHP_MAJOR_VERSION, PHP_MINOR_VERSION, "
		"PHP_RELEASE_VERSION);'",
		"executor_globals", "execute_ex");
	test_other(&t, "/usr/sbin/php-fpm8.2", RUNTIME_PHP,
		"/usr/sbin/php-fpm8.2 -n -v | perl -ne 'printf \"%x%02x%02x00\", $1, $2, $3 if /^PHP "
		"(\\d+)\\.(\\d+)\\.(\\d+)/'",
		"executor_globals", "execute_ex");
	test_other(&t, "/usr/bin/perl", RUNTIME_PERL,
		"/usr/bin/perl -e '$] =~ /(.)\\.(...)(...)/; printf \"%x%02x%02x00\", $1, $2, $3'",
		"PL_thr_key", "Perl_runops_standard");
	test_perl(&t, "/usr/bin/perl");
	test_ruby(&t, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1");
	tap_ok(&t, find("/proc/self/exe").kind == RUNTIME_NONE, "a program with other symbols is none");
	if (!realpath("/usr/bin/python3", python))
		python[0] = 0;
	test_damage(&t, python);
	test_java(&t, LIBJVM);
	test_data_damage(&t, LIBJVM);
	test_data_damage(&t, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1");
	test_node(&t);
	return tap_done(&t);
}
