#!/bin/sh
# Each name of C++ that libpagejit.so exports is in namespace pagejit, belongs to a class or function that a public header
# marks with PAGEJIT_EXPORT, and is declared there; and each function so marked is exported. What is not compiled with
# hidden visibility fails: pagejit.version lets all of the namespace pass.
# Usage: check_cpp_exports.sh REPOSITORY LIBPAGEJIT
set -eu
headers=$(echo "$1"/runtime/include/pagejit/*.h)
# The marked ones, and Pending: a template, marked where it is instantiated (runtime/engine/pending.cc).
# shellcheck disable=SC2086  # several files
marked=$({
  sed -nE 's/^(class|struct) (.* )?PAGEJIT_EXPORT ([A-Za-z0-9_]*).*/\3/p;
           s/^PAGEJIT_EXPORT [^(]*[ &*]([a-z][a-z0-9_]*)\(.*/\1/p' $headers
  echo Pending
} | sort -u)
[ "$(echo "$marked" | wc -l)" -ge 40 ] || { echo "found only: $marked"; exit 1; }
# shellcheck disable=SC2086
words=$(sed 's|//.*||' $headers | grep -o '[A-Za-z_][A-Za-z0-9_]*' | sort -u)
# Demangled, with neither what a function returns, template arguments nor parameters.
exported=$(nm -DC --defined-only "$2" | sed -n 's/^[0-9a-f]* [^A] //p' | grep -v '^pagejit_[a-z0-9_]*@@' | awk '
  {
    sub(/@@.*/, ""); gsub(/\[abi:[a-z0-9]*\]/, ""); sub(/operator.*/, "operator")
    while (gsub(/<[^<>]*>/, "")) { }
    sub(/\(.*/, ""); sub(/.* /, "")
    print
  }' | sort -u)
[ "$(echo "$exported" | wc -l)" -ge 80 ] || { echo "too few names in $2: $exported"; exit 1; }
printf '%s\n' "$marked" '--' "$words" '--' "$exported" | awk '
  $0 == "--" { ++part; next }
  part == 0 { marked[$0] = 1; next }
  part == 1 { word[$0] = 1; next }
  {
    n = split($0, parts, "::")
    why = ""
    if (parts[1] != "pagejit") why = "is not of namespace pagejit"
    else if (!(parts[2] in marked)) why = "no public header marks it with PAGEJIT_EXPORT"
    else for (i = 3; i <= n; ++i) {
      sub(/^~/, "", parts[i])
      if (!(parts[i] in word)) why = "no public header declares it"
    }
    if (why != "") { print $0 ": exported, but " why; status = 1 }
    if (n == 2) offered[parts[2]] = 1
  }
  END {
    for (name in marked) if (name ~ /^[a-z]/ && !(name in offered)) { print name ": marked, but not exported"; status = 1 }
    exit status
  }'
