#!/usr/bin/env bash
# What the README's "In your build" says, as someone does who has only this checkout: after tools/quickstart.sh, installs
# pagejit, then builds tests/embed/cpp and tests/embed/c outside of the checkout against it and runs both on the CPU emulator.
# Run by hand, on a machine that has nothing:
#
#   sudo tests/clean_machine/run.sh tests/clean_machine/embed.sh
#
# Elsewhere it builds in build/release like tools/quickstart.sh. Exit 0: both programs agreed with dense attention.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

"$root/tools/quickstart.sh"

begin=$(now)
work=$(mktemp -d -t pagejit-embed.XXXXXX)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cd "$root"
cmake --preset release -DPAGEJIT_BUILD_TESTS=OFF && cmake --build --preset release --target pagejit_installable
cmake --install build/release --prefix "$prefix"
say "install: $(seconds_since "$begin") s"

for language in cpp c; do
  begin=$(now)
  cp -r "tests/embed/$language" "$work/$language"
  cmake -G Ninja -S "$work/$language" -B "$work/$language/build" -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build "$work/$language/build"
  PAGEJIT_DRIVER=emulator "$work/$language/build/paged_decoder"
  say "tests/embed/$language: built and run in $(seconds_since "$begin") s"
done
