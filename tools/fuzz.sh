#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang and runs each for so many seconds (120 where not given), two at a time on two
# cores. Prints a line for each: executions, new inputs kept, and the file of what was found. Fails if anything was found.
#
#   tools/fuzz.sh [SECONDS_PER_TARGET] [TARGET...]
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
seconds=${1:-120}
[[ "$seconds" =~ ^[1-9][0-9]*$ ]] || fail "$seconds: must be a number of seconds"
[ $# -eq 0 ] || shift

build fuzz --target fuzzers >&2
folder=$root/build/fuzz/tests/fuzz
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for program in "$folder"/*_fuzz; do targets+=("$(basename "$program" _fuzz)"); done
fi

# fuzz TARGET: what it finds on its way stays in the build folder, and is where the next run goes on.
fuzz() {
  local target=$1 seeds=$root/tests/fuzz/corpus/$1 log=$folder/$1.log status=0
  [ "$target" != model_config ] || seeds=$root/tools/models/configs
  mkdir -p "$folder/corpus/$target"
  "$folder/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$folder/corpus/$target" "$seeds" >"$log" 2>&1 || status=$?
  awk -v target="$target" -v status=$status '
    /number_of_executed_units/ { runs = $2 }
    /new_units_added/ { added = $2 }
    /Test unit written to/ { found = " " $NF }
    END { printf "%-14s %10d executions, %5d inputs kept, %s%s\n", target, runs, added, status == 0 ? "nothing found" : "FOUND", found }' "$log"
  return $status
}
export -f fuzz
export root folder seconds
printf '%s\n' "${targets[@]}" | xargs -P "$(jobs)" -I {} bash -c 'fuzz {}' ||
  fail "something was found; the logs are $folder/TARGET.log"
