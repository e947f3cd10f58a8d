/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capjson.h"
#include "outtext.h"

#include <inttypes.h>

/* Where a value goes: a comma comes before every one but the first of its list. */
struct json {
	struct out *o;
	bool first;
};

static void put_string(struct json *j, const char *s)
{
	out_char(j->o, '"');
	outtext_put(j->o, s, TEXT_JSON);
	out_char(j->o, '"');
}

static void comma(struct json *j)
{
	if (!j->first)
		out_char(j->o, ',');
	j->first = false;
}

static void put_key(struct json *j, const char *key)
{
	comma(j);
	if (!key)
		return;
	put_string(j, key);
	out_char(j->o, ':');
}

/* KEY NULL: an element of an array. */
static void begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	out_char(j->o, bracket);
	j->first = true;
}

static void end(struct json *j, char bracket)
{
	out_char(j->o, bracket);
	j->first = false;
}

static void str(struct json *j, const char *key, const char *s)
{
	put_key(j, key);
	put_string(j, s);
}

static void u64(struct json *j, const char *key, uint64_t v)
{
	put_key(j, key);
	out_u64(j->o, v);
}

static void boolean(struct json *j, const char *key, bool v)
{
	put_key(j, key);
	out_str(j->o, v ? "true" : "false");
}

static void hex(struct json *j, const char *key, uint64_t v)
{
	put_key(j, key);
	out_printf(j->o, "\"%" PRIx64 "\"", v);
}

/* An error as its name; "" for none. */
static void error(struct json *j, const char *key, int32_t code)
{
	str(j, key, code ? err_name(code) : "");
}

static void build_id(struct json *j, const char *key, const struct cap_build_id *id)
{
	put_key(j, key);
	out_char(j->o, '"');
	for (size_t i = 0; i < id->len; i++)
		out_printf(j->o, "%02x", id->bytes[i]);
	out_char(j->o, '"');
}

static void put_host(struct json *j, const struct cap_host *h)
{
	begin(j, "host", '{');
	str(j, "sysname", h->sysname);
	str(j, "release", h->release);
	str(j, "version", h->version);
	str(j, "machine", h->machine);
	str(j, "hostname", h->hostname);
	str(j, "boot_id", h->boot_id);
	str(j, "recorder", h->recorder);
	build_id(j, "kernel_build_id", &h->kernel_build_id);
	hex(j, "stext", h->stext);
	u64(j, "start_mono_ns", h->start_mono_ns);
	u64(j, "start_boot_ns", h->start_boot_ns);
	u64(j, "start_real_ns", h->start_real_ns);
	u64(j, "max_stack", h->max_stack);
	u64(j, "cpus", h->cpus);
	u64(j, "page_size", h->page_size);
	end(j, '}');
}

static void put_options(struct json *j, const struct capread *c)
{
	begin(j, "options", '[');
	for (size_t i = 0; i < c->n_options; i++) {
		begin(j, NULL, '{');
		str(j, "name", c->options[i].name);
		str(j, "value", c->options[i].value);
		end(j, '}');
	}
	end(j, ']');
}

static void put_sum(struct json *j, const struct capstats_sum *s)
{
	u64(j, "threads", s->threads);
	u64(j, "waits", s->waits);
	u64(j, "open", s->open);
	u64(j, "off_cpu_ns", s->off_ns);
	u64(j, "longest_ns", s->longest_ns);
	u64(j, "stacks", s->stacks);
}

static void put_totals(struct json *j, const struct capread *c, const struct capstats *s)
{
	begin(j, "totals", '{');
	put_sum(j, &s->total);
	u64(j, "processes", c->n_procs);
	u64(j, "samples", c->n_samples);
	u64(j, "mappings", c->n_maps);
	u64(j, "files", c->n_files);
	u64(j, "images", c->n_images);
	u64(j, "kernel_symbols", c->n_ksyms);
	end(j, '}');
}

static void put_procs(struct json *j, const struct capread *c, const struct capstats *s)
{
	begin(j, "processes", '[');
	for (size_t i = 0; i < c->n_procs; i++) {
		const struct cap_proc *p = &c->procs[i];

		begin(j, NULL, '{');
		u64(j, "pid", p->tgid);
		u64(j, "ns_pid", p->ns_tgid);
		str(j, "comm", p->comm);
		str(j, "exe", p->exe);
		boolean(j, "kernel_thread", p->flags & CAP_PROC_KTHREAD);
		boolean(j, "maps_lost", p->flags & CAP_PROC_MAPS_LOST);
		error(j, "maps_error", p->maps_error);
		u64(j, "start_boot_ns", p->start_boot_ns);
		u64(j, "image_ns", p->image_ns);
		put_sum(j, &s->procs[i]);
		end(j, '}');
	}
	end(j, ']');
}

static void put_threads(struct json *j, const struct capread *c)
{
	begin(j, "threads", '[');
	for (size_t i = 0; i < c->n_threads; i++) {
		begin(j, NULL, '{');
		u64(j, "process", c->threads[i].proc);
		u64(j, "tid", c->threads[i].tid);
		u64(j, "ns_tid", c->threads[i].ns_tid);
		str(j, "comm", c->threads[i].comm);
		end(j, '}');
	}
	end(j, ']');
}

static void put_files(struct json *j, const struct capread *c)
{
	begin(j, "files", '[');
	for (size_t i = 0; i < c->n_files; i++) {
		const struct cap_file *f = &c->files[i];

		begin(j, NULL, '{');
		str(j, "path", f->path);
		build_id(j, "build_id", &f->build_id);
		u64(j, "dev_major", f->dev_major);
		u64(j, "dev_minor", f->dev_minor);
		u64(j, "inode", f->inode);
		u64(j, "size", f->size);
		u64(j, "mtime_ns", f->mtime_ns);
		boolean(j, "deleted", f->flags & CAP_FILE_DELETED);
		boolean(j, "unread", f->flags & CAP_FILE_UNREAD);
		boolean(j, "pseudo", f->flags & CAP_FILE_PSEUDO);
		error(j, "error", f->error);
		end(j, '}');
	}
	end(j, ']');
}

static void put_maps(struct json *j, const struct capread *c)
{
	begin(j, "mappings", '[');
	for (size_t i = 0; i < c->n_maps; i++) {
		const struct cap_map *m = &c->maps[i];

		begin(j, NULL, '{');
		u64(j, "process", m->proc);
		put_key(j, "file");
		if (m->file == CAP_NONE)
			out_str(j->o, "null");
		else
			out_u64(j->o, m->file);
		u64(j, "from_ns", m->from_ns);
		hex(j, "start", m->start);
		hex(j, "end", m->end);
		hex(j, "offset", m->offset);
		u64(j, "prot", m->prot);
		u64(j, "flags", m->flags);
		end(j, '}');
	}
	end(j, ']');
}

static void put_groups(struct json *j, const struct capstats *s)
{
	begin(j, "stacks", '[');
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct capstats_group *g = &s->groups[i];

		begin(j, NULL, '{');
		str(j, "kind", capture_kind_name(g->kind));
		str(j, "verdict", capture_verdict_name(g->verdict));
		str(j, "reason", g->reason ? capture_reason_name(g->reason) : "");
		error(j, "error", g->error);
		u64(j, "stacks", g->stacks);
		u64(j, "waits", g->waits);
		u64(j, "off_cpu_ns", g->off_ns);
		end(j, '}');
	}
	end(j, ']');
}

static void put_stops(struct json *j, const struct capstops *s)
{
	begin(j, "stops", '[');
	for (size_t i = 0; i < s->n; i++) {
		const struct capstops_stop *k = &s->list[i];

		begin(j, NULL, '{');
		str(j, "reason", capture_reason_name(k->reason));
		boolean(j, "mapped", k->mapped);
		put_key(j, "file");
		if (k->file == CAP_NONE)
			out_str(j->o, "null");
		else
			out_u64(j->o, k->file);
		hex(j, "place", k->place);
		u64(j, "places", k->places);
		u64(j, "waits", k->waits);
		u64(j, "off_cpu_ns", k->off_ns);
		end(j, '}');
	}
	end(j, ']');
}

static void put_counters(struct json *j, const struct capread *c, const char *key, bool losses)
{
	begin(j, key, '{');
	for (size_t i = 0; i < c->n_counters; i++)
		if ((strncmp(c->counters[i].name, "lost.", 5) == 0) == losses)
			u64(j, c->counters[i].name, c->counters[i].value);
	end(j, '}');
}

void capjson_put(
	struct out *o, const struct capread *c, const struct capstats *s, const struct capstops *stops)
{
	struct json j = { o, true };

	begin(&j, NULL, '{');
	boolean(&j, "complete", c->complete);
	str(&j, "damage", c->damage);
	u64(&j, "bytes", c->total_bytes);
	u64(&j, "good_bytes", c->good_bytes);
	u64(&j, "blocks", c->blocks);
	u64(&j, "unknown_blocks", c->unknown_blocks);
	u64(&j, "last_flush_ns", c->last_flush_ns);
	u64(&j, "stop_ns", c->trailer.stop_ns);
	str(&j, "stopped_by", c->trailer.why);
	u64(&j, "duration_ns", s->end_ns - c->host.start_mono_ns);
	put_host(&j, &c->host);
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
	end(&j, '}');
	out_char(o, '\n');
}
