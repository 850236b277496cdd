#!/bin/sh
# Each function that libpagejit.so offers to C stands in function_table.h, whose tests call it with every bad argument,
# and the other way round. Each has the version node PAGEJIT_C_1.
# Usage: check_exports.sh REPOSITORY LIBPAGEJIT
set -eu
table=$(sed -n 's/^ *DO(\(pagejit_[a-z0-9_]*\)).*/\1/p' "$1/tests/c_api/function_table.h" | sort)
offered=$(nm -D --defined-only "$2" | sed -n 's/.* T \(pagejit_[a-z0-9_]*\)@@PAGEJIT_C_1$/\1/p' | sort)
[ "$(echo "$offered" | wc -l)" -ge 280 ] || { echo "too few functions in $2"; exit 1; }
status=0
for name in $offered; do
  echo "$table" | grep -qx "$name" || { echo "$name: offered, but not in function_table.h"; status=1; }
done
for name in $table; do
  echo "$offered" | grep -qx "$name" || { echo "$name: in function_table.h, but not offered"; status=1; }
done
exit $status
