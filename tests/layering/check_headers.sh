#!/bin/sh
# Checks that a header can be included alone, and first. Prints the compiler's messages, and "file:line: what" where no
# compiler is needed; exit 1 if any. Usage: check_headers.sh REPOSITORY COMPILER [CUDA_HEADERS]
#
# A public header is compiled alone, included twice, with nothing but the public folder to find others in. Of the other
# headers one that has a source of its name is compiled alone where that source includes it first, which is checked; the rest
# are compiled here.
set -eu
compiler=$2
cuda=${3:-}
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

public=$(find runtime/include -name '*.h' | sort)
own=$(find generator cache runtime templates/shared -name '*.h' -not -path 'runtime/include/*' | sort)
[ -n "$public" ] && [ -n "$own" ] || { echo "no headers below $1"; exit 2; }

status=0
alone=
for header in $own; do
  source=${header%.h}.cc
  if [ -f "$source" ]; then
    line=$(grep -n -m 1 '^#include' "$source" || true)
    [ "${line#*:}" = "#include \"$header\"" ] ||
      { echo "$source:${line%%:*}: must include $header first"; status=1; }
  else
    alone="$alone $header"
  fi
done

flags="-std=c++20 -fsyntax-only -Wall -Wextra -Werror -x c++"
for header in $public; do
  name=${header#runtime/include/}
  printf '#include "%s"\n#include "%s"\n' "$name" "$name" > "$work/$(echo "public/$name" | tr / @).cc"
done
for header in $alone; do
  printf '#include "%s"\n' "$header" > "$work/$(echo "own/$header" | tr / @).cc"
done
# shellcheck disable=SC2086  # flags are many words
find "$work" -name 'public@*' -print0 | xargs -0 -r -n 1 -P 2 "$compiler" $flags -I runtime/include || status=1
# shellcheck disable=SC2086
find "$work" -name 'own@*' -print0 |
  xargs -0 -r -n 1 -P 2 "$compiler" $flags -I runtime/include -I . ${cuda:+-isystem "$cuda"} || status=1
exit $status
