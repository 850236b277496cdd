#!/bin/sh
# Checks that one thing has one name: words.txt's words of other libraries stand in no header, source or template outside of
# tests/, and in no document. Prints "file:line: what" per violation; exit 1 if any. Usage: check_words.sh REPOSITORY
#
# Let through: the table under "## Words" in README.md; the pages runtime/from_*.md, for readers who come from elsewhere;
# sources in tools/models/, which reads files with their words; a line that says whose word it is; a line with "words: REASON".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

files=$(find . \( -name build -o -name '.?*' \) -prune -o -type f \
  \( -name '*.md' -o -name '*.h' -o -name '*.cc' -o -name '*.cuh' -o -name '*.cu.tmpl' \) -print |
  sed 's,^\./,,' | grep -E '\.md$|^(cache|generator|runtime|templates|tools)/' |
  grep -vE '^runtime/from_[a-z]*\.md$|^tools/models/.*\.(h|cc)$' | sort)
# A cheap guard against a check that looks at nothing.
for wanted in README.md generator/ runtime/include/pagejit/ runtime/engine/ templates/ tools/cli/; do
  case "$files" in *"$wanted"*) ;; *) echo "no $wanted below $1"; exit 2 ;; esac
done

# shellcheck disable=SC2086  # paths of this repository hold no blanks
awk '
FILENAME == list {
  if ($0 ~ /^#/ || NF == 0) next
  here[$1] = $2
  for (i = 3; i <= NF; ++i) legal[$1, $i] = 1
  next
}
FNR == 1 { in_table = 0 }
FILENAME == "README.md" && /^## / { in_table = $0 == "## Words" }
in_table || /FlashInfer|FlashAttention|FlashMLA|vLLM|Hugging Face|config\.json|words: *[A-Za-z]/ { next }
{
  n = split($0, words, /[^A-Za-z0-9_-]+/)
  for (i = 1; i <= n; ++i) {
    word = words[i]
    gsub(/^-+|-+$/, "", word)
    gsub(/-/, "_", word)
    sub(/_$/, "", word)  # of a member
    if (word in here && !((word, FILENAME) in legal)) {
      printf "%s:%d: %s is %s here\n", FILENAME, FNR, word, here[word]
      bad = 1
    }
  }
}
END { exit bad }
' list="$here/words.txt" "$here/words.txt" $files
