/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capreport.h"
#include "base/cli.h"
#include "base/json.h"
#include "base/out.h"

#include <string.h>

#define BIT(cap) (UINT64_C(1) << (cap))
#define NAME_COLUMNS 35
#define WIDTH 96

/* In the order of enum capcell_state. */
static const char marks[] = "~x.!?~";

static void put_heads(const struct captable *t, struct out *o)
{
	char line[2][2 * CAPSETS_MAX + 3] = { "", "" };

	out_printf(o, "%-*s ", NAME_COLUMNS, "");
	for (size_t user = 0; user < CAPTRIALS_USERS; user++) {
		char who[32];

		snprintf(who, sizeof(who), "as user %u", (unsigned int)t->trials.users[user].uid);
		out_printf(o, "%-*s  ", (int)t->n_sets, who);
	}
	out_printf(o, "least set\n");
	for (int row = 0; row < 2; row++) {
		for (size_t i = 0; i < t->n_sets; i++)
			line[row][i] = t->sets[i].head[row];
		out_printf(o, "%-*s %s  %s  %s\n", NAME_COLUMNS, "", line[row], line[row],
			row ? "" : "root  ordinary");
	}
}

static void put_marks(const struct captable *t, size_t user, size_t step, struct out *o)
{
	for (size_t i = 0; i < t->n_sets; i++)
		out_char(o, marks[captrials_cell(&t->trials, user, t->sets[i].caps, step).state]);
	out_str(o, "  ");
}

static const char *least_letters(const struct capleast *l, char *buf, size_t cap)
{
	if (l->found)
		return capsets_letters(l->caps, buf, cap);
	return "none";
}

static void put_step(const struct captable *t, size_t step, bool verbose, struct out *o)
{
	const struct capstep *s = &t->trials.steps.list[step];
	const char *why = t->trials.users[1].why[step];
	char root[72], ordinary[72];

	out_printf(o, "  %-*s ", NAME_COLUMNS - 2, s->does);
	for (size_t user = 0; user < CAPTRIALS_USERS; user++)
		put_marks(t, user, step, o);
	out_printf(o, "%-4s  %s\n", least_letters(&t->least[0][step], root, sizeof(root)),
		least_letters(&t->least[1][step], ordinary, sizeof(ordinary)));
	if (verbose && why[0]) {
		out_str(o, "      ");
		outtext_put(o, why, TEXT_LINE);
		out_char(o, '\n');
	}
}

static void put_legend(const struct captable *t, struct out *o)
{
	const struct capsets_cap *caps = capsets_caps();
	char name[32];

	out_printf(o, "\nSets:  - none");
	for (size_t i = 0; i < CAPSETS_CAPS; i++)
		out_printf(o, "%s%c %s", i == 3 || i == 6 ? "\n       " : "  ", caps[i].letter,
			caps_name(caps[i].cap, name, sizeof(name)));
	out_str(o, "\n       B over P: both; + over a letter: both and that; * all that bpfcheck itself has\n"
		   "Marks: x works   . refused   ! fails otherwise   ? not granted here   ~ not tried\n"
		   "Least set: - nothing is needed; # others as well, see --json; none: not with what is "
		   "granted\n");
	for (size_t user = 0; user < CAPTRIALS_USERS; user++)
		if (t->trials.users[user].why_not[0])
			out_printf(o, "As user %u nothing was tried: %s\n",
				(unsigned int)t->trials.users[user].uid, t->trials.users[user].why_not);
	if (t->trials.left_out[0])
		out_printf(o, "BPF programs were not tried: %s\n", t->trials.left_out);
	if (t->trials.late)
		out_str(o, "The time was over before everything was tried: try again when the machine is "
			   "less busy\n");
}

/* TEXT behind INDENT columns of what stands there already, broken at spaces. */
static void put_wrapped(const char *text, size_t indent, struct out *o)
{
	size_t room = WIDTH - indent;

	while (*text) {
		size_t len = strlen(text);

		if (len > room) {
			len = room;
			while (len && text[len] != ' ')
				len--;
			len = len ? len : room;
		}
		out_put(o, text, len);
		text += len;
		text += strspn(text, " ");
		if (*text)
			out_printf(o, "\n%*s", (int)indent, "");
	}
	out_char(o, '\n');
}

static void put_reasons(const struct capreason *list, size_t n, const char *title, struct out *o)
{
	char name[32], line[64];

	for (size_t i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "  %-9s %-23s ", i ? "" : title,
			caps_name(list[i].cap, name, sizeof(name)));
		out_str(o, line);
		put_wrapped(list[i].why, strlen(line), o);
	}
}

static const char *required_names(const struct captable_tool *tool, char *buf, size_t cap)
{
	return tool->required.found ? capsets_names(tool->required.caps, buf, cap) : "not found";
}

static void put_tool(const struct captable *t, enum finding_tool tool, struct out *o)
{
	const struct captable_tool *ordinary = &t->tools[1][tool], *root = &t->tools[0][tool];
	char names[512];

	out_printf(o, "%s", finding_tool_name(tool));
	if (!ordinary->required.found || !ordinary->required.caps)
		out_printf(o, ": needs %s",
			ordinary->required.found ? "no capability"
						 : "what could not be found: see \"lacks\"");
	out_char(o, '\n');
	put_reasons(ordinary->reasons, ordinary->n_reasons, "needs", o);
	put_reasons(ordinary->useful, ordinary->n_useful, "can use", o);
	if (root->required.found && ordinary->required.found &&
		root->required.caps != ordinary->required.caps)
		out_printf(o, "  as root  %s\n", required_names(root, names, sizeof(names)));
	if (ordinary->missing[0]) {
		out_str(o, "  lacks     ");
		put_wrapped(ordinary->missing, 12, o);
	}
}

static void put_tool_line(const struct captable *t, enum finding_tool tool, struct out *o)
{
	const struct captable_tool *x = &t->tools[1][tool];
	char names[512], name[32];

	out_printf(o, "%-17s needs %s", finding_tool_name(tool), required_names(x, names, sizeof(names)));
	for (size_t i = 0; i < x->n_useful; i++)
		out_printf(
			o, "%s%s", i ? ", " : "; can use ", caps_name(x->useful[i].cap, name, sizeof(name)));
	out_char(o, '\n');
}

static void put_table(const struct captable *t, bool verbose, struct out *o)
{
	int group = -1;

	put_heads(t, o);
	for (size_t i = 0; i < t->trials.steps.n; i++) {
		const struct capstep *s = &t->trials.steps.list[i];

		if (group != (int)s->group)
			out_printf(o, "%s\n", capsteps_title(s->group));
		group = (int)s->group;
		put_step(t, i, verbose, o);
	}
	put_legend(t, o);
	out_char(o, '\n');
}

void capreport_text(const struct captable *t, enum capreport_style style, struct out *o)
{
	if (style != CAPREPORT_QUIET && t->trials.steps.n)
		put_table(t, style == CAPREPORT_VERBOSE, o);
	for (enum finding_tool i = 0; i < TOOL_COUNT; i++) {
		if (!captable_has(t, i))
			continue;
		if (style == CAPREPORT_QUIET)
			put_tool_line(t, i, o);
		else
			put_tool(t, i, o);
	}
}

static void put_names(struct json *j, const char *key, uint64_t set)
{
	char name[32];

	json_begin(j, key, '[');
	for (int cap = 0; cap < 64; cap++)
		if (set & BIT(cap))
			json_str(j, NULL, caps_name(cap, name, sizeof(name)));
	json_end(j, ']');
}

static void put_least(struct json *j, const char *key, const struct capleast *l)
{
	if (l->found)
		put_names(j, key, l->caps);
	else
		json_null(j, key);
}

/* "ok", the name of the error, or why it was not tried. */
static const char *cell_text(struct capcell c)
{
	switch ((enum capcell_state)c.state) {
	case CAPCELL_WORKS:
		return "ok";
	case CAPCELL_REFUSED:
	case CAPCELL_FAILED:
		return err_name(c.code);
	case CAPCELL_NOT_GRANTED:
		return "not granted";
	default:
		return "not tried";
	}
}

static void put_json_users(const struct captable *t, struct json *j)
{
	json_begin(j, "users", '[');
	for (size_t user = 0; user < CAPTRIALS_USERS; user++) {
		const struct captrials_user *u = &t->trials.users[user];

		json_begin(j, NULL, '{');
		json_str(j, "name", u->name);
		json_u64(j, "uid", u->uid);
		json_str(j, "not_tried", u->why_not[0] ? u->why_not : NULL);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_line(j, 4);
	json_begin(j, "sets", '[');
	for (size_t i = 0; i < t->n_sets; i++) {
		json_line(j, 6);
		json_begin(j, NULL, '{');
		json_str(j, "name", t->sets[i].name);
		put_names(j, "caps", t->sets[i].caps);
		json_end(j, '}');
	}
	json_line(j, 4);
	json_end(j, ']');
}

static void put_json_step(const struct captable *t, size_t step, struct json *j)
{
	const struct capstep *s = &t->trials.steps.list[step];
	const char *why = t->trials.users[1].why[step];

	json_begin(j, NULL, '{');
	json_str(j, "id", s->id);
	json_str(j, "group", capsteps_title(s->group));
	json_str(j, "does", s->does);
	json_begin(j, "least", '{');
	for (size_t user = 0; user < CAPTRIALS_USERS; user++)
		put_least(j, t->trials.users[user].name, &t->least[user][step]);
	json_end(j, '}');
	json_begin(j, "results", '{');
	for (size_t user = 0; user < CAPTRIALS_USERS; user++) {
		json_begin(j, t->trials.users[user].name, '[');
		for (size_t i = 0; i < t->n_sets; i++)
			json_str(j, NULL, cell_text(captrials_cell(&t->trials, user, t->sets[i].caps, step)));
		json_end(j, ']');
	}
	json_end(j, '}');
	json_str(j, "why", why[0] ? why : NULL);
	json_end(j, '}');
}

static void put_json_reasons(struct json *j, const char *key, const struct capreason *list, size_t n)
{
	char name[32];

	json_begin(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		json_begin(j, NULL, '{');
		json_str(j, "cap", caps_name(list[i].cap, name, sizeof(name)));
		json_str(j, "why", list[i].why);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_json_tool(const struct captable_tool *x, struct json *j)
{
	put_least(j, "required", &x->required);
	put_json_reasons(j, "reasons", x->reasons, x->n_reasons);
	put_json_reasons(j, "useful", x->useful, x->n_useful);
	json_str(j, "lacks", x->missing[0] ? x->missing : NULL);
}

static void put_json_caps(const struct captable *t, struct json *j)
{
	json_begin(j, "caps", '{');
	json_line(j, 4);
	json_bool(j, "late", t->trials.late);
	json_line(j, 4);
	put_names(j, "granted", t->trials.granted);
	json_line(j, 4);
	put_json_users(t, j);
	json_line(j, 4);
	json_begin(j, "steps", '[');
	for (size_t i = 0; i < t->trials.steps.n; i++) {
		json_line(j, 6);
		put_json_step(t, i, j);
	}
	json_line(j, 4);
	json_end(j, ']');
	json_line(j, 4);
	json_begin(j, "tools", '[');
	for (enum finding_tool i = 0; i < TOOL_COUNT; i++) {
		if (!captable_has(t, i))
			continue;
		json_line(j, 6);
		json_begin(j, NULL, '{');
		json_str(j, "name", finding_tool_name(i));
		put_json_tool(&t->tools[1][i], j);
		json_begin(j, "as_root", '{');
		put_json_tool(&t->tools[0][i], j);
		json_end(j, '}');
		json_end(j, '}');
	}
	json_line(j, 4);
	json_end(j, ']');
	json_line(j, 2);
	json_end(j, '}');
}

void capreport_json(const struct captable *t, int status, struct out *o)
{
	struct json j = { .o = o, .spaced = true };

	json_begin(&j, NULL, '{');
	json_line(&j, 2);
	json_u64(&j, "schema", 1);
	json_line(&j, 2);
	json_str(&j, "version", cli_version_string);
	json_line(&j, 2);
	put_json_caps(t, &j);
	json_line(&j, 2);
	json_u64(&j, "status", (uint64_t)status);
	json_line(&j, 0);
	json_end(&j, '}');
	out_char(o, '\n');
}

/* Can a tool not do without it? */
static bool is_required(const struct captable *t, size_t step)
{
	size_t n;
	const struct capneed *needs = capneeds_list(&n);

	for (size_t i = 0; i < n; i++)
		if (!needs[i].gain && captable_has(t, needs[i].tool) &&
			capneed_is(&needs[i], t->trials.steps.list[step].id))
			return true;
	return false;
}

void capreport_tap(const struct captable *t, struct tap *tap)
{
	char names[512], why[TEXT_ESCAPED_MAX(256)];

	for (size_t i = 0; i < t->trials.steps.n; i++) {
		const struct capstep *s = &t->trials.steps.list[i];
		const struct capleast *l = &t->least[1][i];
		const char *text = t->trials.users[1].why[i];

		text_escape(why, sizeof(why), text, strlen(text), TEXT_LINE);
		if (l->found)
			tap_ok(tap, true, "%s: with %s", s->id, capsets_names(l->caps, names, sizeof(names)));
		else if (is_required(t, i))
			tap_ok(tap, false, "%s: with no set that is granted here: %s", s->id, why);
		else
			tap_skip(tap, s->id, "%s", why[0] ? why : "not tried");
	}
}
