#!/usr/bin/env bash
# Checks the format of the C++ and C sources with clang-format; with --tidy also runs clang-tidy (some 15 s a file), with
# --fix rewrites the files instead. Where clang-format is missing or not the version whose format this is, the format is not
# checked, and that is said; what was asked for by an option and cannot be done fails. With PAGEJIT_TEST_REQUIRE_COMPILERS
# a missing clang-format fails too.
#
#   tools/lint.sh [--fix | --tidy] [FILE...]      default: every C++ and C file in git but the templates
#
# The templates are formatted by hand, so that a rendered kernel reads well: the renderer resolves their conditions, fills
# their holes and takes away lines, and clang-format sees them only before that.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode=check
case "${1:-}" in
  --fix) mode=fix; shift ;;
  --tidy) mode=tidy; shift ;;
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
cd "$root"
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  # Of whoever's clone this is.
  mapfile -t files < <(git -c safe.directory='*' ls-files '*.h' '*.cc' '*.c' | grep -v '^templates/')
  [ ${#files[@]} -gt 0 ] || fail "git lists no sources here"
fi

# tidy BUILD_FOLDER: of the files that the input names.
tidy() { xargs -r -P "$(jobs)" -n 1 clang-tidy -quiet -p "$1"; }

status=0
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  [ "$mode" != fix ] || fail "clang-format 14 is not installed: nothing was formatted"
  # Debian after 12 has a later one.
  [ -z "${PAGEJIT_TEST_REQUIRE_COMPILERS:-}" ] || command -v clang-format >/dev/null || fail "clang-format is not installed"
  say "clang-format 14 is not installed: the format is not checked"
elif [ "$mode" = fix ]; then
  clang-format -i "${files[@]}"
else
  clang-format --dry-run -Werror "${files[@]}" || status=1
fi
if [ "$mode" = tidy ]; then
  for program in clang-tidy clang++; do
    command -v $program >/dev/null || fail "$program is not installed; tools/setup.sh --tests --tidy installs it"
  done
  # As clang compiles them: all but the fuzzers, and those.
  cmake --preset debug -B build/tidy -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
  cmake --preset fuzz -B build/tidy_fuzz -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
  printf '%s\n' "${files[@]}" | sed -n '\|^tests/fuzz/|d; /\.cc\{0,1\}$/p' | tidy build/tidy || status=1
  printf '%s\n' "${files[@]}" | sed -n '\|^tests/fuzz/.*\.cc$|p' | tidy build/tidy_fuzz || status=1
fi
exit $status
