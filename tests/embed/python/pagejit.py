"""What an attention layer needs of pagejit's C API (<pagejit/pagejit.h>), by ctypes.

Structs and functions are those of the headers; a struct that is made has pagejit's defaults. Not a
binding of everything, and not more than the C API: no tensors here (tensor.py). Thread-safety: as
the C API, but each thread needs an error object of its own; this module has one.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

# The installed library: by its name on the loader's path, or by PAGEJIT_LIBRARY.
LIBRARY_PATH = os.environ.get("PAGEJIT_LIBRARY", "libpagejit.so.0.1")
_library = ctypes.CDLL(LIBRARY_PATH)

QUERIES_ONE, QUERIES_MANY = 0, 2
CAUSALITY_NONE, CAUSALITY_CAUSAL = 0, 1
DTYPE_F16 = 0
SWAP_DEVICE_TO_HOST, SWAP_HOST_TO_DEVICE = 0, 1
CURRENT_DEVICE = -1


class Error(Exception):
    """A call that failed; `status` is one of enum pagejit_status_code."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


_library.pagejit_status_name.restype = c_char_p
_library.pagejit_error_message.restype = c_char_p
_library.pagejit_error_message.argtypes = [c_void_p]
_error = c_void_p()
_library.pagejit_error_create(byref(_error))


def _check(status):
    if status != 0:
        name = _library.pagejit_status_name(status).decode()
        raise Error(status, f"{name}: {_library.pagejit_error_message(_error).decode()}")


def call(name, *arguments):
    """Calls pagejit_<name>(*arguments, error); ints go as int32_t, or wrapped in what they are."""
    _check(getattr(_library, "pagejit_" + name)(*arguments, _error))


class Struct(ctypes.Structure):
    """A struct whose first field is struct_size, filled by pagejit_<c_name>_init."""

    def __init__(self, **fields):
        super().__init__()
        init = getattr(_library, f"pagejit_{self.c_name}_init")
        _check(init(byref(self), c_size_t(ctypes.sizeof(self))))
        for name, value in fields.items():
            setattr(self, name, value)


class KvStrides(ctypes.Structure):
    _fields_ = [("block", c_int64), ("token", c_int64), ("head", c_int64)]


class BlockSparseArgs(ctypes.Structure):
    _fields_ = [(name, c_int32) for name in
                ("local_blocks", "vert_stride", "block_size", "head_sliding_step", "tp_rank")]


def _fields(ctype, names):
    return [(name, ctype) for name in names.split()]


class KernelSpec(Struct):
    c_name = "kernel_spec"
    _fields_ = _fields(c_size_t, "struct_size") + _fields(
        c_int32, "queries q_dtype kv_dtype out_dtype head_size head_size_v block_size group_size "
        "causality kv_table kv_layout latent token_scales kv_alignment window chunked custom_mask "
        "bidirectional_ranges block_sparse soft_cap alibi qq_bias sinks batch_invariant debug pdl")


class AttentionArgs(Struct):
    c_name = "attention_args"
    _fields_ = (
        _fields(c_size_t, "struct_size") + _fields(c_void_p, "q")
        + _fields(c_int64, "q_stride_token q_stride_head") + _fields(c_void_p, "k_cache v_cache")
        + _fields(KvStrides, "k_strides v_strides") + _fields(c_void_p, "q_scale k_scale v_scale")
        + _fields(c_int64, "kv_scale_stride") + _fields(KvStrides, "k_scale_strides v_scale_strides")
        + _fields(c_int64, "num_blocks") + _fields(c_void_p, "block_table")
        + _fields(c_int64, "block_table_stride") + _fields(c_int32, "max_blocks_per_seq reserved")
        + _fields(c_void_p, "seq_lens kv_indptr kv_indices kv_last_block_len kv_start_loc token_lists")
        + _fields(c_int64, "token_list_stride") + _fields(c_int32, "max_list_len reserved1")
        + _fields(c_void_p, "query_seqs query_start_loc")
        + _fields(c_int32, "num_query_tokens reserved2") + _fields(c_void_p, "causal_flags out")
        + _fields(c_int64, "out_stride_token out_stride_head") + _fields(c_void_p, "out_scale lse")
        + _fields(c_int32, "window_left window_right chunk_size reserved3")
        + _fields(c_void_p, "custom_mask custom_mask_indptr bidirectional_ranges")
        + _fields(c_int64, "bidirectional_ranges_stride")
        + _fields(c_int32, "max_bidirectional_ranges ranges_within_window")
        + _fields(BlockSparseArgs, "block_sparse") + _fields(c_float, "soft_cap")
        + _fields(c_void_p, "alibi_slopes qq_bias") + _fields(c_int64, "qq_bias_stride_seq qq_bias_stride_row")
        + _fields(c_void_p, "sinks") + _fields(c_int32, "num_seqs num_kv_heads")
        + _fields(c_float, "scale") + _fields(c_int32, "max_seq_len num_splits reserved4")
        + _fields(c_void_p, "workspace") + _fields(c_size_t, "workspace_bytes"))


class CacheWriteSpec(Struct):
    c_name = "cache_write_spec"
    _fields_ = _fields(c_size_t, "struct_size") + _fields(
        c_int32, "dtype kv_dtype scale layout head_size head_size_v block_size rope rotary_dim "
        "cos_sin_dtype row_alignment debug pdl reserved")


class CacheWriteArgs(Struct):
    c_name = "cache_write_args"
    _fields_ = (
        _fields(c_size_t, "struct_size") + _fields(c_void_p, "key value")
        + _fields(c_int64, "key_stride_token key_stride_head value_stride_token value_stride_head")
        + _fields(c_void_p, "k_cache v_cache") + _fields(KvStrides, "k_strides v_strides")
        + _fields(c_void_p, "slot_mapping") + _fields(c_int32, "num_tokens num_kv_heads")
        + _fields(c_void_p, "k_scale v_scale q") + _fields(c_int64, "q_stride_token q_stride_head")
        + _fields(c_int32, "num_q_heads reserved") + _fields(c_void_p, "positions cos_sin")
        + _fields(c_int64, "num_blocks max_position") + _fields(c_void_p, "debug_report"))


class CopyBlocksSpec(Struct):
    c_name = "copy_blocks_spec"
    _fields_ = _fields(c_size_t, "struct_size") + _fields(c_int32, "alignment debug")


class CopyBlocksArgs(Struct):
    c_name = "copy_blocks_args"
    _fields_ = (
        _fields(c_size_t, "struct_size") + _fields(c_void_p, "caches")
        + _fields(c_int32, "num_caches reserved") + _fields(c_int64, "block_bytes block_stride_bytes")
        + _fields(c_void_p, "pairs") + _fields(c_int32, "num_pairs reserved1")
        + _fields(c_int64, "num_blocks") + _fields(c_void_p, "debug_report"))


class SwapBlocksArgs(Struct):
    c_name = "swap_blocks_args"
    _fields_ = (
        _fields(c_size_t, "struct_size") + _fields(c_int32, "direction reserved")
        + _fields(c_void_p, "from_ to")  # `from` is a word of Python
        + _fields(c_int64, "block_bytes from_stride_bytes to_stride_bytes")
        + _fields(c_void_p, "pairs") + _fields(c_int32, "num_pairs reserved1"))


class EngineOptions(Struct):
    c_name = "engine_options"
    _fields_ = (
        _fields(c_size_t, "struct_size") + _fields(c_char_p, "driver")
        + _fields(c_int32, "allow_emulator reserved")
        + _fields(c_char_p, "emulator_path nvrtc_path host_compiler")
        + _fields(c_int32, "host_build reserved1") + _fields(c_char_p, "cache_dir")
        + _fields(c_int32, "disk_cache reserved2") + _fields(c_uint64, "cache_max_bytes")
        + _fields(c_void_p, "memory_bundles") + _fields(c_size_t, "num_memory_bundles")
        + _fields(c_void_p, "bundles") + _fields(c_size_t, "num_bundles")
        + _fields(c_void_p, "read_only_dirs") + _fields(c_size_t, "num_read_only_dirs")
        + _fields(c_char_p, "remote") + _fields(c_int32, "remote_layout remote_write")
        + _fields(c_void_p, "trusted_keys") + _fields(c_size_t, "num_trusted_keys")
        + _fields(c_int32, "require_signed compile_threads jit reserved3")
        + _fields(c_char_p, "record_path dump_dir stats_path")
        + _fields(c_int32, "log_level reserved4")
        + _fields(c_void_p, "log_callback log_user on_event event_user")
        + _fields(c_int32, "tuned reserved5"))


class Handle:
    """An object of the library, destroyed with this one."""

    def __init__(self, c_name):
        self._c_name = c_name
        self.value = c_void_p()
        self._as_parameter_ = self.value  # as such it goes to functions

    def __del__(self):
        getattr(_library, f"pagejit_{self._c_name}_destroy")(self.value, None)


class Engine(Handle):
    """Makes kernels. Options come from the environment (PAGEJIT_*)."""

    def __init__(self):
        super().__init__("engine")
        environment = Handle("environment")
        options = EngineOptions()
        call("engine_options_from_environment", byref(options), byref(environment.value))
        self.driver = (options.driver or b"").decode()
        self.emulator_path = (options.emulator_path or b"").decode()
        call("engine_create", byref(options), byref(self.value))

    def prepare_async(self, family, spec):
        """A function that waits for the kernel for `spec`; `family`: "kernel", "cache_write_kernel", ..."""
        pending = Handle("pending")
        call(family + "_prepare_async", self, byref(spec), CURRENT_DEVICE, None, byref(pending.value))

        def wait():
            kernel = Handle(family)
            call(family + "_wait", pending, byref(kernel.value))
            return kernel

        return wait

    def prepare(self, family, spec):
        return self.prepare_async(family, spec)()


def launch(family, kernel, args, stream):
    call(family + "_launch", kernel, byref(args), stream)
