"""The sizes of the attention layer that this program serves: those of a small model with grouped
query heads. f16, which numpy has."""

import numpy

NUM_HEADS = 8  # of q
NUM_KV_HEADS = 2  # of K and V
HEAD_SIZE = 64
GROUP_SIZE = NUM_HEADS // NUM_KV_HEADS
BLOCK_SIZE = 16  # tokens per block of the paged cache
DTYPE = numpy.float16

BLOCK_BYTES = BLOCK_SIZE * NUM_KV_HEADS * HEAD_SIZE * 2  # of K, and of V
