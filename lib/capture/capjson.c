/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capjson.h"
#include "base/json.h"
#include "capture/capmode.h"

/* An error as its name; "" for none. */
static void error(struct json *j, const char *key, int32_t code)
{
	json_str(j, key, code ? err_name(code) : "");
}

static void build_id(struct json *j, const char *key, const struct cap_build_id *id)
{
	json_bytes(j, key, id->bytes, id->len);
}

/* The number of a file; null for memory of none. */
static void file(struct json *j, uint32_t number)
{
	if (number == CAP_NONE)
		json_null(j, "file");
	else
		json_u64(j, "file", number);
}

static void put_host(struct json *j, const struct cap_host *h)
{
	json_begin(j, "host", '{');
	json_str(j, "sysname", h->sysname);
	json_str(j, "release", h->release);
	json_str(j, "version", h->version);
	json_str(j, "machine", h->machine);
	json_str(j, "hostname", h->hostname);
	json_str(j, "boot_id", h->boot_id);
	json_str(j, "recorder", h->recorder);
	build_id(j, "kernel_build_id", &h->kernel_build_id);
	json_hex(j, "stext", h->stext);
	json_u64(j, "start_mono_ns", h->start_mono_ns);
	json_u64(j, "start_boot_ns", h->start_boot_ns);
	json_u64(j, "start_real_ns", h->start_real_ns);
	json_u64(j, "max_stack", h->max_stack);
	json_u64(j, "cpus", h->cpus);
	json_u64(j, "page_size", h->page_size);
	json_end(j, '}');
}

static void put_options(struct json *j, const struct capread *c)
{
	json_begin(j, "options", '[');
	for (size_t i = 0; i < c->n_options; i++) {
		json_begin(j, NULL, '{');
		json_str(j, "name", c->options[i].name);
		json_str(j, "value", c->options[i].value);
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* Null where the waits are exact. */
static void put_mode(struct json *j, const struct capread *c)
{
	struct capmode m;

	capmode_get(c, &m);
	json_str(j, "mode", m.name);
	json_str(j, "mode_tried", m.tried);
	if (!m.sampled) {
		json_null(j, "samples");
		return;
	}
	json_begin(j, "samples", '{');
	json_u64(j, "hz", m.hz);
	json_u64(j, "looks", m.looks);
	json_u64(j, "looks_late", m.late);
	json_u64(j, "looks_left_out", m.left_out);
	json_u64(j, "estimated_ns", m.estimated_ns);
	if (m.checked)
		json_u64(j, "schedstat_ns", m.schedstat_ns);
	else
		json_null(j, "schedstat_ns");
	json_end(j, '}');
}

static void put_sum(struct json *j, const struct capstats_sum *s)
{
	json_u64(j, "threads", s->threads);
	json_u64(j, "waits", s->waits);
	json_u64(j, "open", s->open);
	json_u64(j, "off_cpu_ns", s->off_ns);
	json_u64(j, "longest_ns", s->longest_ns);
	json_u64(j, "stacks", s->stacks);
}

static void put_totals(struct json *j, const struct capread *c, const struct capstats *s)
{
	json_begin(j, "totals", '{');
	put_sum(j, &s->total);
	json_u64(j, "processes", c->n_procs);
	json_u64(j, "samples", c->n_samples);
	json_u64(j, "mappings", c->n_maps);
	json_u64(j, "files", c->n_files);
	json_u64(j, "images", c->n_images);
	json_u64(j, "kernel_symbols", c->n_ksyms);
	json_u64(j, "names", c->n_names);
	json_u64(j, "jit", c->n_jits);
	json_end(j, '}');
}

static void put_procs(struct json *j, const struct capread *c, const struct capstats *s)
{
	json_begin(j, "processes", '[');
	for (size_t i = 0; i < c->n_procs; i++) {
		const struct cap_proc *p = &c->procs[i];

		json_begin(j, NULL, '{');
		json_u64(j, "pid", p->tgid);
		json_u64(j, "ns_pid", p->ns_tgid);
		json_str(j, "comm", p->comm);
		json_str(j, "exe", p->exe);
		json_bool(j, "kernel_thread", p->flags & CAP_PROC_KTHREAD);
		json_bool(j, "maps_lost", p->flags & CAP_PROC_MAPS_LOST);
		error(j, "maps_error", p->maps_error);
		json_u64(j, "start_boot_ns", p->start_boot_ns);
		json_u64(j, "image_ns", p->image_ns);
		put_sum(j, &s->procs[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_threads(struct json *j, const struct capread *c)
{
	json_begin(j, "threads", '[');
	for (size_t i = 0; i < c->n_threads; i++) {
		json_begin(j, NULL, '{');
		json_u64(j, "process", c->threads[i].proc);
		json_u64(j, "tid", c->threads[i].tid);
		json_u64(j, "ns_tid", c->threads[i].ns_tid);
		json_str(j, "comm", c->threads[i].comm);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_files(struct json *j, const struct capread *c)
{
	json_begin(j, "files", '[');
	for (size_t i = 0; i < c->n_files; i++) {
		const struct cap_file *f = &c->files[i];

		json_begin(j, NULL, '{');
		json_str(j, "path", f->path);
		build_id(j, "build_id", &f->build_id);
		json_u64(j, "dev_major", f->dev_major);
		json_u64(j, "dev_minor", f->dev_minor);
		json_u64(j, "inode", f->inode);
		json_u64(j, "size", f->size);
		json_u64(j, "mtime_ns", f->mtime_ns);
		json_bool(j, "deleted", f->flags & CAP_FILE_DELETED);
		json_bool(j, "unread", f->flags & CAP_FILE_UNREAD);
		json_bool(j, "pseudo", f->flags & CAP_FILE_PSEUDO);
		error(j, "error", f->error);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_maps(struct json *j, const struct capread *c)
{
	json_begin(j, "mappings", '[');
	for (size_t i = 0; i < c->n_maps; i++) {
		const struct cap_map *m = &c->maps[i];

		json_begin(j, NULL, '{');
		json_u64(j, "process", m->proc);
		file(j, m->file);
		json_u64(j, "from_ns", m->from_ns);
		json_hex(j, "start", m->start);
		json_hex(j, "end", m->end);
		json_hex(j, "offset", m->offset);
		json_u64(j, "prot", m->prot);
		json_u64(j, "flags", m->flags);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_groups(struct json *j, const struct capstats *s)
{
	json_begin(j, "stacks", '[');
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct capstats_group *g = &s->groups[i];

		json_begin(j, NULL, '{');
		json_str(j, "kind", capture_kind_name(g->kind));
		json_str(j, "verdict", capture_verdict_name(g->verdict));
		json_str(j, "reason", g->reason ? capture_reason_name(g->reason) : "");
		error(j, "error", g->error);
		json_u64(j, "stacks", g->stacks);
		json_u64(j, "waits", g->waits);
		json_u64(j, "off_cpu_ns", g->off_ns);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_stops(struct json *j, const struct capstops *s)
{
	json_begin(j, "stops", '[');
	for (size_t i = 0; i < s->n; i++) {
		const struct capstops_stop *k = &s->list[i];

		json_begin(j, NULL, '{');
		json_str(j, "reason", capture_reason_name(k->reason));
		json_bool(j, "mapped", k->mapped);
		file(j, k->file);
		json_hex(j, "place", k->place);
		json_u64(j, "places", k->places);
		json_u64(j, "waits", k->waits);
		json_u64(j, "off_cpu_ns", k->off_ns);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_counters(struct json *j, const struct capread *c, const char *key, bool losses)
{
	json_begin(j, key, '{');
	for (size_t i = 0; i < c->n_counters; i++)
		if ((strncmp(c->counters[i].name, "lost.", 5) == 0) == losses)
			json_u64(j, c->counters[i].name, c->counters[i].value);
	json_end(j, '}');
}

void capjson_put(
	struct out *o, const struct capread *c, const struct capstats *s, const struct capstops *stops)
{
	struct json j = { .o = o };

	json_begin(&j, NULL, '{');
	json_bool(&j, "complete", c->complete);
	json_str(&j, "damage", c->damage);
	json_u64(&j, "bytes", c->total_bytes);
	json_u64(&j, "good_bytes", c->good_bytes);
	json_u64(&j, "blocks", c->blocks);
	json_u64(&j, "unknown_blocks", c->unknown_blocks);
	json_u64(&j, "last_flush_ns", c->last_flush_ns);
	json_u64(&j, "stop_ns", c->trailer.stop_ns);
	json_str(&j, "stopped_by", c->trailer.why);
	json_u64(&j, "duration_ns", s->end_ns - c->host.start_mono_ns);
	put_host(&j, &c->host);
	put_mode(&j, c);
	put_options(&j, c);
	put_totals(&j, c, s);
	put_procs(&j, c, s);
	put_threads(&j, c);
	put_files(&j, c);
	put_maps(&j, c);
	put_groups(&j, s);
	put_stops(&j, stops);
	put_counters(&j, c, "counters", false);
	put_counters(&j, c, "lost", true);
	json_end(&j, '}');
	out_char(o, '\n');
}
