"""Decodes two sequences over one paged cache as an inference engine does, with pagejit's kernels, and
compares every step with dense attention of its own.

    paged_decoder.py [--break block-table|fork|copy|grow|swap]

Exit code 0: every step is right; 1: one is not; 2: it could not be run. On the CPU emulator with
PAGEJIT_DRIVER=emulator.
"""

import sys

import numpy

import pagejit
from attention_layer import AttentionLayer
from cuda_driver import CudaDriver, CudaError
from dense_attention import compare_with_dense
from model import DTYPE, HEAD_SIZE, NUM_HEADS, NUM_KV_HEADS
from paged_cache import FAULTS, PagedCache, Sequence

NUM_BLOCKS = 8  # of the cache: few, so that blocks are soon used again


class Request:
    def __init__(self, sequence, k, v):
        self.sequence = sequence  # in the paged cache
        self.k, self.v = k, v  # the same tokens, for comparison


class Decoder:
    def __init__(self, fault):
        engine = pagejit.Engine()
        cuda = CudaDriver(engine)
        self.layer = AttentionLayer(cuda, engine, fault)
        self.cache = PagedCache(cuda, engine, NUM_BLOCKS, fault)
        self._random = numpy.random.default_rng(1)
        self.has_passed = True

    def _random_rows(self, num_tokens, num_heads):
        return self._random.uniform(-2, 2, (num_tokens, num_heads, HEAD_SIZE)).astype(DTYPE)

    def run(self, phase, requests, num_steps, num_new_tokens):
        """`num_steps` steps, each with `num_new_tokens` more tokens for each request; prints one line."""
        worst, what = 0, ""
        for step in range(num_steps):
            # Here the model computes q, K and V of the new tokens.
            num_tokens = len(requests) * num_new_tokens
            q = self._random_rows(num_tokens, NUM_HEADS)
            k, v = (self._random_rows(num_tokens, NUM_KV_HEADS) for _ in range(2))

            out = self.layer.run(self.cache, [request.sequence for request in requests], q, k, v)

            out = out.to_host()
            for i, request in enumerate(requests):
                rows = slice(i * num_new_tokens, (i + 1) * num_new_tokens)
                request.k = numpy.concatenate([request.k, k[rows]])
                request.v = numpy.concatenate([request.v, v[rows]])
                ratio, place = compare_with_dense(request.k, request.v, q[rows], out[rows])
                if ratio > worst:
                    worst, what = ratio, f"step {step}, sequence {i}, {place}"
        verdict = "ok" if worst <= 1 else f"WRONG: {what}"
        print(f"{phase:<26} {num_steps:2} steps of {len(requests)} sequences, "
              f"worst error {worst:.2f} of its limit: {verdict}")
        self.has_passed = self.has_passed and worst <= 1

    def expect_used_blocks(self, when, num_blocks):
        """That so many blocks are in use; prints one line, as the next one does."""
        used = self.cache.num_used_blocks()
        print(f"{when:<26} {used:2} blocks in use: {'ok' if used == num_blocks else 'WRONG'}")
        self.has_passed = self.has_passed and used == num_blocks

    def expect_other_blocks(self, before, sequence):
        """That a sequence has none of the blocks that it had before."""
        is_right = not set(before) & set(sequence.blocks)
        print(f"{'swap in':<26} in other blocks than before: {'ok' if is_right else 'WRONG'}")
        self.has_passed = self.has_passed and is_right


def decode_two_sequences(fault):
    decoder = Decoder(fault)
    nothing = numpy.empty((0, NUM_KV_HEADS, HEAD_SIZE), DTYPE)
    a = Request(Sequence(), nothing, nothing)
    decoder.run("prefill", [a], 1, 37)
    decoder.run("decode", [a], 3, 1)
    num_blocks = decoder.cache.num_used_blocks()

    # 40 tokens: the third block is half full. The next step writes it, for both sequences.
    b = Request(decoder.cache.fork(a.sequence), a.k, a.v)
    decoder.expect_used_blocks("fork", num_blocks)
    decoder.run("fork, then copy on write", [a, b], 4, 1)
    decoder.expect_used_blocks("copy on write", num_blocks + 1)

    # What a had in the device is overwritten by NaN, then by b's fourth block.
    before = a.sequence.blocks
    host = decoder.cache.swap_out(a.sequence)
    decoder.expect_used_blocks("swap out", num_blocks)
    decoder.run("one swapped out", [b], 5, 1)

    decoder.cache.swap_in(a.sequence, host)
    decoder.expect_other_blocks(before, a.sequence)
    decoder.run("swapped in again", [a, b], 5, 1)
    return decoder.has_passed


def main(arguments):
    fault = arguments[1] if len(arguments) == 2 and arguments[0] == "--break" else None
    if arguments and fault not in FAULTS:
        print(f"usage: paged_decoder.py [--break {'|'.join(FAULTS)}]", file=sys.stderr)
        return 2
    try:
        return 0 if decode_two_sequences(fault) else 1
    except (pagejit.Error, CudaError, MemoryError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
