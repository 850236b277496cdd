#!/usr/bin/env bash
# Proves that the scripts work on a machine that has nothing: makes a minimal Debian root with debootstrap, clones the
# last commit into it, and runs a command there (set-up, build and demonstration unless another is given). No toolkit, no
# driver and no file of this machine is visible inside, but for extra CA certificates where this machine has some.
#
#   sudo tests/clean_machine/run.sh [COMMAND...]      e.g. tests/clean_machine/run.sh tools/test.sh
#
#   ROOT=DIR      where the root is made (default: a temporary folder, removed at the end); an existing one is used again
#   MIRROR=URL    Debian mirror (default http://deb.debian.org/debian)
#   SUITE=NAME    Debian release (default bookworm)
#   KEEP=1        keep the temporary root
# PIP_* and *_proxy variables are passed on.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mirror=${MIRROR:-http://deb.debian.org/debian}
suite=${SUITE:-bookworm}
certificates=/usr/local/share/ca-certificates

fail() { printf 'error: %s\n' "$*" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || fail "needs root (debootstrap, chroot)"
command -v debootstrap >/dev/null || fail "debootstrap is not installed"
command -v unshare >/dev/null || fail "unshare is not installed (package util-linux)"
[ $# -gt 0 ] || set -- tools/quickstart.sh

if [ -n "${ROOT:-}" ]; then
  root=$ROOT
  mkdir -p "$root"
else
  root=$(mktemp -d)
  chmod 755 "$root"
  [ "${KEEP:-0}" = 1 ] || trap 'rm -rf --one-file-system "$root"' EXIT
fi

begin=$(date +%s)
if [ ! -e "$root/etc/debian_version" ]; then
  extra=()
  if compgen -G "$certificates/*.crt" >/dev/null; then extra=(--include=ca-certificates); fi
  debootstrap --variant=minbase "${extra[@]}" "$suite" "$root" "$mirror" >"$root.log" 2>&1 || { tail -n 20 "$root.log"; fail "debootstrap failed"; }
  rm -f "$root.log"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
if compgen -G "$certificates/*.crt" >/dev/null; then
  cp "$certificates"/*.crt "$root$certificates/"
  chroot "$root" update-ca-certificates >/dev/null
fi
echo "== clean $suite root: $(($(date +%s) - begin)) s"

# The committed state only: what is not in git must not be needed.
git clone -q --no-hardlinks "$repository" "$root/clone.new"
rm -rf "$root/pagejit"
mv "$root/clone.new" "$root/pagejit"

environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI="${CI:-}")
while IFS= read -r name; do
  case "$name" in
    PIP_FIND_LINKS | PIP_CERT | PIP_TARGET | PIP_PREFIX | PIP_CACHE_DIR) ;;  # paths of this machine
    *) environment+=("$name=${!name}") ;;
  esac
done < <(compgen -e | grep -E '^(PIP_|PAGEJIT_|(https?|ftp|no|HTTPS?|FTP|NO)_(proxy|PROXY)$)')

# Own mounts, so that they are gone with the command, however it ends.
# shellcheck disable=SC2016  # expanded by the inner shell
exec_inside='mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && root=$1 && shift && exec chroot "$root" "$@"'
unshare --mount --pid --fork sh -c "$exec_inside" sh "$root" env -i "${environment[@]}" \
  sh -c 'cd /pagejit && exec "$@"' sh "$@" </dev/null
