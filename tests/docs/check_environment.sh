#!/bin/sh
# The variables that the library reads are those of the README's table and of pagejit/options.h, those that the emulator
# reads are those of its README, and `pagejit doctor` knows them all.
# Usage: check_environment.sh REPOSITORY
set -eu
cd "$1"
names() { grep -oE 'PAGEJIT_[A-Z_0-9]+' | sort -u; }
status=0
# only_in WHAT A WHERE B: each of the names A that is not one of B.
only_in() {
  for name in $2; do
    echo "$4" | grep -qx "$name" || { echo "$name: in $1, but not in $3"; status=1; }
  done
}
same() { only_in "$1" "$2" "$3" "$4"; only_in "$3" "$4" "$1" "$2"; }

library=$(find runtime cache -name '*.cc' -not -path 'runtime/emulator/*' -exec cat {} + | grep -oE '"PAGEJIT_[A-Z_0-9]+"' | names)
[ "$(echo "$library" | wc -l)" -ge 20 ] || { echo "too few variables in runtime/: $library"; exit 1; }
table=$(sed -n '/^## Environment/,/^## /p' README.md | sed -n 's/^| *\(`[^|]*\)|.*/\1/p' | names)
same "the library" "$library" "the README's table" "$table"
only_in "the library" "$library" "pagejit/options.h" "$(names <runtime/include/pagejit/options.h)"

emulator=$(cat runtime/emulator/*.cc | grep -oE '"PAGEJIT_EMULATOR_[A-Z_0-9]+"' | names)
[ "$(echo "$emulator" | wc -l)" -ge 5 ] || { echo "too few variables in runtime/emulator/: $emulator"; exit 1; }
only_in "the emulator" "$emulator" "runtime/emulator/README.md" "$(names <runtime/emulator/README.md)"

doctor=$(sed -n '/kKnown/,/};/p' tools/cli/doctor_variables.cc | names)
only_in "the library" "$library" "tools/cli/doctor_variables.cc" "$doctor"
only_in "the emulator" "$emulator" "tools/cli/doctor_variables.cc" "$doctor"
exit $status
