/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of threads that run, at a perf clock event of each CPU. Part of offcpu.bpf.c.
 *
 * The clock (PERF_COUNT_SW_CPU_CLOCK) is a timer whose interrupt is not delayed by other work
 * but for code that runs with interrupts disabled, as sched_switch's program does: so this one uses
 * the same scratch. The interrupted thread's user registers are where a system call leaves them,
 * so its stack is walked by the same code as that of a thread that lost the CPU.
 *
 * A sample stands for one period. Periods in which the timer did not fire, as on a CPU that a
 * hypervisor had taken, are counted.
 */
#ifndef STACKTOOLS_OFFCPU_CPU_BPF_H
#define STACKTOOLS_OFFCPU_CPU_BPF_H

const volatile __u64 cpu_period_ns;

/* Add the sample of the scratch key. */
static __always_inline void account_sample(struct scratch *s, __u64 now)
{
	struct offcpu_value *v;
	__u32 zero = 0;
	void *map;

	if (single_waits && send_wait(s, now, cpu_period_ns, OFFCPU_UNKNOWN_NS)) {
		s->count.cpu_samples++;
		s->count.cpu_samples_ns += cpu_period_ns;
		return;
	}
	map = bpf_map_lookup_elem(&agg, &zero);
	v = map ? bpf_map_lookup_elem(map, &s->key) : NULL;
	if (v) {
		v->total_ns += cpu_period_ns;
		v->count++;
		v->last_ns = now;
	} else {
		struct offcpu_value first = { .total_ns = cpu_period_ns,
			.count = 1,
			.max_ns = cpu_period_ns,
			.first_ns = now,
			.last_ns = now };

		if (!map || bpf_map_update_elem(map, &s->key, &first, BPF_NOEXIST)) {
			s->count.cpu_lost++;
			return;
		}
		__sync_fetch_and_add(&inserted, 1);
	}
	s->count.cpu_samples++;
	s->count.cpu_samples_ns += cpu_period_ns;
}

static __always_inline void take_sample(
	struct bpf_perf_event_data *ctx, struct task_struct *task, struct scratch *s, __u64 now)
{
	struct offcpu_key *key = &s->key;
	struct offcpu_wait *w = wait_get(task, true);
	long n;

	*key = (struct offcpu_key){};
	if (!key_identity(key, task))
		return;
	if (!w) {
		s->count.cpu_lost++;
		return;
	}
	key->flags = OFFCPU_F_ON_CPU;
	key->name = w->names;
	if (w->announced != key->exec_id + 1)
		announce(task, w, s, key, now);
	key->kernel = no_stack(kernel_stacks ? REASON_USER_MODE : REASON_NOT_RECORDED);
	if (kernel_stacks && !arch_is_user((const __u64 *)ctx)) {
		n = bpf_get_stack(ctx, s->ev.frames, stack_bytes(KIND_KERNEL), 0);
		/* the first frame is the interrupted instruction, the others follow a call: all are looked up
		   one byte before */
		s->ev.frames[0]++;
		if (n > 0)
			key->kernel = marked_stack(s, w, &key->kernel, n, KIND_KERNEL, OFFCPU_NOT_TRACED);
	}
	key->user = user_stack(ctx, task, s, w, key, now);
	account_sample(s, now);
}

/* Has the clock of this CPU missed periods? */
static __always_inline void count_missed(struct scratch *s, __u64 now)
{
	__u64 last = s->cpu_last_ns, gone = now - last;

	s->cpu_last_ns = now;
	if (last && now > last && gone > cpu_period_ns + cpu_period_ns / 2)
		s->count.cpu_missed += (gone + cpu_period_ns / 2) / cpu_period_ns - 1;
}

SEC("clock")
int sample_cpu(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s = my_scratch();
	__u64 now;

	if (!s || hot.phase != OFFCPU_RECORDING)
		return 0;
	now = bpf_ktime_get_ns();
	count_missed(s, now);
	if (!task->pid || !wanted(task) || not_owned(task))
		return 0;
	take_sample(ctx, task, s, now);
	return 0;
}

#endif
