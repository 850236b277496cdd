#!/bin/sh
# Plants one header of each kind that cannot stand alone in a small tree; check_headers.sh must report it, and pass without.
# Usage: headers_self_test.sh FOLDER_OF_check_headers.sh COMPILER
set -eu
here=$1
compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

clean_tree() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/generator" "$work/tree/cache" "$work/tree/runtime/include/pagejit" "$work/tree/templates/shared"
  cd "$work/tree"
  printf '%s\n' '#pragma once' 'struct Status {};' > runtime/include/pagejit/status.h
  printf '%s\n' '#pragma once' '#include "pagejit/status.h"' 'Status open();' > cache/entry.h
  printf '%s\n' '// Opens.' '#include "cache/entry.h"' 'Status open() { return {}; }' > cache/entry.cc
  printf '%s\n' '#pragma once' 'inline int half(int x) { return x / 2; }' > generator/half.h
}

# planted FILE TEXT EXPECTED: where FILE is TEXT, the output holds EXPECTED.
planted() {
  clean_tree
  printf '%s\n' "$2" > "$1"
  if out=$(sh "$here/check_headers.sh" "$work/tree" "$compiler" 2>&1); then status=0; else status=$?; fi
  case "$status:$out" in 1:*"$3"*) passed=$((passed + 1)); return ;; esac
  echo "NOT FOUND as wanted: $1: $2"
  echo "  exit $status: $out"
  failed=$((failed + 1))
}

clean_tree
if ! sh "$here/check_headers.sh" "$work/tree" "$compiler"; then
  echo "a clean tree is reported"
  failed=$((failed + 1))
fi
planted runtime/include/pagejit/spec.h 'extern Status last;' 'Status'
planted runtime/include/pagejit/spec.h 'struct Spec {};' 'redefinition'
planted runtime/include/pagejit/spec.h '#include "generator/half.h"' 'generator/half.h'
planted generator/alone.h 'inline std::size_t length = 0;' 'std'
planted cache/entry.cc '#include "pagejit/status.h"' 'cache/entry.cc:1: must include cache/entry.h first'

echo "$passed planted headers found, $failed failures"
[ "$failed" -eq 0 ]
