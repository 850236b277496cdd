"""AttentionLayer: what pagejit does in a step of an engine. The new tokens' K and V go into the paged
cache, then their queries attend to everything that is in it. One thread."""

import ctypes
import math

import numpy

import pagejit
from model import BLOCK_SIZE, DTYPE, GROUP_SIZE, HEAD_SIZE, NUM_HEADS, NUM_KV_HEADS
from paged_cache import PagedCache
from tensor import Tensor


def _attention_spec(queries):
    # The one query of a decode step comes last, so that there is nothing to hide from it.
    causality = pagejit.CAUSALITY_NONE if queries == pagejit.QUERIES_ONE else pagejit.CAUSALITY_CAUSAL
    f16 = pagejit.DTYPE_F16
    return pagejit.KernelSpec(queries=queries, q_dtype=f16, kv_dtype=f16, out_dtype=f16, head_size=HEAD_SIZE,
                              block_size=BLOCK_SIZE, group_size=GROUP_SIZE, causality=causality)


class AttentionLayer:
    def __init__(self, cuda, engine, fault=None):
        """Prepares all kernels: from pagejit's cache where this program ran before, else compiled now."""
        self._cuda, self._fault = cuda, fault

        # All compile at once; a real engine loads its weights meanwhile.
        f16 = pagejit.DTYPE_F16
        write = engine.prepare_async("cache_write_kernel", pagejit.CacheWriteSpec(
            dtype=f16, kv_dtype=f16, head_size=HEAD_SIZE, block_size=BLOCK_SIZE))
        prefill = engine.prepare_async("kernel", _attention_spec(pagejit.QUERIES_MANY))
        decode = engine.prepare_async("kernel", _attention_spec(pagejit.QUERIES_ONE))
        self._write, self._prefill, self._decode = write(), prefill(), decode()

        # One workspace serves all launches of a stream, whatever their shapes.
        sizes = []
        for kernel in self._prefill, self._decode:
            size = ctypes.c_size_t()
            pagejit.call("kernel_max_workspace_bytes", kernel, ctypes.byref(size))
            sizes.append(size.value)
        self._workspace = Tensor(cuda, [max(sizes)], numpy.uint8)
        pagejit.call("kernel_workspace_init", self._decode, ctypes.c_void_p(self._workspace.address),
                     ctypes.c_size_t(self._workspace.size_bytes), cuda.stream)

    def run(self, cache, sequences, q, k, v):
        """The attention of every new token over its sequence up to itself, as a Tensor like q.

        q is [tokens, NUM_HEADS, HEAD_SIZE], k and v [tokens, NUM_KV_HEADS, HEAD_SIZE], anything with
        __dlpack__: as many new tokens for each of `sequences`, which have them when this returns,
        those of the first one first.
        """
        q, k, v = (Tensor.of(self._cuda, producer) for producer in (q, k, v))
        num_tokens = q.shape[0]
        new_per_sequence = num_tokens // len(sequences)
        slots = [slot for sequence in sequences for slot in cache.append(sequence, new_per_sequence)]
        self._write_cache(cache, k, v, slots)

        width = max(len(sequence.blocks) for sequence in sequences)
        # What is behind a sequence's blocks is not read.
        table = numpy.full((len(sequences), width), -1, numpy.int32)
        for row, sequence in zip(table, sequences):
            row[:len(sequence.blocks)] = sequence.blocks
            if self._fault == "block-table" and len(sequence.blocks) > 1:
                row[1] = row[0]
        table = Tensor.of(self._cuda, table)
        seq_lens = Tensor.of(self._cuda, numpy.array([s.num_tokens for s in sequences], numpy.int32))
        query_start = Tensor.of(self._cuda, numpy.arange(0, num_tokens + 1, new_per_sequence, dtype=numpy.int32))
        out = Tensor(self._cuda, q.shape, DTYPE)
        args = pagejit.AttentionArgs(
            q=q.address, q_stride_token=NUM_HEADS * HEAD_SIZE, q_stride_head=HEAD_SIZE,
            out=out.address, out_stride_token=NUM_HEADS * HEAD_SIZE, out_stride_head=HEAD_SIZE,
            k_cache=cache.k.address, v_cache=cache.v.address,
            k_strides=PagedCache.STRIDES, v_strides=PagedCache.STRIDES,
            block_table=table.address, block_table_stride=width, max_blocks_per_seq=width,
            seq_lens=seq_lens.address, query_start_loc=query_start.address, num_query_tokens=num_tokens,
            num_seqs=len(sequences), num_kv_heads=NUM_KV_HEADS, scale=1 / math.sqrt(HEAD_SIZE),
            workspace=self._workspace.address, workspace_bytes=self._workspace.size_bytes)
        pagejit.launch("kernel", self._decode if new_per_sequence == 1 else self._prefill, args, self._cuda.stream)
        return out

    def _write_cache(self, cache, k, v, slots):
        slots = Tensor.of(self._cuda, numpy.array(slots, numpy.int64))
        token, head = NUM_KV_HEADS * HEAD_SIZE, HEAD_SIZE
        args = pagejit.CacheWriteArgs(
            key=k.address, key_stride_token=token, key_stride_head=head,
            value=v.address, value_stride_token=token, value_stride_head=head,
            k_cache=cache.k.address, v_cache=cache.v.address,
            k_strides=PagedCache.STRIDES, v_strides=PagedCache.STRIDES,
            slot_mapping=slots.address, num_tokens=k.shape[0], num_kv_heads=NUM_KV_HEADS)
        pagejit.launch("cache_write_kernel", self._write, args, self._cuda.stream)
