#!/usr/bin/env bash
# Builds and runs the soak of tests/faults: processes with threads on one cache directory, with faults, kills, forks and
# removals, for so many minutes (30 where not given). Fails on a bad read, a hang, or a leak of descriptors or memory.
#
#   tools/soak.sh [MINUTES]
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
minutes=${1:-30}
[[ "$minutes" =~ ^[1-9][0-9]*$ ]] || fail "$minutes: must be a number of minutes"
build release --target soak
# Another seed each time; it is printed, to run the same again.
seed=$RANDOM
say "soak: $minutes min, seed $seed"
"$root/build/release/tests/faults/soak" $((minutes * 60)) $seed
