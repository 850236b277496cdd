#!/bin/sh
# Plants words of other libraries in a small tree; check_words.sh must find exactly the planted line, and let the legal
# ones through. Usage: words_self_test.sh FOLDER_OF_check_words.sh
set -eu
here=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

clean_tree() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/runtime/include/pagejit/c" "$work/tree/runtime/engine" "$work/tree/generator" "$work/tree/templates/shared" \
    "$work/tree/tools/cli" "$work/tree/tools/models" "$work/tree/tests" "$work/tree/build"
  cd "$work/tree"
  printf '%s\n' 'head_size and block_size' '## Words' '| head_size | head_dim |' '## Licence' 'x' > README.md
  printf '%s\n' 'page_size is block_size' > runtime/from_flashinfer.md
  printf '%s\n' '#pragma once' > runtime/include/pagejit/spec.h
  printf '%s\n' 'const int32_t* block_tables;' > runtime/include/pagejit/paged_attention.h
  printf '%s\n' 'const int32_t* block_tables;' > runtime/include/pagejit/c/paged_attention.h
  printf '%s\n' '// FlashInfer: page_table' 'int qk_rope_head_dim;  // its own word' 'key("head_dim");  // words: of the file' \
    > tools/cli/main.cc
  printf '%s\n' 'launch.block_table = args.block_tables;' > runtime/engine/paged_attention.cc
  printf '%s\n' 'int plan(int head_size);' > generator/planner.cc
  printf '%s\n' 'const int* cu_seq_lens;' > templates/shared/cache_ops_params.h
  printf '%s\n' 'key("head_dim");' > tools/models/reader.cc
  printf '%s\n' 'refused("head_dim=64");' > tests/parser_test.cc
  printf '%s\n' 'head_dim' > build/notes.md
}

# planted FILE TEXT EXPECTED: appended to FILE, TEXT is reported with EXPECTED, and nothing else is.
planted() {
  clean_tree
  printf '%s\n' "$2" >> "$1"
  line=$(($(wc -l < "$1")))
  if out=$(sh "$here/check_words.sh" "$work/tree"); then status=0; else status=$?; fi
  if [ "$status" -eq 1 ] && [ "$out" = "$1:$line: $3" ]; then
    passed=$((passed + 1))
    return
  fi
  echo "NOT FOUND as wanted: $1: $2"
  echo "  exit $status: $out"
  failed=$((failed + 1))
}

clean_tree
if ! sh "$here/check_words.sh" "$work/tree"; then
  echo "a clean tree is reported"
  failed=$((failed + 1))
fi
planted README.md 'after the table: head_dim' 'head_dim is head_size here'
planted runtime/README.md 'an array `page_table` of a batch' 'page_table is block_table here'
planted runtime/include/pagejit/spec.h 'float softmax_scale = 1;' 'softmax_scale is scale here'
planted runtime/include/pagejit/spec.h 'int32_t* block_tables;' 'block_tables is block_table here'
planted runtime/include/pagejit/paged_attention.h 'int page_size;' 'page_size is block_size here'
planted tools/cli/main.cc 'add_option("--page-size", flags->tokens);' 'page_size is block_size here'
planted tools/cli/flags.h 'int32_t* context_lens;  // on the device' 'context_lens is seq_lens here'
planted generator/planner.cc 'int rows = num_query_heads / num_kv_heads;' 'num_query_heads is num_heads here'
planted runtime/engine/kernel.cc 'float sm_scale_ = 1;' 'sm_scale is scale here'
planted templates/shared/params.h 'float of(float softmax_scale);' 'softmax_scale is scale here'
planted templates/decode.cuh 'const int* cu_seq_lens;' 'cu_seq_lens is kv_start_loc here'
planted templates/decode.cu.tmpl '#define D {{head_dim}}' 'head_dim is head_size here'
planted tools/models/README.md 'the head_dim of a model' 'head_dim is head_size here'

rm "$work/tree/README.md"
if sh "$here/check_words.sh" "$work/tree" >/dev/null; then
  echo "a tree without a README passes"
  failed=$((failed + 1))
fi
echo "$passed planted words found, $failed failures"
[ "$failed" -eq 0 ]
