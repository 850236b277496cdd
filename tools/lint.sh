#!/usr/bin/env bash
# Checks the format of the C++ sources with clang-format; with --tidy also runs clang-tidy (some seconds a file), with
# --fix rewrites the files instead. Where a program is missing, or clang-format is not the version whose format this is, its
# check is left out, and that is said.
#
#   tools/lint.sh [--fix | --tidy] [FILE...]      default: every C++ file in git but the templates
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mode=check
case "${1:-}" in
  --fix) mode=fix; shift ;;
  --tidy) mode=tidy; shift ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
cd "$root"
files=("$@")
if [ ${#files[@]} -eq 0 ]; then mapfile -t files < <(git ls-files '*.h' '*.cc' | grep -v '^templates/'); fi

# tidy BUILD_FOLDER: of the files that the input names.
tidy() { xargs -r -P "$(jobs)" -n 1 clang-tidy -quiet -p "$1"; }

status=0
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  say "clang-format 14 is not installed: the format is not checked"
elif [ "$mode" = fix ]; then
  clang-format -i "${files[@]}"
else
  clang-format --dry-run -Werror "${files[@]}" || status=1
fi
if [ "$mode" = tidy ]; then
  if command -v clang-tidy >/dev/null && command -v clang++ >/dev/null; then
    # As clang compiles them: all but the fuzzers, and those.
    cmake --preset debug -B build/tidy -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
    cmake --preset fuzz -B build/tidy_fuzz -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
    printf '%s\n' "${files[@]}" | sed -n '\|^tests/fuzz/|d; /\.cc$/p' | tidy build/tidy || status=1
    printf '%s\n' "${files[@]}" | sed -n '\|^tests/fuzz/.*\.cc$|p' | tidy build/tidy_fuzz || status=1
  else
    say "clang-tidy and clang++ are not installed: not run"
  fi
fi
exit $status
