#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What bash, zsh and fish offer on the command lines of the tools: each shell is run.
. "$(dirname "$0")/../lib/tap.sh"

tools=$(cd "$TOP/tools" && for f in *.c; do echo "${f%.c}"; done)
ln -s "$BIN/fold" "$TMP/stackfold"
mkdir "$TMP/zsh" "$TMP/home" "$TMP/folder" "$TMP/folder/inner"
: >"$TMP/folder/a.cap"
: >"$TMP/folder/b c"
for shell in bash zsh fish; do
	mkdir -p "$TMP/$shell"
	for tool in $tools stackfold; do
		bin=$BIN
		[ "$tool" != stackfold ] || bin=$TMP
		file=$tool
		[ "$shell" != zsh ] || file=_$tool
		"$bin/$tool" "--completion=$shell" >"$TMP/$shell/$file" || fail "$tool prints completions for $shell"
	done
done
cd "$TMP/folder" || exit 1

# options_of TOOL: every option of --help
options_of() {
	"$BIN/$1" --help | sed -n 's/^  [ -][ a-zA-Z][ ,] --\([a-z-]*\).*/--\1/p' | sort
}
sleep 1000 &
sleeper=$!
at_exit_kill $sleeper

# SHELL_offers LINE: prints what the shell offers at the end of that line, one word per line, sorted.
# "default" and "dirnames" stand for files and folders that bash itself completes.
bash_offers() {
	# shellcheck disable=SC2016 # the inner shell's
	bash --norc -c '
		compopt() { echo "${@: -1}"; }
		line=$1
		. "$2/${line%% *}"
		# like readline: "=" is a word of its own, and there is an empty word after a blank
		read -ra COMP_WORDS <<<"${line//=/ = }"
		[[ $line != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		set -- $(complete -p "${COMP_WORDS[0]}")
		"$3"
		printf "%s\n" "${COMPREPLY[@]}"' bash "$1" "$TMP/bash" | grep . | sort
}
fish_offers() {
	# shellcheck disable=SC2016 # the inner shell's
	HOME=$TMP/home XDG_CONFIG_HOME=$TMP/home XDG_DATA_HOME=$TMP/home fish -c '
		source $argv[1]
		complete -C $argv[2]' "$TMP/fish/${1%% *}" "$1" | cut -f 1 | sort
}
# zsh runs in a pseudo-terminal, where a TAB is typed; a compadd of our own writes to a file.
cat >"$TMP/typed.zsh" <<'EOT'
line=$1 dir=$2 out=$3
zmodload zsh/zpty
wait_for() {
	for ((i = 0; i < 1000; i++)); do
		[[ -e $1 ]] && return
		zpty -r -t z ignored
		sleep 0.02
	done
}
zpty z zsh -f -i
zpty -w z "PROMPT=; fpath=($dir \$fpath); autoload -Uz compinit; compinit -u -C -d $dir.dump"
zpty -w z "compadd() { if [[ \" \$* \" == *' -'[OAD]' '* ]]; then builtin compadd \"\$@\"; return; fi; local -a hits; builtin compadd -A hits \"\$@\"; ((\$#hits)) && print -rl -- \$hits >>$out; builtin compadd \"\$@\" }"
zpty -w z "typed() { zle complete-word; : >$out.done }; zle -N typed; bindkey '^I' typed; : >$out.ready"
wait_for $out.ready
zpty -w -n z "$line"$'\t'
wait_for $out.done
zpty -d z
EOT
zsh_offers() {
	rm -f "$TMP/typed" "$TMP/typed.ready" "$TMP/typed.done"
	: >"$TMP/typed"
	zsh -f "$TMP/typed.zsh" "$1" "$TMP/zsh" "$TMP/typed"
	sort -u "$TMP/typed"
}

# offers SHELL LINE WANTED NAME: the words offered for LINE are exactly WANTED
offers() { # SHELL LINE WANTED NAME
	command -v "$1" >/dev/null || {
		skip "$1: $4" "$1 is not installed"
		return
	}
	is "$("$1"_offers "$2" | tr '\n' ' ')" "$3${3:+ }" "$1: $4"
}
# The test cannot list all PIDs: it checks that one known process is offered.
offers_pid() { # SHELL LINE NAME
	is "$("$1"_offers "$2" | grep -cx "$sleeper")" 1 "$1: $3"
}

for shell in bash zsh fish; do
	if ! command -v $shell >/dev/null; then
		skip "$shell completes the command lines of the tools" "$shell is not installed"
		continue
	fi
	for tool in $tools; do
		is "$(${shell}_offers "$tool --")" "$(options_of "$tool")" "$shell: exactly the options of $tool are offered"
	done
	offers $shell "stackfold --to" "--top" "stackfold is completed under its installed name"
	offers $shell "offcpu-record --unwind " "auto dwarf fp none" "--unwind offers its keywords"
	offers $shell "offcpu-record -a --mode r" "raw" "--mode offers the keywords that start with the typed letter"
	offers $shell "bpfcheck --tool s" "stackmap-test symbolize" "--tool offers the names of tools"
	offers_pid $shell "offcpu-record -p " "-p offers running processes"
	offers_pid $shell "offcpu-record --pid " "--pid offers running processes"
	offers_pid $shell "offcpu-record -aKp " "-p offers running processes after other option letters"
	offers_pid $shell "offcpu-record -t " "-t offers running threads"
	offers $shell "offcpu-record -d " "" "-d offers nothing"
	[ $shell = bash ] ||
		offers $shell "offcpu-record -- sort --reverse --zero-t" "--zero-terminated" "options of a command after -- are offered"
done
offers bash "offcpu-record --mode=r" "raw" "an argument after = is completed"
offers zsh "offcpu-record --mode=r" "raw" "an argument after = is completed"
offers fish "offcpu-record --mode=r" "--mode=raw" "an argument after = is completed"
offers bash "unwindinfo -- --s" "default" "files, and no options, are offered after --"
offers zsh "unwindinfo -- --s" "" "no options are offered after --"
offers fish "unwindinfo -- --s" "" "no options are offered after --"
like "$(bash_offers "offcpu-record -- sor")" "^sort$" "bash: commands are offered after --"
offers bash "offcpu-record -- sort -r x" "default" "files are offered after a command"
offers bash "capinfo " "default" "files are offered for an operand, by bash itself"
offers bash "capinfo --pack " "default" "files are offered for --pack"
offers bash "symbolize --symfs " "dirnames" "folders are offered for --symfs"
offers bash "offcpu-record " "" "no file is offered as an operand of offcpu-record"
offers zsh "capinfo " "a.cap b\\ c inner" "files are offered for an operand"
offers zsh "capinfo --pack a" "a.cap" "files are offered for --pack"
offers zsh "symbolize --symfs " "inner" "folders are offered for --symfs"
offers fish "capinfo " "a.cap b c inner/" "files are offered for an operand"
offers fish "capinfo --pack a" "a.cap" "files are offered for --pack"
offers fish "symbolize --symfs " "inner/" "folders are offered for --symfs"
offers zsh "capinfo --json --m" "" "an option that an earlier option excludes is not offered"

# bash-completion finds the file by the name of the tool and loads it on demand.
if [ -e /usr/share/bash-completion/bash_completion ]; then
	mkdir -p "$TMP/home/bash-completion"
	ln -s "$TMP/bash" "$TMP/home/bash-completion/completions"
	# shellcheck disable=SC2016 # the inner shell's
	is "$(HOME=$TMP/home XDG_DATA_HOME=$TMP/home bash --norc -c '
		. /usr/share/bash-completion/bash_completion
		_completion_loader offcpu-record
		complete -p offcpu-record')" "complete -F _offcpu_record offcpu-record" "bash-completion loads the file"
	# shellcheck disable=SC2016 # the inner shell's
	is "$(HOME=$TMP/home XDG_DATA_HOME=$TMP/home bash --norc -c '
		. /usr/share/bash-completion/bash_completion
		. "$1/offcpu-record"
		COMP_LINE="offcpu-record -- sort --reverse --zero-t"
		COMP_WORDS=($COMP_LINE) COMP_POINT=${#COMP_LINE} COMP_CWORD=4
		_offcpu_record 2>"$1/err"
		echo "${COMPREPLY[@]}"' bash "$TMP/bash")" "--zero-terminated" "bash-completion completes options of a command after --"
else
	skip "bash-completion loads the file" "bash-completion is not installed"
	skip "bash-completion completes options of a command after --" "bash-completion is not installed"
fi

tap_done
