/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/kernparts.h"
#include "elf/debuginfo.h"

#include <errno.h>
#include <string.h>

void kernparts_init(struct kernparts *k, const struct capread *c, const struct kernparts_opts *o)
{
	*k = (struct kernparts){ .c = c, .o = *o };
}

void kernparts_free(struct kernparts *k)
{
	intern_free(&k->names);
	kmodtree_free(&k->tree);
}

uint32_t kernparts_id(struct kernparts *k, const char *module)
{
	uint32_t id;

	if (!*module || strcmp(module, "bpf") == 0)
		return 0;
	id = intern_put(&k->names, module, strlen(module) + 1);
	return id == INTERN_NONE ? UINT32_MAX : id + 1;
}

size_t kernparts_count(const struct kernparts *k)
{
	return k->names.n + 1;
}

const char *kernparts_name(const struct kernparts *k, size_t id)
{
	size_t len;

	if (id > k->names.n)
		return NULL;
	return id ? intern_text(&k->names, (uint32_t)id - 1, &len) : "";
}

/* The directories are walked once, and only where a module was seen. */
static int look(struct kernparts *k, struct err *e)
{
	const struct kmodtree_opts o = { k->o.places.symfs, k->o.places.dirs, k->o.places.n_dirs };

	if (k->looked)
		return 0;
	k->looked = true;
	return kmodtree_load(&o, k->c->host.release, &k->tree, e);
}

/* The symbols that the asks are in, each once. */
static const struct cap_ksym **symbols_of(
	const struct capread *c, const struct modhits_ask *asks, size_t n, size_t *n_ret)
{
	const struct cap_ksym **p = calloc(n + 1, sizeof(const struct cap_ksym *));
	size_t used = 0;

	for (size_t i = 0; p && i < n; i++) {
		const struct cap_ksym *s = capread_ksym(c, asks[i].offset);

		if (s && (!used || p[used - 1] != s))
			p[used++] = s;
	}
	*n_ret = used;
	return p;
}

static int find_module(struct kernparts *k, uint32_t id, const struct modhits_ask *asks, size_t n,
	struct kernpart *ret, struct err *e)
{
	struct root root = { .fd = -1 };
	struct kmodfile_opts o = {
		.tree = &k->tree, .symfs = k->o.places.symfs, .release = k->c->host.release
	};
	_cleanup_free_ const struct cap_ksym **symbols = NULL;
	size_t n_symbols;
	int rc = look(k, e);

	if (rc)
		return rc;
	symbols = symbols_of(k->c, asks, n, &n_symbols);
	if (!symbols)
		return err_nomem(e, "kernel modules");
	if (k->o.same_boot && root_open(NULL, &root, NULL) == 0)
		o.root = &root;
	rc = kmodfile_find(&o, kernparts_name(k, id), symbols, n_symbols, &ret->module, e);
	if (k->tree.cut && !ret->module.file && !*ret->module.missed)
		snprintf(ret->module.missed, sizeof(ret->module.missed),
			"the directories of modules have more files than are looked at");
	root_close(&root);
	return rc;
}

static void describe(struct kernpart *p)
{
	const char *where = p->kernel.file ? p->kernel.where : p->module.where;
	const struct elffile *f = kernpart_file(p);

	if (f && debugfile_has_info(f))
		snprintf(p->debug, sizeof(p->debug), "%s", where);
	else if (f)
		snprintf(p->missed, sizeof(p->missed), "'%s' has no debug information", where);
	else
		snprintf(p->missed, sizeof(p->missed), "%s",
			*p->kernel.missed ? p->kernel.missed : p->module.missed);
}

int kernpart_find(struct kernparts *k, uint32_t id, const struct modhits_ask *asks, size_t n,
	struct kernpart *ret, struct err *e)
{
	int rc;

	*ret = (struct kernpart){ 0 };
	rc = id ? find_module(k, id, asks, n, ret, e)
		: vmlinux_find(&k->o.places, &k->c->host, &ret->kernel, e);
	if (rc)
		return rc;
	describe(ret);
	return kernpart_file(ret) ? 1 : 0;
}

void kernpart_close(struct kernpart *p)
{
	vmlinux_close(&p->kernel);
	kmodfile_close(&p->module);
}

const struct elffile *kernpart_file(const struct kernpart *p)
{
	return p->kernel.file ? p->kernel.file : p->module.file;
}

bool kernpart_vaddr(const struct kernpart *p, uint64_t addr, uint64_t *vaddr)
{
	return p->kernel.file ? vmlinux_vaddr(&p->kernel, addr, vaddr)
			      : kmodfile_vaddr(&p->module, addr, vaddr);
}
