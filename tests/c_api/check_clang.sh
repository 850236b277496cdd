#!/bin/sh
# The headers of C as clang reads them, as C11 and C++17, each alone and twice; and layout_test.c.
# What GCC compiles is the target c_api_headers. Exit 77: there is no clang (1 with PAGEJIT_TEST_REQUIRE_COMPILERS).
# Usage: check_clang.sh REPOSITORY FLAG...
set -eu
root=$1
shift
command -v clang >/dev/null || {
  echo "no clang on the PATH; tools/setup.sh --tests installs it"
  [ -z "${PAGEJIT_TEST_REQUIRE_COMPILERS:-}" ] || exit 1
  exit 77
}
cd "$root/runtime/include"
status=0
count=0
for header in pagejit/pagejit.h pagejit/c/*.h; do
  for language in 'c -std=c11' 'c++ -std=c++17'; do
    count=$((count + 1))
    # shellcheck disable=SC2086  # two words
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
      clang -fsyntax-only "$@" -I . -x $language - || { echo "$header: not clean as $language"; status=1; }
  done
done
[ "$count" -ge 20 ] || { echo "only $count headers in $PWD"; exit 1; }
clang -fsyntax-only "$@" -I . -I "$root" -std=c11 "$root/tests/c_api/layout_test.c" || status=1
exit $status
