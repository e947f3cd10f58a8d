/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/counters.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* In the order of the report. */
static const struct counter counters[] = {
	{ "waits.seen", COUNTER_PLAIN, "wait", "waits", "recorded or not" },
	{ "waits.seen_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "waits.recorded", COUNTER_PLAIN, "wait", "waits", "in the capture" },
	{ "waits.recorded_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "waits.unwritten", COUNTER_NOTE, "wait", "waits", "seen, and not written" },
	{ "waits.unwritten_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "waits.end_estimated", COUNTER_PLAIN, "wait", "waits",
		"the kernel did not report the end, which is computed" },
	{ "waits.summed", COUNTER_NOTE, "wait or sample", "waits and samples",
		"kept as a part of sums alone: the ring buffer was nearly full" },
	{ "waits.overwritten", COUNTER_NOTE, "wait", "waits",
		"older than what --keep or --max-size keeps, or than the disk has room for" },
	{ "waits.overwritten_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "clock.back", COUNTER_PLAIN, "wait", "waits", "ended before it began, counted as 0 ns" },

	{ "cpu.samples", COUNTER_NOTE, "sample", "samples", "of what threads executed" },
	{ "cpu.samples_ns", COUNTER_PLAIN, NULL, NULL, "that these stand for" },
	{ "cpu.missed", COUNTER_NOTE, "period", "periods",
		"of a CPU's clock without a sample: it fired late, as where a hypervisor shares the CPU" },

	{ "wakers.known", COUNTER_DETAIL, "wait", "waits", "with the waker that ended it" },
	{ "wakers.missing", COUNTER_NOTE, "wait", "waits", "ended without a waker that was seen" },
	{ "wakers.no_maps", COUNTER_NOTE, "process that woke others", "processes that woke others",
		"ended before their mappings could be read: no names of their user frames" },
	{ "wakers.resent", COUNTER_PLAIN, "waker", "wakers", "sent again, as the ring buffer was full" },
	{ "wakers.no_storage", COUNTER_PLAIN, "wake-up", "wake-ups", "no task storage for its waker" },

	{ "filtered.preempted", COUNTER_NOT_RECORDED, "wait", "waits",
		"runnable throughout (--preempted records them)" },
	{ "filtered.preempted_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "filtered.state", COUNTER_NOT_RECORDED, "wait", "waits", "in a state other than --state" },
	{ "filtered.state_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "filtered.min", COUNTER_NOT_RECORDED, "wait", "waits", "shorter than --min" },
	{ "filtered.min_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "filtered.max", COUNTER_NOT_RECORDED, "wait", "waits", "longer than --max" },
	{ "filtered.max_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "filtered.owner", COUNTER_NOT_RECORDED, "wait", "waits",
		"of processes that you may not trace: this program's file capabilities are for your own "
		"processes; run it as root for all" },
	{ "filtered.hidden", COUNTER_NOT_RECORDED, "wait", "waits",
		"of processes that this kernel hides from BPF programs when they leave a CPU" },
	{ "waits.invisible", COUNTER_NOT_RECORDED, "wait", "waits",
		"of processes that this PID namespace does not show" },

	{ "procfs.samples", COUNTER_PLAIN, "sample", "samples", "of all threads" },
	{ "procfs.samples_skipped", COUNTER_NOTE, "sample", "samples",
		"not taken for lack of time, so the rate went down" },
	{ "procfs.samples_late", COUNTER_NOTE, "sample", "samples",
		"late by more than half of their period" },
	{ "procfs.sample_ns", COUNTER_PLAIN, NULL, NULL, "of CPU time, for all samples" },
	{ "procfs.sample_max_ns", COUNTER_PLAIN, NULL, NULL, "of CPU time, for the longest sample" },
	{ "procfs.threads", COUNTER_PLAIN, "thread", "threads", "sampled" },
	{ "procfs.threads_ended", COUNTER_NOTE, "thread", "threads",
		"ended: not seen after their last sample" },
	{ "procfs.estimated_ns", COUNTER_PLAIN, NULL, NULL, "off the CPU, estimated by the samples alone" },
	{ "procfs.schedstat_ns", COUNTER_PLAIN, NULL, NULL, "off the CPU, by schedstat" },
	{ "procfs.unseen", COUNTER_NOTE, "wait", "waits", "between samples; a higher -F sees more of them" },
	{ "procfs.unseen_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "procfs.unsettled_ns", COUNTER_NOTE, NULL, NULL,
		"off the CPU, but in no wait: what running threads did last is not known" },
	{ "procfs.stops", COUNTER_NOTE, "stop", "stops", "of a thread, by --ptrace" },
	{ "procfs.stopped_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "procfs.longest_stop_ns", COUNTER_NOTE, NULL, NULL, "the longest of these stops" },
	{ "procfs.not_walked", COUNTER_NOTE, "attempt", "attempts", "no user stack could be walked" },
	{ "procfs.no_wait_channel", COUNTER_PLAIN, "thread", "threads", "wait channel not readable" },
	{ "procfs.names_overflow", COUNTER_PLAIN, "name", "names",
		"of kernel functions without a number left" },

	{ "processes", COUNTER_PLAIN, "process image", "process images", "" },
	{ "processes.children", COUNTER_NOTE, "child not recorded", "children not recorded", "add --follow" },
	{ "stacks.distinct", COUNTER_PLAIN, "stack", "stacks", "distinct" },
	{ "stacks.truncated", COUNTER_NOTE, "stack", "stacks", "truncated at the depth limit" },
	{ "stacks.sampled", COUNTER_PLAIN, "wait", "waits",
		"of threads whose stacks are sampled, with stacks of their own" },
	{ "stacks.kept", COUNTER_PLAIN, "wait", "waits",
		"counted with the stacks of an earlier one at the same place" },
	{ "stacks.kernel_failed", COUNTER_DETAIL, "kernel stack", "kernel stacks", "without frames" },
	{ "stacks.kernel_walked", COUNTER_DETAIL, "kernel stack", "kernel stacks",
		"walked by the kernel's unwind table, or recognised after such a walk" },
	{ "stacks.kernel_unready", COUNTER_DETAIL, "kernel stack", "kernel stacks",
		"taken by the kernel: its unwind table was not known yet" },
	{ "stacks.kernel_outside", COUNTER_DETAIL, "kernel stack", "kernel stacks",
		"taken by the kernel: a trampoline or a tracer in it" },
	{ "stacks.kernel_interrupt", COUNTER_DETAIL, "kernel stack", "kernel stacks",
		"taken by the kernel: an interrupt in it" },
	{ "stacks.kernel_unproved", COUNTER_DETAIL, "kernel stack", "kernel stacks",
		"taken by the kernel: a frame that our walk does not take" },
	{ "stacks.kernel_compared", COUNTER_DETAIL, "kernel stack", "kernel stacks", "taken both ways" },
	{ "stacks.kernel_differ", COUNTER_NOTE, "kernel stack", "kernel stacks",
		"walked otherwise than the kernel does; none was walked from then on" },
	{ "stacks.user_recognised", COUNTER_DETAIL, "user stack", "user stacks",
		"recognised by the words that an earlier walk read" },
	{ "stacks.scripts_recognised", COUNTER_DETAIL, "user stack", "user stacks",
		"recognised with the functions of an interpreter" },
	{ "stacks.user_compared", COUNTER_DETAIL, "user stack", "user stacks",
		"recognised, and walked all the same" },
	{ "stacks.user_differ", COUNTER_NOTE, "user stack", "user stacks",
		"recognised as another one than the walk found; none was recognised from then on" },
	{ "stacks.user_failed", COUNTER_DETAIL, "user stack", "user stacks", "without frames" },
	{ "stacks.resent", COUNTER_PLAIN, "stack", "stacks", "sent again, as the ring buffer was full" },
	{ "unwind.walked_late", COUNTER_PLAIN, "wait", "waits", "walked when their unwind table had come" },
	{ "unwind.snapshots", COUNTER_PLAIN, "user stack", "user stacks", "copied, to be walked later" },
	{ "unwind.snapshots_complete", COUNTER_PLAIN, "copy", "copies", "walked to the outermost frame" },
	{ "unwind.snapshots_cut", COUNTER_PLAIN, "copy", "copies", "walked, and ended as the wait says" },
	{ "unwind.snapshots_short", COUNTER_PLAIN, "copy", "copies", "the stack is longer than the copy" },
	{ "unwind.snapshots_by_fp", COUNTER_PLAIN, "copy", "copies", "not walked: code without a table" },
	{ "unwind.snapshots_unmapped", COUNTER_PLAIN, "copy", "copies", "not walked: mappings not known" },
	{ "unwind.snapshots_late", COUNTER_PLAIN, "copy", "copies", "not walked: no table came in time" },
	{ "unwind.snapshots_no_memory", COUNTER_PLAIN, "copy", "copies", "not walked: no memory" },
	{ "unwind.snapshots_ring_full", COUNTER_PLAIN, "user stack", "user stacks",
		"not copied: the ring buffer was filling up" },
	{ "unwind.snapshots_too_many", COUNTER_PLAIN, "user stack", "user stacks",
		"not copied: the thread had too many copies" },
	{ "unwind.tables", COUNTER_DETAIL, "unwind table", "unwind tables", "in use" },
	{ "unwind.rows", COUNTER_DETAIL, "row", "rows", "in unwind tables" },
	{ "unwind.bytes", COUNTER_DETAIL, "byte", "bytes", "for unwind tables and mappings in the kernel" },
	{ "unwind.processes", COUNTER_DETAIL, "process image", "process images",
		"with mappings for the unwinder" },
	{ "unwind.files", COUNTER_DETAIL, "file", "files", "read for unwind tables" },
	{ "unwind.tables_cached", COUNTER_DETAIL, "unwind table", "unwind tables", "from the cache" },
	{ "unwind.files_bare", COUNTER_DETAIL, "file", "files", "without unwind information" },
	{ "unwind.files_failed", COUNTER_NOTE, "file", "files",
		"no unwind table could be made, most recently" },
	{ "unwind.worker_lost", COUNTER_NOTE, "process", "processes",
		"ended or not started, to make unwind tables, most recently" },
	{ "unwind.tables_dropped", COUNTER_NOTE, "unwind table", "unwind tables",
		"no room in memory (--unwind-memory raises the limit, except in mode procfs)" },
	{ "unwind.maps_cut", COUNTER_NOTE, "mapping", "mappings",
		"beyond what a process can have, or no room in memory" },
	{ "files.unread", COUNTER_NOTE, "mapped file", "mapped files",
		"not readable: their frames have no names and no unwind table" },
	{ "maps.refused", COUNTER_NOTE, "process", "processes",
		"user frames have no names: the mappings may not be read" },
	{ "names.stored", COUNTER_DETAIL, "name", "names", "stored" },
	{ "names.files", COUNTER_DETAIL, "file", "files", "with stored names" },
	{ "names.unresolved", COUNTER_DETAIL, "place", "places", "in a file, without a name" },
	{ "names.plain", COUNTER_DETAIL, "place", "places", "in a file, without inlined calls and lines" },
	{ "names.late", COUNTER_NOTE, "place", "places",
		"in a file, no name stored: no time was left to look it up" },
	{ "names.dropped", COUNTER_NOTE, "name of user code", "names of user code",
		"not stored: --max-size left no room" },
	{ "names.kernel_missing", COUNTER_PLAIN, "kernel address", "kernel addresses", "without a name" },
	{ "threads.lives_lost", COUNTER_NOTE, "thread", "threads",
		"time on the CPU not stored: no memory, or the ring buffer was full" },
	{ "names.resent", COUNTER_PLAIN, "thread name", "thread names",
		"sent again, as the ring buffer was full" },
	{ "jit.processes", COUNTER_PLAIN, "process image", "process images",
		"with frames in memory that no file names" },
	{ "jit.unseen", COUNTER_PLAIN, "process image", "process images",
		"of these: ended before their files could be read" },
	{ "jit.maps_read", COUNTER_PLAIN, "file", "files", "of JIT compilers, read" },
	{ "jit.entries_kept", COUNTER_PLAIN, "piece", "pieces", "of JIT code, stored" },
	{ "jit.bad_lines", COUNTER_PLAIN, "line or record", "lines and records", "malformed or incomplete" },
	{ "jit.refused", COUNTER_PLAIN, "file", "files", "not used: another user's, or not regular" },
	{ "jit.stale", COUNTER_PLAIN, "file", "files", "not used: from before or after the process" },
	{ "jit.failed", COUNTER_PLAIN, "file", "files", "not readable" },
	{ "jit.cut", COUNTER_PLAIN, "entry", "entries", "beyond the limits" },
	{ "scripts.processes", COUNTER_DETAIL, "process image", "process images",
		"of interpreters whose functions are shown" },
	{ "scripts.refused", COUNTER_NOTE, "process image", "process images",
		"of interpreters that are not known: their functions are not shown" },
	{ "scripts.functions", COUNTER_DETAIL, "function", "functions", "of interpreters' programs, named" },
	{ "scripts.frames", COUNTER_DETAIL, "script frame", "script frames", "distinct" },
	{ "scripts.unnamed", COUNTER_NOTE, "script frame", "script frames", "names not readable" },
	{ "scripts.resent", COUNTER_PLAIN, "stack", "stacks",
		"names of its functions could not be sent and were sent again" },
	{ "scripts.no_thread", COUNTER_NOTE, "stack", "stacks",
		"without script frames: the interpreter's state of the thread was not found" },
	{ "scripts.no_memory", COUNTER_NOTE, "stack", "stacks",
		"without script frames: the interpreter's memory was not readable" },
	{ "scripts.mismatch", COUNTER_NOTE, "stack", "stacks",
		"without script frames: they did not fit the native frames" },
	{ "broker.requests", COUNTER_PLAIN, "request", "requests", "to the process that opens files" },
	{ "helper.requests", COUNTER_PLAIN, "request", "requests", "to the process that samples threads" },

	{ "procfs.no_syscall", COUNTER_DEGRADED, "thread", "threads",
		"system call, wait channel and program counter hidden: another user's, or protected" },
	{ "procfs.no_stack", COUNTER_DEGRADED, "thread", "threads", "kernel stacks are names alone" },
	{ "procfs.unchecked", COUNTER_DEGRADED, "thread", "threads",
		"no schedstat, so waits are estimated from samples alone; schedstat needs "
		"CONFIG_SCHED_INFO" },

	{ "lost.map_full", COUNTER_LOST, "wait", "waits", "the aggregation map was full" },
	{ "lost.map_full_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "lost.cpu_samples", COUNTER_LOST, "sample", "samples", "of what threads executed: no memory" },
	{ "lost.no_storage", COUNTER_LOST, "wait", "waits", "no task storage" },
	{ "lost.begin_unseen", COUNTER_LOST, "wait", "waits", "the kernel did not report the beginning" },
	{ "lost.end_unknown", COUNTER_LOST, "wait", "waits",
		"the kernel did not report the end, and does not say when the thread ran again" },
	{ "lost.stacks", COUNTER_LOST, "sample without a stack", "samples without a stack",
		"the ring buffer was full" },
	{ "lost.threads", COUNTER_LOST, "thread", "threads", "more than can be sampled" },
	{ "lost.threads_unread", COUNTER_LOST, "thread", "threads",
		"/proc/PID/task/TID/status or stat could not be read" },
	{ "lost.process_events", COUNTER_LOST, "process event", "process events", "the buffer was full" },
	{ "lost.maps", COUNTER_LOST, "process without mappings", "processes without mappings",
		"ended, or not readable" },
	{ "lost.memory", COUNTER_LOST, "wait", "waits", "the recorder had no memory" },
	{ "lost.memory_ns", COUNTER_PLAIN, NULL, NULL, "of these" },
	{ "helper.lost", COUNTER_LOST, "sample without privileges", "samples without privileges",
		"the process that samples threads had ended" },
	{ "broker.lost", COUNTER_LOST, "file or map not opened", "files and maps not opened",
		"the process that opens them had ended" },
};

static const struct {
	const char *former, *name;
} renamed[] = {
	{ "opener.asked", "broker.requests" },
	{ "opener.lost", "broker.lost" },
	{ "looker.asked", "helper.requests" },
	{ "looker.lost", "helper.lost" },
	{ "procfs.looks", "procfs.samples" },
	{ "procfs.looks_late", "procfs.samples_late" },
	{ "procfs.looks_left_out", "procfs.samples_skipped" },
	{ "procfs.look_ns", "procfs.sample_ns" },
	{ "procfs.look_max_ns", "procfs.sample_max_ns" },
	{ "user.short.not-asked", "user.short.not-recorded" },
	{ "user.short.between-looks", "user.short.between-samples" },
};

const char *counter_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(renamed); i++)
		if (strcmp(renamed[i].former, name) == 0)
			return renamed[i].name;
	return name;
}

const struct counter *counter_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		if (strcmp(counters[i].name, name) == 0)
			return &counters[i];
	return NULL;
}

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool counter_is_loss(const char *name)
{
	const struct counter *k = counter_find(name);

	return begins(name, "lost.") || (k && k->class == COUNTER_LOST);
}

/* The counters that NAME, without its ending for nanoseconds, is added to in BAL; NULL = none. */
static uint64_t *part_of(struct counters_balance *bal, const char *name)
{
	const struct counter *k = counter_find(name);

	if (!k || !k->one || strcmp(k->one, "wait") != 0)
		return NULL;
	return strcmp(name, "waits.seen") == 0          ? &bal->seen
	       : strcmp(name, "waits.recorded") == 0    ? &bal->recorded
	       : strcmp(name, "waits.unwritten") == 0   ? &bal->unwritten
	       : strcmp(name, "waits.overwritten") == 0 ? &bal->overwritten
	       : begins(name, "filtered.")              ? &bal->filtered
	       : begins(name, "lost.")                  ? &bal->lost
							: NULL;
}

bool counters_balance(const struct cap_counter *list, size_t n, bool ns, struct counters_balance *ret)
{
	char name[64];

	*ret = (struct counters_balance){ 0 };
	for (size_t i = 0; i < n; i++) {
		const size_t len = strlen(list[i].name);
		const bool is_ns = len > 3 && strcmp(list[i].name + len - 3, "_ns") == 0;
		uint64_t *part;

		if (is_ns != ns || len >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(len - (ns ? 3 : 0)), list[i].name);
		part = part_of(ret, name);
		if (part)
			*part = add_saturating(*part, list[i].value);
	}
	return ret->seen ==
	       add_saturating(add_saturating(ret->recorded, ret->unwritten),
		       add_saturating(ret->overwritten, add_saturating(ret->filtered, ret->lost)));
}

/* Times below a millisecond are shown in microseconds: stops are that short. */
static void put_amount(struct buf *b, const struct counter *k, uint64_t value)
{
	if (k->one) {
		buftext_count(b, value, k->one, k->many);
	} else if (value < 1000000) {
		buftext_dec(b, value / 1000, 1);
		buftext_str(b, " us");
	} else {
		buftext_seconds(b, value);
	}
}

static void put_text(struct buf *b, const char *before, const char *text)
{
	if (!text || !*text)
		return;
	buftext_str(b, before);
	buftext_escaped(b, text, TEXT_LINE);
}

/* The reason or verdict that follows PREFIX in NAME; NULL if NAME does not begin with PREFIX. */
static const char *end_of(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 ? name + len : NULL;
}

bool counter_put_meaning(struct buf *b, const char *name, uint64_t value)
{
	const struct counter *k = counter_find(name);
	const char *reason = end_of(name, "user.short."), *verdict = end_of(name, "user.");

	if (k) {
		buftext_str(b, !k->one ? "ns" : value == 1 ? k->one : k->many);
		put_text(b, ": ", k->text);
	} else if (verdict) {
		buftext_str(b, value == 1 ? "wait" : "waits");
		put_text(b, ": user stack ", reason ? reason : verdict);
	}
	return k || verdict;
}

void counter_put(struct buf *b, const char *name, uint64_t value)
{
	buftext_dec(b, value, 1);
	buftext_str(b, " ");
	if (counter_put_meaning(b, name, value))
		return;
	put_text(b, "(", name);
	buftext_str(b, ")");
}

void counters_add(struct counters *c, const struct cap_counter *some, size_t n)
{
	n = MIN(n, COUNTERS_MAX - c->n);
	memcpy(c->list + c->n, some, n * sizeof(*some));
	c->n += n;
}

void counters_because(struct counters *c, const char *name, const char *why)
{
	if (c->n_because < ARRAY_LEN(c->because)) {
		c->because[c->n_because].name = name;
		c->because[c->n_because++].why = why;
	}
}

void counters_hint(struct counters *c, bool ptrace, bool admin, bool deepest)
{
	if (!ptrace) {
		counters_because(c, "maps.refused", "that takes CAP_SYS_PTRACE");
		counters_because(c, "procfs.no_syscall", "that takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH");
	}
	if (!admin)
		counters_because(c, "procfs.no_stack", "/proc/PID/stack takes CAP_SYS_ADMIN");
	if (!deepest)
		counters_because(c, "stacks.truncated", "--depth raises it");
}

static const char *why_of(const struct counters *c, const char *name)
{
	for (size_t i = 0; i < c->n_because; i++)
		if (strcmp(c->because[i].name, name) == 0)
			return c->because[i].why;
	return "";
}

static const struct cap_counter *find(const struct counters *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->list[i].name, name) == 0)
			return &c->list[i];
	return NULL;
}

uint64_t counters_get(const struct counters *c, const char *name)
{
	const struct cap_counter *k = find(c, name);

	return k ? k->value : 0;
}

void counters_write(const struct counters *c, struct cap_writer *w)
{
	char name[64];

	for (size_t i = 0; i < c->n; i++)
		cap_writer_counter(w, &c->list[i]);
	for (unsigned int v = VERDICT_COMPLETE; v <= VERDICT_TRUNCATED; v++) {
		snprintf(name, sizeof(name), "user.%s", capture_verdict_name(v));
		cap_writer_counter(w, &(struct cap_counter){ name, c->user.verdicts[v] });
	}
	for (unsigned int i = 0; i < REASON_COUNT; i++) {
		snprintf(name, sizeof(name), "user.short.%s", capture_reason_name(i));
		if (c->user.reasons[i])
			cap_writer_counter(w, &(struct cap_counter){ name, c->user.reasons[i] });
	}
}

uint64_t counters_lost(const struct counters *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		if (counters[i].class == COUNTER_LOST)
			sum += counters_get(c, counters[i].name);
	return sum;
}

static bool is_sampled(const struct counters *c)
{
	return find(c, "procfs.samples") != NULL;
}

static void put_recorded(struct buf *b, const struct counters *c, uint64_t unwritten)
{
	if (c->no_waits)
		buftext_count(b, counters_get(c, "cpu.samples"), "sample", "samples");
	else
		buftext_count(b, counters_get(c, "waits.recorded") + unwritten, "wait", "waits");
}

void counters_put_progress(struct buf *b, const struct counters *c, uint64_t ns)
{
	uint64_t tenths = ns / 100000000;

	buftext_printf(b, "%" PRIu64 ".%u s  ", tenths / 10, (unsigned int)(tenths % 10));
	if (is_sampled(c)) {
		buftext_count(b, counters_get(c, "procfs.samples"), "sample", "samples");
		buftext_str(b, "  about ");
	}
	put_recorded(b, c, counters_get(c, "waits.unwritten"));
	buftext_str(b, "  ");
	buftext_count(b, counters_get(c, "stacks.distinct"), "stack", "stacks");
	buftext_str(b, "  ");
	buftext_count(b, counters_get(c, "processes"), "process", "processes");
	buftext_str(b, "  ");
	buftext_dec(b, counters_lost(c), 1);
	buftext_str(b, " lost");
}

void counters_put_head(struct buf *b, const struct counters *c, const char *name, uint64_t ns,
	const char *path, uint64_t bytes)
{
	buftext_str(b, name);
	buftext_str(b, ": ");
	buftext_seconds(b, ns);
	buftext_str(b, is_sampled(c) ? ", about " : ", ");
	put_recorded(b, c, 0);
	buftext_str(b, " of ");
	buftext_seconds(b, counters_get(c, c->no_waits ? "cpu.samples_ns" : "waits.recorded_ns"));
	buftext_str(b, " in all, ");
	buftext_count(b, counters_get(c, "stacks.distinct"), "stack", "stacks");
	buftext_str(b, ", ");
	buftext_count(b, counters_get(c, "processes"), "process", "processes");
	buftext_str(b, "; ");
	buftext_count(b, bytes, "byte", "bytes");
	if (path) {
		buftext_str(b, " in '");
		buftext_escaped(b, path, TEXT_LINE);
		buftext_str(b, "'\n");
	} else {
		buftext_str(b, bytes == 1 ? " is lost\n" : " are lost\n");
	}
}

/* "  not recorded: 10 waits, 1.500 s: shorter than --min" */
static void put_line(struct buf *b, const struct counters *c, const struct counter *k, uint64_t value)
{
	static const char *const prefixes[] = { [COUNTER_NOT_RECORDED] = "not recorded: ",
		[COUNTER_DEGRADED] = "degraded: ",
		[COUNTER_LOST] = "lost: " };
	const struct cap_counter *ns;
	char name[64];

	buftext_str(b, "  ");
	buftext_str(b, prefixes[k->class] ? prefixes[k->class] : "");
	put_amount(b, k, value);
	snprintf(name, sizeof(name), "%s_ns", k->name);
	ns = find(c, name);
	if (ns && ns->value) {
		buftext_str(b, ", ");
		buftext_seconds(b, ns->value);
	}
	put_text(b, ": ", k->text);
	put_text(b, ": ", why_of(c, k->name));
	buftext_str(b, "\n");
}

static void put_class(struct buf *b, const struct counters *c, unsigned int classes, bool zeroes)
{
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		const struct cap_counter *k =
			classes & 1U << counters[i].class ? find(c, counters[i].name) : NULL;

		if (k && (k->value || (zeroes && counters[i].class != COUNTER_NOTE)))
			put_line(b, c, &counters[i], k->value);
	}
}

/* How the user stacks ended, of waits or of samples. */
static void put_outcomes(struct buf *b, const struct cap_outcomes *ends, const char *one, const char *many)
{
	if (!cap_outcomes_waits(ends))
		return;
	buftext_str(b, "  user stacks: ");
	cap_outcomes_put(b, ends, one, many);
	buftext_str(b, "\n");
}

/* How the user stacks of the waits ended, and how many were walked later, from copies of the stack. */
static void put_user(struct buf *b, const struct counters *c)
{
	uint64_t copied = counters_get(c, "unwind.snapshots");
	const uint64_t kept = counters_get(c, "stacks.kept"), own = counters_get(c, "stacks.sampled");

	if (!cap_outcomes_waits(&c->user))
		return;
	put_outcomes(b, &c->user, "wait", "waits");
	if (c->user.verdicts[VERDICT_UNVERIFIED]) {
		buftext_str(b,
			"  unverified: unwound partly by frame pointer, as code of JIT compilers is; frames "
			"can be missing\n");
		if (c->runtime_flags)
			put_text(b, "  ", c->runtime_flags);
		if (c->runtime_flags)
			buftext_str(b, "\n");
	}
	if (copied)
		buftext_printf(b, "  walked later, from copies of the stack: %" PRIu64 " of %" PRIu64 "\n",
			counters_get(c, "unwind.snapshots_complete") +
				counters_get(c, "unwind.snapshots_cut"),
			copied);
	if (kept)
		buftext_printf(b,
			"  sampled stacks: %.2f %% of %" PRIu64
			" waits have those of an earlier one of their thread, at the same place\n",
			100.0 * (double)kept / (double)(kept + own), kept + own);
}

void counters_put(struct buf *b, const struct counters *c, bool verbose)
{
	if (c->no_waits && !counters_get(c, "cpu.samples"))
		buftext_str(b, "  no sample: whenever the clock fired, no thread was executing, as where all "
			       "of them wait all the time; offcpu-record shows what they wait for\n");
	put_class(b, c, 1U << COUNTER_NOT_RECORDED, false);
	put_user(b, c);
	put_outcomes(b, &c->cpu, "sample", "samples");
	if (c->runtimes && *c->runtimes) {
		put_text(b, "  runtimes: ", c->runtimes);
		buftext_str(b, "\n");
	}
	put_class(b, c, 1U << COUNTER_NOTE | (verbose ? 1U << COUNTER_DETAIL : 0), verbose);
	if (verbose && c->privileges && *c->privileges) {
		put_text(b, "  privileges: ", c->privileges);
		buftext_str(b, "\n");
	}
	put_class(b, c, 1U << COUNTER_DEGRADED, false);
	if (c->degraded && *c->degraded) {
		put_text(b, "  degraded: ", c->degraded);
		buftext_str(b, "\n");
	}
	put_class(b, c, 1U << COUNTER_LOST, verbose);
	if (!verbose && !counters_lost(c))
		buftext_str(b, "  lost: nothing\n");
}
