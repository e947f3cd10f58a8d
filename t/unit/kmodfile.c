/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of kmodtree_*() and kmodfile_*() of elf/kernelfiles.h: a made module under a directory that is used
 * as the root of a machine.
 *
 *   kmodfile --make CAPTURE RELEASE < FUNCTIONS
 *
 * writes a capture of that kernel release for t/tools/symbolize-kmod.t. Each line of FUNCTIONS is "MODULE
 * NAME START SIZE FROM TO", numbers in hex: a function of SIZE bytes, and stacks with a frame for each
 * address from START + FROM to before START + TO.
 */
#include "base/tap.h"
#include "capture/writer.h"
#include "elf/kernelfiles.h"
#include "../lib/kmod-made.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#define DEPTH 100
#define T0 UINT64_C(1000000000)
#define BASE UINT64_C(0xffffffffc0100000) /* where the recorded .text was */
#define EXIT UINT64_C(0xffffffffc0300000)
#define MODULES "/lib/modules/" KMOD_RELEASE "/kernel/"
#define DEBUG_MODULES "/usr/lib/debug" MODULES

static char root_dir[PATH_MAX];
static int root_fd = -1;

/* --- a capture --- */

struct stacks {
	struct cap_writer *w;
	uint64_t frames[DEPTH];
	uint32_t len, n;
};

static void put_stack(struct stacks *s)
{
	const struct cap_stack stack = { .id = s->n + 1,
		.kind = CAPTURE_STACK_KERNEL,
		.verdict = VERDICT_COMPLETE,
		.len = s->len,
		.frames = s->frames };
	const struct cap_sample sample = { .tid = 4242,
		.kstack = stack.id,
		.ustack = 0,
		.state = 1,
		.total_ns = 1000,
		.count = 1,
		.max_ns = 1000,
		.first_ns = T0 + s->n,
		.last_ns = T0 + s->n };

	if (!s->len)
		return;
	cap_writer_stack(s->w, &stack);
	cap_writer_sample(s->w, &sample);
	s->len = 0;
	s->n++;
}

static void put_functions(struct stacks *s)
{
	char module[256], name[256];
	uint64_t start, size, from, to;

	while (scanf("%255s %255s %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, module, name, &start, &size,
		       &from, &to) == 6) {
		cap_writer_ksym(s->w, &(struct cap_ksym){ start, start + size, name, module });
		for (uint64_t at = from; at < to; at++) {
			s->frames[s->len++] = start + at;
			if (s->len == DEPTH)
				put_stack(s);
		}
	}
	put_stack(s);
}

static int make(const char *out, const char *release)
{
	const struct cap_host h = { .sysname = "Linux",
		.release = release,
		.version = "#1",
		.machine = "x86_64",
		.hostname = "there",
		.boot_id = "another",
		.recorder = "kmodfile",
		.start_mono_ns = T0,
		.max_stack = 127,
		.cpus = 2,
		.page_size = 4096 };
	const struct cap_proc p = { .tgid = 4242, .ns_tgid = 4242, .comm = "prog", .exe = "/bin/prog" };
	const struct cap_stack none = {
		.kind = CAPTURE_STACK_USER, .verdict = VERDICT_FAILED, .reason = REASON_KTHREAD
	};
	struct stacks s = { 0 };
	struct err e = { 0 };
	int rc = cap_writer_open(out, true, &s.w, &e);

	if (rc == 0) {
		cap_writer_host(s.w, &h);
		cap_writer_proc(s.w, &p);
		cap_writer_stack(s.w, &none);
		put_functions(&s);
		rc = cap_writer_finish(s.w, &(struct cap_trailer){ .stop_ns = 2 * T0, .why = "made" }, &e);
	}
	if (rc)
		fprintf(stderr, "kmodfile: %s\n", e.msg);
	cap_writer_close(s.w);
	return rc ? 2 : 0;
}

/* --- files --- */

/* Write a file of LEN bytes at PATH under the root, and create its directories. */
static void put_bytes(const char *path, const void *bytes, size_t len)
{
	char full[2 * PATH_MAX];
	int fd;

	snprintf(full, sizeof(full), "%s%s", root_dir, path);
	for (char *slash = strchr(full + strlen(root_dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		printf("Bail out! cannot write %s\n", full);
	close(fd);
}

static void put_module(const char *path, const struct kmod_image *m)
{
	put_bytes(path, m, sizeof(*m));
}

static void drop(const char *path)
{
	char full[2 * PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root_dir, path);
	unlink(full);
	for (*strrchr(full, '/') = '\0'; strlen(full) > strlen(root_dir); *strrchr(full, '/') = '\0')
		rmdir(full);
}

/* --- finding one --- */

static struct cap_ksym first = { BASE, BASE + 0x20, "first", "made_mod" },
		       second = { BASE + 0x40, BASE + 0x60, "second", "made_mod" },
		       twin2 = { BASE + 0x60, BASE + 0x100, "twin", "made_mod" },
		       leave = { EXIT, EXIT + 0x20, "leave", "made_mod" };

static int find(const struct cap_ksym *const *k, size_t n, bool loaded, struct kmodfile *ret)
{
	struct root root = { .fd = -1 };
	const struct kmodtree_opts to = { .symfs = root_fd };
	struct kmodtree tree;
	struct kmodfile_opts o = { .tree = &tree, .symfs = root_fd, .release = KMOD_RELEASE };
	int rc = kmodtree_load(&to, KMOD_RELEASE, &tree, NULL);

	if (loaded && root_open(root_dir, &root, NULL) == 0)
		o.root = &root;
	rc = rc ? rc : kmodfile_find(&o, "made_mod", k, n, ret, NULL);
	root_close(&root);
	kmodtree_free(&tree);
	return rc;
}

/* Find the file for the recorded functions `first` and `second`. */
static int find_two(struct kmodfile *ret)
{
	return find((const struct cap_ksym *[]){ &first, &second }, 2, false, ret);
}

static void missed(struct tap *t, const char *word, const char *name)
{
	struct kmodfile f;

	if (!tap_ok(t, find_two(&f) == 0 && !f.file && strstr(f.missed, word), "%s", name))
		tap_diag("%s", f.missed);
	kmodfile_close(&f);
}

static void found_at(struct tap *t, const char *path, const char *name)
{
	struct kmod_image m;
	struct kmodfile f;

	kmod_fill(&m);
	put_module(path, &m);
	tap_eq_str(t, find_two(&f) == 0 && f.file ? f.where : f.missed, path, name);
	kmodfile_close(&f);
	drop(path);
}

static void test_places(struct tap *t)
{
	struct kmodfile f;

	found_at(t, DEBUG_MODULES "fs/made_mod.ko", "a module is found where Debian puts debug files");
	found_at(t, DEBUG_MODULES "fs/made-mod.ko.debug",
		"a module is found where Fedora puts debug files, with - or _ in its name");
	found_at(t, "/usr/lib/debug/usr/lib/modules/" KMOD_RELEASE "/made_mod.ko.debug",
		"a debug file is found under /usr/lib/modules of a merged /usr");
	found_at(t, MODULES "made-mod.ko", "a module is found where the kernel loads it from");
	tap_ok(t, find_two(&f) == 0 && !f.file && !f.missed[0],
		"finding no file is not an error, and no file is reported as unused");
	kmodfile_close(&f);
	put_bytes(MODULES "made-mod.ko.xz", "x", 1);
	missed(t, "compressed", "a compressed module is not used, and the reason is reported");
	drop(MODULES "made-mod.ko.xz");
}

static void test_links(struct tap *t)
{
	struct kmod_image m;
	struct kmodfile f;
	char full[2 * PATH_MAX];

	kmod_fill(&m);
	put_module("/elsewhere/made_mod.ko", &m);
	put_bytes(MODULES "other.ko", "x", 1);
	snprintf(full, sizeof(full), "%s" MODULES "build", root_dir);
	if (symlink("/elsewhere", full) != 0)
		printf("Bail out! no symbolic link\n");
	tap_ok(t, find_two(&f) == 0 && !f.file && !f.missed[0], "a symbolic link is not followed");
	kmodfile_close(&f);
	drop(MODULES "build");
	drop(MODULES "other.ko");
	drop("/elsewhere/made_mod.ko");
}

static void test_addresses(struct tap *t)
{
	struct kmod_image m;
	struct kmodfile f;
	uint64_t a = 0, b = 0, c = 0;

	kmod_fill(&m);
	put_module(MODULES "made_mod.ko", &m);
	tap_ok(t,
		find((const struct cap_ksym *[]){ &first, &second, &leave }, 3, false, &f) == 0 && f.file &&
			kmodfile_vaddr(&f, BASE + 0x47, &a) && kmodfile_vaddr(&f, EXIT + 1, &b) && b > a,
		"the places of functions in two sections are known");
	tap_ok(t, kmodfile_vaddr(&f, BASE, &c) && a - c == 0x47,
		"addresses in one section keep their distance");
	tap_ok(t, !kmodfile_vaddr(&f, BASE + 0x58, &a),
		"the place of an address past the end of its function is not known");
	tap_ok(t, !kmodfile_vaddr(&f, BASE - 1, &a),
		"the place of an address before the first function is not known");
	kmodfile_close(&f);
	tap_ok(t,
		find((const struct cap_ksym *[]){ &twin2 }, 1, false, &f) == 0 && f.file &&
			!kmodfile_vaddr(&f, BASE + 0x61, &a),
		"the place of one of two functions with the same name is not known");
	kmodfile_close(&f);
	tap_ok(t,
		find((const struct cap_ksym *[]){ &first, &twin2 }, 2, false, &f) == 0 &&
			kmodfile_vaddr(&f, BASE + 0x61, &a) && a - c == 0x61,
		"another function of the section identifies one of two with the same name");
	kmodfile_close(&f);
	drop(MODULES "made_mod.ko");
}

static void test_wrong(struct tap *t)
{
	struct kmod_image m;
	struct kmodfile f;

	kmod_fill(&m);
	memcpy(strstr(m.modinfo + 12, "1.2.3"), "1.2.4", 5);
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "is of release 1.2.4-made", "a module of another release is not used");
	kmod_fill(&m);
	m.syms[KMOD_SECOND].st_value += 8;
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "'second' was elsewhere", "a module with other distances between functions is not used");
	kmod_fill(&m);
	m.syms[KMOD_FIRST].st_size = 0x21;
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "'first' was not as long", "a module with a function that is too long is not used");
	kmod_fill(&m);
	m.syms[KMOD_TWIN].st_value = 0x1c;
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "'first' was not as long", "a module whose next function begins too early is not used");
	kmod_fill(&m);
	m.sh[KMOD_INFO].sh_type = SHT_NOBITS;
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "no debug information", "a module without debug information is not used");
	kmod_fill(&m);
	m.sh[KMOD_MODINFO].sh_flags |= SHF_COMPRESSED;
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "compressed", "a module with a compressed .modinfo section is not used");
	kmod_fill(&m);
	m.eh.e_type = ET_DYN;
	put_module(MODULES "made_mod.ko", &m);
	missed(t, "not a kernel module", "a file that is not a kernel module is not used");
	kmod_fill(&m);
	put_module(MODULES "made_mod.ko", &m);
	put_module(MODULES "other/made_mod.ko", &m);
	missed(t, "more than one", "if two directories have the module, neither file is used");
	put_module(DEBUG_MODULES "made_mod.ko", &m);
	tap_ok(t, find_two(&f) == 0 && f.file && strcmp(f.where, DEBUG_MODULES "made_mod.ko") == 0,
		"a debug file comes before the module's own files");
	kmodfile_close(&f);
	drop(DEBUG_MODULES "made_mod.ko");
	drop(MODULES "other/made_mod.ko");
	drop(MODULES "made_mod.ko");
}

static void test_loaded(struct tap *t)
{
	static const char notes[] = "/sys/module/made_mod/notes/.note.gnu.build-id";
	const struct cap_ksym *const k[] = { &first };
	struct kmod_image m;
	struct kmodfile f;

	kmod_fill(&m);
	put_module(MODULES "made_mod.ko", &m);
	put_bytes(notes, &m.note, sizeof(m.note));
	tap_ok(t, find(k, 1, true, &f) == 0 && f.file && f.proven,
		"the build ID of the loaded module proves its file");
	kmodfile_close(&f);
	m.note.id[0] = 8;
	put_bytes(notes, &m.note, sizeof(m.note));
	tap_ok(t, find(k, 1, true, &f) == 0 && !f.file && strstr(f.missed, "another build"),
		"a file with another build ID than the loaded module is not used");
	kmodfile_close(&f);
	tap_ok(t, find(k, 1, false, &f) == 0 && f.file && !f.proven,
		"without the root of the recorded machine, the build ID is ignored");
	kmodfile_close(&f);
	drop(notes);
	drop(MODULES "made_mod.ko");
}

static void test_tree(struct tap *t)
{
	const struct kmodtree_opts o = { .symfs = root_fd };
	struct kmodtree tree;
	size_t n;

	put_bytes(MODULES "a-b.ko", "x", 1);
	put_bytes(MODULES "a-b.koala", "x", 1);
	put_bytes(MODULES ".ko", "x", 1);
	tap_ok(t, kmodtree_load(&o, "../../lib/modules/" KMOD_RELEASE, &tree, NULL) == 0 && !tree.n,
		"a release that is a path has no modules");
	kmodtree_free(&tree);
	tap_ok(t, kmodtree_load(&o, "..", &tree, NULL) == 0 && !tree.n, "the release \"..\" has no modules");
	kmodtree_free(&tree);
	tap_ok(t,
		kmodtree_load(&o, KMOD_RELEASE, &tree, NULL) == 0 && tree.n == 1 &&
			kmodtree_find(&tree, "a_b", &n) && n == 1 && !kmodtree_find(&tree, "a", &n),
		"only files named like modules are in the tree");
	kmodtree_free(&tree);
	drop(MODULES "a-b.koala");
	drop(MODULES ".ko");
	drop(MODULES "a-b.ko");
}

int main(int argc, char *argv[])
{
	const char *tmp = getenv("TMPDIR");
	struct tap t = { 0 };

	if (argc == 4 && strcmp(argv[1], "--make") == 0)
		return make(argv[2], argv[3]);
	snprintf(root_dir, sizeof(root_dir), "%s/stacktools-t.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root_dir) || (root_fd = open(root_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		printf("Bail out! no temporary directory\n");
		return 1;
	}
	test_places(&t);
	test_links(&t);
	test_addresses(&t);
	test_wrong(&t);
	test_loaded(&t);
	test_tree(&t);
	close(root_fd);
	rmdir(root_dir);
	return tap_done(&t);
}
