"""PagedCache: one layer's K and V in blocks that sequences take as they grow, share when they are
forked and give back. It decides which block holds what, and copies blocks where sharing ends and
where a sequence goes to the host; it computes nothing. One thread."""

import dataclasses

import numpy

import dlpack
import pagejit
from model import BLOCK_BYTES, BLOCK_SIZE, DTYPE, HEAD_SIZE, NUM_KV_HEADS
from tensor import Tensor


@dataclasses.dataclass
class Sequence:
    """A sequence's tokens in the cache: its row of the block table."""

    blocks: list = dataclasses.field(default_factory=list)  # ceil(num_tokens / BLOCK_SIZE) of them
    num_tokens: int = 0


# What is done wrong on purpose (--break), to see that the program's checks find it.
FAULTS = {
    "block-table": "every second block in the table has the id of the first (AttentionLayer)",
    "fork": "the fork gets blocks of its own at once",
    "copy": "the block that is written after the fork is not copied",
    "grow": "a decode step that needs another block goes on in the last one",
    "swap": "nothing is copied back from the host",
}


class PagedCache:
    # Of k and v.
    STRIDES = pagejit.KvStrides(block=BLOCK_SIZE * NUM_KV_HEADS * HEAD_SIZE,
                                token=NUM_KV_HEADS * HEAD_SIZE, head=HEAD_SIZE)

    def __init__(self, cuda, engine, num_blocks, fault=None):
        self._cuda, self._engine, self._fault = cuda, engine, fault
        self._copy_kernel = engine.prepare("copy_blocks_kernel", pagejit.CopyBlocksSpec())
        shape = num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_SIZE
        self.k, self.v = Tensor(cuda, shape, DTYPE), Tensor(cuda, shape, DTYPE)
        self._cache_pointers = Tensor.of(cuda, numpy.array([self.k.address, self.v.address], numpy.uint64))
        self._num_users = [1] * num_blocks
        self._free_blocks = []  # the one given back last is taken first
        for block in reversed(range(num_blocks)):
            self._give_back(block)

    def num_used_blocks(self):
        return len(self._num_users) - len(self._free_blocks)

    def _take_block(self):
        if not self._free_blocks:
            raise MemoryError("the paged cache is full")
        block = self._free_blocks.pop()
        self._num_users[block] = 1
        return block

    def _give_back(self, block):
        self._num_users[block] -= 1
        if self._num_users[block] > 0:
            return
        self._free_blocks.append(block)
        # Nothing may read what is left in a free block, nor the rest of one that is taken: to show
        # that, it is filled with NaN (0xffff). An engine does not do this.
        for cache in self.k, self.v:
            self._cuda.fill(cache.address + block * BLOCK_BYTES, 0xFF, BLOCK_BYTES)

    def append(self, sequence, count):
        """Makes room for `count` tokens and returns their slots, as CacheWriteArgs.slot_mapping
        wants them. A block that is written and shared is copied first."""
        slots, copies = [], []
        for _ in range(count):
            place = sequence.num_tokens % BLOCK_SIZE
            if place == 0:
                is_stuck = self._fault == "grow" and count == 1
                sequence.blocks.append(sequence.blocks[-1] if is_stuck else self._take_block())
            last = sequence.blocks[-1]
            if self._num_users[last] > 1:
                sequence.blocks[-1] = self._take_block()
                copies.append([last, sequence.blocks[-1]])
                self._give_back(last)
            slots.append(sequence.blocks[-1] * BLOCK_SIZE + place)
            sequence.num_tokens += 1
        if copies and self._fault != "copy":
            self._copy_blocks(copies)
        return slots

    def _copy_blocks(self, copies):
        pairs = Tensor.of(self._cuda, numpy.array(copies, numpy.int64))
        args = pagejit.CopyBlocksArgs(
            caches=self._cache_pointers.address, num_caches=2, block_bytes=BLOCK_BYTES,
            block_stride_bytes=BLOCK_BYTES, pairs=pairs.address, num_pairs=len(copies))
        pagejit.launch("copy_blocks_kernel", self._copy_kernel, args, self._cuda.stream)

    def fork(self, sequence):
        """A sequence with the same tokens in the same blocks."""
        blocks = list(sequence.blocks)
        if self._fault == "fork":
            blocks = [self._take_block() for _ in blocks]
            self._copy_blocks(list(zip(sequence.blocks, blocks)))
        else:
            for block in blocks:
                self._num_users[block] += 1
        return Sequence(blocks, sequence.num_tokens)

    def swap_out(self, sequence):
        """Copies K and V to host memory, which is returned, and gives the blocks back."""
        shape = 2, len(sequence.blocks), *self.k.shape[1:]
        host = Tensor(self._cuda, shape, DTYPE, (dlpack.CUDA_HOST, 0))
        self._swap(pagejit.SWAP_DEVICE_TO_HOST, sequence, host)
        # The copies come first in the stream, so the blocks may be written by what follows there.
        for block in sequence.blocks:
            self._give_back(block)
        sequence.blocks = []
        return host

    def swap_in(self, sequence, host):
        """Copies K and V of `host` into other blocks."""
        sequence.blocks = [self._take_block() for _ in range(host.shape[1])]
        if self._fault != "swap":
            self._swap(pagejit.SWAP_HOST_TO_DEVICE, sequence, host)

    def _swap(self, direction, sequence, host):
        is_out = direction == pagejit.SWAP_DEVICE_TO_HOST
        host_blocks = range(len(sequence.blocks))
        pairs = zip(sequence.blocks, host_blocks) if is_out else zip(host_blocks, sequence.blocks)
        pairs = numpy.array(list(pairs), numpy.int64)
        for i, cache in enumerate((self.k, self.v)):
            sides = cache.address, host.address + i * len(pairs) * BLOCK_BYTES
            args = pagejit.SwapBlocksArgs(
                direction=direction, from_=sides[0 if is_out else 1], to=sides[1 if is_out else 0],
                block_bytes=BLOCK_BYTES, from_stride_bytes=BLOCK_BYTES, to_stride_bytes=BLOCK_BYTES,
                pairs=pairs.ctypes.data, num_pairs=len(pairs))
            pagejit.call("engine_swap_blocks", self._engine, pagejit.byref(args), self._cuda.stream)
