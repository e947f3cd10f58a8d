/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * completion - shell completion of the command line of a tool.
 *
 * Each of the three files is self-contained: it lists the options and, for
 * their arguments, the words to choose from, or whether a file, a directory, a
 * process or a thread is expected. The bash file works without bash-completion,
 * which loads it from its own directory; the zsh file belongs in a directory of
 * $fpath.
 */
#include "base/cli.h"
#include "base/text.h"

#include <string.h>

const char *const cli_shells[] = { "bash", "zsh", "fish", NULL };

/* "_capinfo", "_offcpu_record": the name of the function. */
static void put_function(struct buf *b, const struct cli *c)
{
	buftext_str(b, "_");
	for (const char *p = c->name; *p; p++)
		buf_put(b, *p == '-' ? "_" : p, 1);
}

static void put_words(struct buf *b, const struct cli_option *o)
{
	for (const char *const *word = o->words; *word; word++)
		buftext_printf(b, "%s%s", word == o->words ? "" : " ", *word);
}

/* Escape TEXT up to its first newline for single quotes, and put a backslash before characters in SPECIAL. */
static void put_quoted(struct buf *b, const char *text, const char *special)
{
	for (; *text && *text != '\n'; text++) {
		if (*text == '\'')
			buftext_str(b, "'\\'");
		else if (strchr(special, *text))
			buftext_str(b, "\\");
		buf_put(b, text, 1);
	}
}

/* --- bash --- */

/* Complete $cur: with bash's own file name completion, or from $words. */
static void put_bash_argument(struct buf *b, const struct cli_option *o)
{
	switch (o->kind) {
	case CLI_KIND_FILE:
		buftext_str(b, "compopt -o default");
		break;
	case CLI_KIND_DIR:
		buftext_str(b, "compopt -o dirnames");
		break;
	case CLI_KIND_PID:
		buftext_str(b, "words=$(cd /proc && echo [0-9]*)");
		break;
	case CLI_KIND_TID:
		buftext_str(b, "words=$(cd /proc && set -- [0-9]*/task/[0-9]* && echo \"${@##*/}\")");
		break;
	case CLI_KIND_WORD:
		buftext_str(b, "words='");
		put_words(b, o);
		buftext_str(b, "'");
		break;
	default:
		buftext_str(b, ":");
	}
}

/* The operand to complete, which is the first one: the file and not the addresses in it. */
static const struct cli_option *operand(const struct cli *c)
{
	for (size_t i = 0; i < c->n_options; i++)
		if (!c->options[i].name && c->options[i].kind != CLI_KIND_HEADING)
			return &c->options[i];
	return NULL;
}

static void put_bash_operand(struct buf *b, const struct cli_option *o)
{
	if (!o)
		buftext_str(b, ":");
	else if (o->kind == CLI_KIND_COMMAND)
		buftext_str(b, "if declare -F _command_offset >/dev/null; then\n"
			       "\t\t\t_command_offset $((i + 1))\n"
			       "\t\telif ((COMP_CWORD == i + 1)); then\n"
			       "\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
			       "\t\telse\n"
			       "\t\t\tcompopt -o default\n"
			       "\t\tfi");
	else
		put_bash_argument(b, o);
}

static void put_bash_options(struct buf *b, const struct cli *c)
{
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;) {
		if (!o->name || !o->arg || o->otherwise)
			continue;
		buftext_str(b, "\t");
		if (o->letter)
			buftext_printf(b, "-%c | ", o->letter);
		buftext_printf(b, "--%s) ", o->name);
		put_bash_argument(b, o);
		buftext_str(b, " ;;\n");
	}
}

static void put_bash(struct buf *b, const struct cli *c)
{
	const struct cli_option *o, *rest = operand(c);
	const char *quote = "'";

	put_function(b, c);
	buftext_str(b, "()\n{\n"
		       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= i\n"
		       "\tlocal options=");
	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;)
		if (o->name)
			buftext_printf(b, "%s--%s", quote, o->name), quote = " ";
	buftext_str(b,
		"'\n\n\tCOMPREPLY=()\n"
		"\t# --option=value is three words; of letters in one word the last may have an argument\n"
		"\tif [[ $before == --?* && $cur == = ]]; then\n"
		"\t\tcur=\n"
		"\telif [[ $before == = ]]; then\n"
		"\t\tbefore=${COMP_WORDS[COMP_CWORD - 2]}\n"
		"\telif [[ $before =~ ^-[");
	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;)
		if (o->letter && !o->arg)
			buf_put(b, &o->letter, 1);
	buftext_str(b, "]+([[:alpha:]])$ ]]; then\n"
		       "\t\tbefore=-${BASH_REMATCH[1]}\n"
		       "\tfi\n"
		       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		       "\t\t[[ ${COMP_WORDS[i]} != -- ]] || { before=-- && break; }\n"
		       "\tdone\n"
		       "\tcase $before in\n");
	put_bash_options(b, c);
	buftext_str(b, "\t--)\n\t\t");
	put_bash_operand(b, rest);
	buftext_str(b, "\n\t\t;;\n\t*)\n\t\tif [[ $cur == -* ]]; then\n\t\t\twords=$options\n");
	if (rest && rest->kind != CLI_KIND_COMMAND) {
		buftext_str(b, "\t\telse\n\t\t\t");
		put_bash_operand(b, rest);
		buftext_str(b, "\n");
	}
	buftext_str(b, "\t\tfi\n\t\t;;\n\tesac\n"
		       "\t[[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
		       "complete -F ");
	put_function(b, c);
	buftext_printf(b, " %s\n", c->name);
}

/* --- zsh --- */

static void put_zsh_argument(struct buf *b, const struct cli_option *o)
{
	buftext_str(b, ":");
	put_quoted(b, o->arg, ":\\");
	switch (o->kind) {
	case CLI_KIND_FILE:
		buftext_str(b, ":_files");
		break;
	case CLI_KIND_DIR:
		buftext_str(b, ":_directories");
		break;
	case CLI_KIND_PID:
		buftext_str(b, ":compadd -- /proc/<->(\\:t)");
		break;
	case CLI_KIND_TID:
		buftext_str(b, ":compadd -- /proc/<->/task/<->(\\:t)");
		break;
	case CLI_KIND_WORD:
		buftext_str(b, ":(");
		put_words(b, o);
		buftext_str(b, ")");
		break;
	default:
		buftext_str(b, ": ");
	}
}

/* The options that may not follow O: O itself unless it is a list, and the others of its group. */
static void put_zsh_excluded(struct buf *b, const struct cli *c, const struct cli_option *o)
{
	const struct cli_option *other;

	if (o->list) {
		buftext_str(b, "*");
		return;
	}
	buftext_str(b, "(");
	for (size_t i = 0; (other = cli_next_shown(c, &i)) != NULL;) {
		if (!other->name || (other != o && (!o->group || other->group != o->group)))
			continue;
		if (other->letter)
			buftext_printf(b, "-%c ", other->letter);
		buftext_printf(b, "--%s ", other->name);
	}
	buftext_str(b, ")");
}

/* '(-p --pid )-p+[the process]:PID:_pids': zsh needs one line for each name. */
static void put_zsh_option(struct buf *b, const struct cli *c, const struct cli_option *o, bool letter)
{
	buftext_str(b, " \\\n\t'");
	put_zsh_excluded(b, c, o);
	if (letter)
		buftext_printf(b, "-%c%s[", o->letter, o->arg ? "+" : "");
	else
		buftext_printf(b, "--%s%s[", o->name, o->otherwise ? "=-" : o->arg ? "=" : "");
	put_quoted(b, o->help, "[]:\\");
	buftext_str(b, o->otherwise ? "]:" : "]"); /* two colons: the argument may be missing */
	if (o->arg)
		put_zsh_argument(b, o);
	buftext_str(b, "'");
}

static void put_zsh(struct buf *b, const struct cli *c)
{
	const struct cli_option *o;
	bool command = false;

	for (size_t i = 0; i < c->n_options; i++)
		command |= c->options[i].kind == CLI_KIND_COMMAND;
	buftext_printf(b, "#compdef %s\n_arguments -s -S%s :", c->name, command ? " -A '-*'" : "");
	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;) {
		if (o->letter)
			put_zsh_option(b, c, o, true);
		if (o->name)
			put_zsh_option(b, c, o, false);
		if (o->kind == CLI_KIND_COMMAND) {
			buftext_printf(b,
				" \\\n\t'*::%s:{ [[ $words[1] != -- ]] || { shift words; ((CURRENT--)) }; "
				"_normal }'",
				o->arg);
		} else if (!o->name && o->kind != CLI_KIND_HEADING) {
			buftext_str(b, o->list ? " \\\n\t'*" : " \\\n\t'");
			put_zsh_argument(b, o);
			buftext_str(b, "'");
		}
	}
	buftext_str(b, "\n");
}

/* --- fish --- */

static void put_fish_argument(struct buf *b, const struct cli_option *o)
{
	switch (o->kind) {
	case CLI_KIND_FILE:
		buftext_str(b, " -r -F");
		break;
	case CLI_KIND_DIR:
		buftext_str(b, " -x -a '(__fish_complete_directories (commandline -ct))'");
		break;
	case CLI_KIND_PID:
		buftext_str(b, " -x -a '(__fish_complete_pids)'");
		break;
	case CLI_KIND_TID:
		buftext_str(b, " -x -a '(string replace -r \".*/\" \"\" /proc/*/task/*)'");
		break;
	case CLI_KIND_WORD:
		buftext_str(b, " -x -a '");
		put_words(b, o);
		buftext_str(b, "'");
		break;
	default:
		buftext_str(b, " -x");
	}
}

static void put_fish(struct buf *b, const struct cli *c)
{
	const struct cli_option *o, *rest = operand(c);

	if (!rest || rest->kind != CLI_KIND_FILE)
		buftext_printf(b, "complete -c %s -f\n", c->name);
	if (rest && rest->kind == CLI_KIND_COMMAND)
		buftext_printf(b,
			"complete -c %s -n 'contains -- -- (commandline -opc)' -x"
			" -a '(complete -C (string replace -r \"^.*? -- \" \"\" (commandline -cp)))'\n",
			c->name);
	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;) {
		if (!o->name)
			continue;
		buftext_printf(b, "complete -c %s", c->name);
		if (o->letter)
			buftext_printf(b, " -s %c", o->letter);
		buftext_printf(b, " -l %s", o->name);
		if (o->arg && !o->otherwise)
			put_fish_argument(b, o);
		buftext_str(b, " -d '");
		put_quoted(b, o->help, "\\");
		buftext_str(b, "'\n");
	}
}

void cli_completion(const struct cli *c, const char *shell, struct buf *b)
{
	if (strcmp(shell, "bash") == 0)
		put_bash(b, c);
	else if (strcmp(shell, "zsh") == 0)
		put_zsh(b, c);
	else
		put_fish(b, c);
}
