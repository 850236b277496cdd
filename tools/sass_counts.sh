#!/usr/bin/env bash
# Counts the machine instructions of a kernel's main loop: the longest loop that has tensor-core products, or without
# such a one the longest. The counts in templates/attention/README.md are these. Needs a build (tools/quickstart.sh makes one), no
# GPU; fetches NVIDIA's nvdisasm as a wheel where no toolkit has it.
#
#   tools/sass_counts.sh FLAG...    flags of `pagejit precompile`, with one --arch
#
#   tools/sass_counts.sh --head-size 128 --group-size 4 --arch sm_90a
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  "" | -h | --help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
esac
pagejit=$root/build/release/tools/pagejit
[ -x "$pagejit" ] || fail "$pagejit is missing; run tools/quickstart.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! nvdisasm=$(find_nvdisasm); then
  say "fetching nvidia-cuda-nvdisasm" >&2
  fetch_nvdisasm
  nvdisasm=$(find_nvdisasm) || fail "the wheel holds no nvdisasm where it is looked for ($deps/python/nvidia/cu13/bin)"
fi

choose_nvrtc
PAGEJIT_CACHE_DIR=$work/cache "$pagejit" precompile "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mapfile -t entries < <(find "$work/cache" -name '*.pjk')
[ "${#entries[@]}" -eq 1 ] || fail "these flags make ${#entries[@]} kernels; one is wanted"
# An entry holds the cubin as it is, an ELF file, behind its own header.
offset=$(LC_ALL=C grep -abo -m 1 $'\x7fELF' "${entries[0]}" | head -n 1 | cut -d: -f1)
tail -c "+$((offset + 1))" "${entries[0]}" >"$work/kernel.cubin"

"$nvdisasm" -c "$work/kernel.cubin" | awk '
  /^[ \t]*\.L_x_[0-9]+:/ { label = $1; sub(/:$/, "", label); place[label] = count; next }
  match($0, /^[ \t]+\/\*[0-9a-f]+\*\/[ \t]+/) {
    text = substr($0, RLENGTH + 1)
    sub(/^@!?U?P[0-9T]+ +/, "", text)
    split(text, words, /[ ;]/)
    operation[count] = words[1]
    if (words[1] ~ /^BRA/ && match(text, /\.L_x_[0-9]+/)) target[count] = substr(text, RSTART, RLENGTH)
    if (words[1] != "NOP") ++total
    ++count
  }
  END {
    for (i = 0; i < count; ++i) {
      if (!(i in target) || !(target[i] in place) || place[target[i]] > i) continue
      first = place[target[i]]
      products = 0
      for (j = first; j <= i; ++j) products += operation[j] ~ /^[HI]MMA/
      length_of = i - first + 1
      if ((products > 0) > is_product || ((products > 0) == is_product && length_of > longest)) {
        is_product = products > 0; longest = length_of; begin = first; end = i
      }
    }
    printf "%d instructions, %d in the main loop\n", total, longest
    if (!longest) exit
    for (j = begin; j <= end; ++j) ++uses[operation[j]]
    for (name in uses) printf "%6d %s\n", uses[name], name | "sort -k1,1nr -k2"
  }'
