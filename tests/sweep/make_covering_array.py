#!/usr/bin/env python3
"""Writes covering arrays: rows of test factors in which every pair of values of any two factors occurs.

    make_covering_array.py decode > covering_decode.inc
    make_covering_array.py ragged > covering_ragged.inc
    make_covering_array.py sparse > covering_sparse.inc
    make_covering_array.py --check FOLDER    # exit 1 if a file there is not what this script writes

Greedy, after AETG (Cohen and others, 1997): each new row starts with a pair that is not covered yet and takes, factor by factor,
the value that covers most new pairs; the best of several attempts stays. Random numbers come from an own generator, so
that every Python version writes the same.
"""

import itertools
import sys

# Name, values as they stand in the file. The order is that of SweepCase's fields (sweep_cases.h).
DECODE_FACTORS = [
    ("head_size", [16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256]),
    ("block_size", [1, 5, 8, 16, 24, 32, 64, 528]),
    ("group_size", [1, 2, 3, 4, 5, 7, 8, 16, 71]),
    ("dtype", ["DataType::kFloat16", "DataType::kBFloat16"]),
    ("lengths", ["Lengths::kEmptyAndOne", "Lengths::kBlockBorders", "Lengths::kMedium",
                 "Lengths::kLong", "Lengths::kAll"]),
    ("num_splits", [0, 1, 2, 7]),  # 0: chosen by the library
    ("layout", ["CacheLayout::kNhd", "CacheLayout::kHnd", "CacheLayout::kInterleaved",
                "CacheLayout::kLayered", "CacheLayout::kPadded"]),
    ("logits", ["LogitRegime::kNormal", "LogitRegime::kHigh", "LogitRegime::kLow",
                "LogitRegime::kMixed"]),
    ("num_kv_heads", [1, 2]),
    ("with_lse", ["true", "false"]),
    ("share_prefix", ["true", "false"]),
    ("padded_rows", ["true", "false"]),
    ("order", ["kPagejitEmulatorFifo", "kPagejitEmulatorLifo", "kPagejitEmulatorRandom"]),
    ("completion", ["kPagejitEmulatorLate", "kPagejitEmulatorEarly",
                    "kPagejitEmulatorRandomCompletion"]),
]
# The order is that of RaggedSweepCase's fields (ragged_sweep_test.cc).
RAGGED_FACTORS = [
    ("head_size", [16, 40, 64, 72, 96, 128, 256]),
    ("group_size", [1, 3, 4, 7, 16, 71]),
    ("block_size", [1, 5, 16, 528]),
    ("dtype", ["DataType::kFloat16", "DataType::kBFloat16"]),
    ("queries", ["QueryLengths::kFew", "QueryLengths::kMany"]),
    ("causality", ["Causality::kNone", "Causality::kCausal", "Causality::kPerSequence"]),
    ("kv_table", ["KvTable::kBlocks", "KvTable::kCsr", "KvTable::kContiguous"]),
    ("mask", ["Mask::kNone", "Mask::kWindowLeft", "Mask::kWindowRight", "Mask::kWindowBoth",
              "Mask::kChunks"]),
    ("soft_cap", ["true", "false"]),
    ("alibi", ["true", "false"]),
    ("sinks", ["true", "false"]),
    ("lengths", ["Lengths::kMixed", "Lengths::kDecode", "Lengths::kPrompts",
                 "Lengths::kSpeculative", "Lengths::kLong"]),
    ("num_splits", [0, 1, 2, 5]),
    ("layout", ["CacheLayout::kNhd", "CacheLayout::kHnd", "CacheLayout::kInterleaved",
                "CacheLayout::kLayered", "CacheLayout::kPadded"]),
    ("logits", ["LogitRegime::kNormal", "LogitRegime::kHigh", "LogitRegime::kLow",
                "LogitRegime::kMixed"]),
    ("with_lse", ["true", "false"]),
    ("order", ["kPagejitEmulatorFifo", "kPagejitEmulatorLifo", "kPagejitEmulatorRandom"]),
    ("completion", ["kPagejitEmulatorLate", "kPagejitEmulatorEarly",
                    "kPagejitEmulatorRandomCompletion"]),
]
# The order is that of BlockSparseCase's fields (block_sparse_test.cc).
SPARSE_FACTORS = [
    ("queries", ["QueryLengths::kOne", "QueryLengths::kFew", "QueryLengths::kMany"]),
    ("head_size", [16, 64, 80, 128]),
    ("group_size", [1, 4, 7, 20]),
    ("block_size", [8, 16, 40]),
    ("kv_type", ["DataType::kFloat16", "DataType::kBFloat16", "DataType::kFloat8E4m3",
                 "DataType::kFloat8E5m2"]),
    ("kv_layout", ["KvLayout::kRows", "KvLayout::kVllm"]),
    ("kv_table", ["KvTable::kBlocks", "KvTable::kCsr", "KvTable::kContiguous"]),
    ("causality", ["Causality::kNone", "Causality::kCausal", "Causality::kPerSequence"]),
    ("mask", ["Mask::kNone", "Mask::kWindow", "Mask::kChunks", "Mask::kBits"]),
    ("soft_cap", ["true", "false"]),
    ("alibi", ["true", "false"]),
    ("sinks", ["true", "false"]),
    ("local_blocks", [0, 1, 2, 16]),
    ("vert_stride", [1, 2, 3, 8, 64, 65]),
    ("sparse_block_size", [1, 13, 16, 24, 64]),
    ("head_sliding_step", [-5, -1, 0, 1, 2]),
    ("tp_rank", [0, 3]),
    ("lengths", ["Lengths::kMixed", "Lengths::kPrompts", "Lengths::kLong"]),
    ("num_splits", [0, 1, 3]),
]
ARRAYS = {"decode": DECODE_FACTORS, "ragged": RAGGED_FACTORS, "sparse": SPARSE_FACTORS}
ATTEMPTS = 30  # rows tried for each row taken; more make the array hardly shorter


class SplitMix64:
    """The generator of tools/reference/random.h."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
        return (z ^ (z >> 31)) % bound

    def shuffled(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


def all_pairs(sizes):
    """Every ((factor, value), (factor, value)), the lower factor first."""
    pairs = []
    for a, b in itertools.combinations(range(len(sizes)), 2):
        pairs += [((a, i), (b, j)) for i in range(sizes[a]) for j in range(sizes[b])]
    return pairs


def pairs_of(row):
    return set(itertools.combinations(list(enumerate(row)), 2))


def make_row(sizes, missing, first_pair, rng):
    """A row with `first_pair`; the other factors in random order, each with its best value."""
    row = [None] * len(sizes)
    for factor, value in first_pair:
        row[factor] = value
    for factor in rng.shuffled(f for f in range(len(sizes)) if row[f] is None):
        best = None
        for value in rng.shuffled(range(sizes[factor])):
            gain = sum(1 for other, taken in enumerate(row) if taken is not None and
                       tuple(sorted(((factor, value), (other, taken)))) in missing)
            if best is None or gain > best[0]:
                best = (gain, value)
        row[factor] = best[1]
    return row


def make_rows(sizes):
    rng = SplitMix64(1)
    pairs = all_pairs(sizes)
    missing = set(pairs)
    rows = []
    for pair in pairs:  # the first missing pair each time, in a fixed order
        if pair not in missing:
            continue
        attempts = [make_row(sizes, missing, pair, rng) for _ in range(ATTEMPTS)]
        row = max(attempts, key=lambda r: len(pairs_of(r) & missing))
        missing -= pairs_of(row)
        rows.append(row)
    assert not missing
    return rows


def make_text(factors):
    rows = make_rows([len(values) for _, values in factors])
    lines = ["// Written by make_covering_array.py; not edited by hand. Fields: " +
             ", ".join(name for name, _ in factors) + ".",
             "// clang-format off"]
    for row in rows:
        lines.append("{" + ", ".join(str(factors[f][1][v]) for f, v in enumerate(row)) + "},")
    lines.append("// clang-format on")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) == 2 and sys.argv[1] in ARRAYS:
        sys.stdout.write(make_text(ARRAYS[sys.argv[1]]))
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        status = 0
        for name, factors in ARRAYS.items():
            path = f"{sys.argv[2]}/covering_{name}.inc"
            with open(path, encoding="utf-8") as file:
                if file.read() != make_text(factors):
                    print(f"{path} is not what this script writes; run it again", file=sys.stderr)
                    status = 1
        return status
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
