#!/usr/bin/env bash
# From a fresh checkout to a running kernel: set-up, build, then the demonstration, on the GPU where there is one and on
# the CPU emulator elsewhere. Arguments are passed on to the demonstration. Prints how long each part took.
#
#   tools/quickstart.sh [ARGUMENT...]
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

job=("$root/build/release/tools/pagejit" demo)

begin=$(now)
"$root/tools/setup.sh"
setup_s=$(seconds_since "$begin")

begin=$(now)
say "building the command and the emulator in build/release (tools/test.sh builds the tests too)"
with_tests=OFF
build release --target pagejit_command pagejit_emulator
build_s=$(seconds_since "$begin")

begin=$(now)
choose_nvrtc
say "running: pagejit ${job[*]:1} $*"
"${job[@]}" "$@"
say "set-up $setup_s s, build $build_s s, demonstration $(seconds_since "$begin") s"
