#!/usr/bin/env bash
# tests/install/CheckManual.sh PREFIX: the installed manual page formats without a warning, and the completions of bash, zsh
# and fish complete subcommands, flags, files and folders. Needs groff, bash, zsh and fish.
set -euo pipefail
prefix=$1
failed=no
wrong() { printf 'error: %s\n' "$*" >&2; failed=yes; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/a.json"
mkdir "$work/a.folder"
cd "$work"

# ---- The manual page: no warning, and every subcommand that --help tells of --------------------------------------------
page=$prefix/share/man/man1/pagejit.1
warnings=$(groff -man -Tutf8 -ww "$page" 2>&1 >"$work/page.txt")
[ -z "$warnings" ] || wrong "groff: $warnings"
commands=$("$prefix/bin/pagejit" --help | awk '/^Subcommands:/ { on = 1; next } /^[^ ]/ { on = 0 } on && NF { print $1 }')
[ "$(wc -w <<<"$commands")" -ge 10 ] || wrong "--help tells of too few subcommands: $commands"
for command in $commands; do
  grep -q "^\.SS pagejit $command\$" "$page" || wrong "the page has no $command"
done
case $commands in *generate*) wrong "generate is not hidden" ;; esac

# ---- bash --------------------------------------------------------------------------------------------------------------
# bash_completes WORD...: what the last, begun word is completed to, in one line.
bash_completes() {
  bash --norc --noprofile -c '
    source "$1"
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _pagejit
    echo "${COMPREPLY[*]}"' bash "$prefix/share/bash-completion/completions/pagejit" "$@"
}
# expect NAME GOT WANTED
expect() { [ "$2" = "$3" ] || wrong "$1 completes to '$2' instead of '$3'"; }
expect 'bash: pagejit' "$(bash_completes pagejit '')" "$(paste -sd ' ' <<<"$commands")"
expect 'bash: pagejit pre' "$(bash_completes pagejit pre)" precompile
expect 'bash: bundle cr' "$(bash_completes pagejit bundle cr)" create
expect 'bash: --head' "$(bash_completes pagejit precompile --tp 4 --head)" '--head-size --head-size-v'
expect 'bash: a file' "$(bash_completes pagejit precompile --model a.j)" a.json
expect 'bash: a folder' "$(bash_completes pagejit precompile --cache-dir a)" a.folder
expect 'bash: a number' "$(bash_completes pagejit precompile --head-size '')" ''
expect 'bash: the first of two files' "$(bash_completes pagejit bench --compare a.j)" a.json
expect 'bash: the second of two files' "$(bash_completes pagejit bench --compare a.json a.j)" a.json
expect 'bash: behind two files' "$(bash_completes pagejit bench --compare a.json a.json ho)" host
expect 'bash: an argument' "$(bash_completes pagejit bundle verify a.j)" a.json

# ---- fish --------------------------------------------------------------------------------------------------------------
# fish_completes TEXT
fish_completes() {
  HOME=$work fish --no-config -c "source '$prefix/share/fish/vendor_completions.d/pagejit.fish'; complete -C '$1'" |
    cut -f 1 | sort | paste -sd ' '
}
expect 'fish: pagejit' "$(fish_completes 'pagejit ')" "$(sort <<<"$commands" | paste -sd ' ')"
expect 'fish: bundle cr' "$(fish_completes 'pagejit bundle cr')" create
expect 'fish: --head' "$(fish_completes 'pagejit precompile --tp 4 --head')" '--head-size --head-size-v'
expect 'fish: a file' "$(fish_completes 'pagejit precompile --model a.j')" a.json
expect 'fish: a folder' "$(fish_completes 'pagejit precompile --cache-dir a')" a.folder/
expect 'fish: the second of two files' "$(fish_completes 'pagejit bench --compare a.json a.j')" a.json
expect 'fish: behind two files' "$(fish_completes 'pagejit bench --compare a.json a.json ho')" host

# ---- zsh: its completion system needs a terminal, so the functions are called with one of its own in their place -------
zsh_file=$prefix/share/zsh/site-functions/_pagejit
zsh -n "$zsh_file" || wrong "zsh does not parse its file"
# shellcheck disable=SC2016  # expanded by zsh
zsh_passes() {
  zsh -f -c '
    compdef() { : }
    _describe() { print -l -- ${(P)2} }
    _arguments() { print -l -- "$@"; state=$wanted_state line=(bundle); return 1 }
    wanted_state=$2
    source $1
    _pagejit' zsh "$zsh_file" "$1" || true
}
zsh_passes command | cut -d : -f 1 >"$work/zsh_commands"
for command in $commands; do
  grep -qx "$command" "$work/zsh_commands" || wrong "zsh: no $command"
done
zsh_passes arguments | grep -qF '(-h --help)--help[Print this help message and exit]' || wrong "zsh: no --help"
# A colon would end the message of a value.
grep -qF "':PERCENT: ' \\" "$zsh_file" || wrong "zsh: the value of --threshold is not PERCENT alone"
grep -qF "':FILE:_files'':FILE:_files' \\" "$zsh_file" || wrong "zsh: --compare has no second file"
[ "$failed" = no ]
