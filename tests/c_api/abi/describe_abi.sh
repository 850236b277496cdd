#!/bin/sh
# Writes libabigail's description of the C API: the functions pagejit_* and the types of their headers.
# Usage: describe_abi.sh REPOSITORY LIBPAGEJIT OUTPUT
set -eu
exec abidw --exported-interfaces-only --drop-private-types --headers-dir "$1/runtime/include/pagejit/c" \
  --suppressions "$1/tests/c_api/abi/cpp_symbols.suppr" --no-corpus-path --no-comp-dir-path --no-show-locs \
  --out-file "$3" "$2"
