#!/usr/bin/env bash
# Unpacks in .deps/aarch64 what pagejit is cross-built and tested with for aarch64: Debian's arm64 packages of the libraries
# that tools/setup.sh installs for this machine. apt works with a state of its own: nothing is installed, and this machine's
# list of architectures stays as it is. Needs no root.
#
#   tools/aarch64_root.sh [--check]        --check: exit 1 where it is missing
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
target=$deps/aarch64
packages=(libssl-dev libgtest-dev libgmock-dev libbenchmark-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev
  libsodium23)

case "${1:-}" in
  "") ;;
  --check) [ "$(cat "$target/complete" 2>/dev/null)" = "${packages[*]}" ]; exit ;;
  *) fail "unknown argument $1 (known: --check)" ;;
esac

rm -rf "$target"
mkdir -p "$deps"
state=$(mktemp -d "$deps/apt.XXXXXX")
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/archives/partial"
touch "$state/status"  # an empty machine, so that dependencies are fetched too
apt=(apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$state"
  -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state"
  -o "Dir::Cache::archives=$state/archives" -o "APT::Sandbox::User=" -o Acquire::Languages=none -o Debug::NoLocking=1)
log=$state/log
"${apt[@]}" update >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get update failed for arm64"; }
"${apt[@]}" --no-install-recommends --download-only install "${packages[@]}" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get failed for arm64"; }
for package in "$state"/archives/*.deb; do dpkg-deb -x "$package" "$target"; done
echo "${packages[*]}" >"$target/complete"
