//! What an attention layer needs of pagejit's C API, as <pagejit/pagejit.h> has it: structs,
//! constants and functions, with the same names and the same rules. Everything here is unsafe;
//! `pagejit.rs` is what the program uses.
#![allow(dead_code)] // most fields keep their defaults

use std::os::raw::{c_char, c_void};

/// One of enum pagejit_status_code.
pub type Status = i32;
/// A CUstream.
pub type Stream = *mut c_void;

pub const OK: Status = 0;
pub const QUERIES_ONE: i32 = 0;
pub const QUERIES_MANY: i32 = 2;
pub const CAUSALITY_NONE: i32 = 0;
pub const CAUSALITY_CAUSAL: i32 = 1;
pub const SWAP_DEVICE_TO_HOST: i32 = 0;
pub const SWAP_HOST_TO_DEVICE: i32 = 1;

/// Handles: pointers by type only.
#[repr(C)]
pub struct Opaque {
    _private: [u8; 0],
}
pub type Handle = *mut Opaque;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct KvStrides {
    pub block: i64,
    pub token: i64,
    pub head: i64,
}

#[repr(C)]
pub struct BlockSparseArgs {
    pub local_blocks: i32,
    pub vert_stride: i32,
    pub block_size: i32,
    pub head_sliding_step: i32,
    pub tp_rank: i32,
}

#[repr(C)]
pub struct EngineOptions {
    pub struct_size: usize,
    pub driver: *const c_char,
    pub allow_emulator: i32,
    pub reserved: i32,
    pub emulator_path: *const c_char,
    pub nvrtc_path: *const c_char,
    pub host_compiler: *const c_char,
    pub host_build: i32,
    pub reserved1: i32,
    pub cache_dir: *const c_char,
    pub disk_cache: i32,
    pub reserved2: i32,
    pub cache_max_bytes: usize,
    pub memory_bundles: *const c_void,
    pub num_memory_bundles: usize,
    pub bundles: *const c_void,
    pub num_bundles: usize,
    pub read_only_dirs: *const c_void,
    pub num_read_only_dirs: usize,
    pub remote: *const c_char,
    pub remote_layout: i32,
    pub remote_write: i32,
    pub trusted_keys: *const c_void,
    pub num_trusted_keys: usize,
    pub require_signed: i32,
    pub compile_threads: i32,
    pub jit: i32,
    pub reserved3: i32,
    pub record_path: *const c_char,
    pub dump_dir: *const c_char,
    pub stats_path: *const c_char,
    pub log_level: i32,
    pub reserved4: i32,
    pub log_callback: *const c_void,
    pub log_user: *const c_void,
    pub on_event: *const c_void,
    pub event_user: *const c_void,
    pub tuned: i32,
    pub reserved5: i32,
}

#[repr(C)]
pub struct KernelSpec {
    pub struct_size: usize,
    pub queries: i32,
    pub q_dtype: i32,
    pub kv_dtype: i32,
    pub out_dtype: i32,
    pub head_size: i32,
    pub head_size_v: i32,
    pub block_size: i32,
    pub group_size: i32,
    pub causality: i32,
    pub kv_table: i32,
    pub kv_layout: i32,
    pub latent: i32,
    pub token_scales: i32,
    pub kv_alignment: i32,
    pub window: i32,
    pub chunked: i32,
    pub custom_mask: i32,
    pub bidirectional_ranges: i32,
    pub block_sparse: i32,
    pub soft_cap: i32,
    pub alibi: i32,
    pub qq_bias: i32,
    pub sinks: i32,
    pub batch_invariant: i32,
    pub debug: i32,
    pub pdl: i32,
}

#[repr(C)]
pub struct AttentionArgs {
    pub struct_size: usize,
    pub q: *const c_void,
    pub q_stride_token: i64,
    pub q_stride_head: i64,
    pub k_cache: *const c_void,
    pub v_cache: *const c_void,
    pub k_strides: KvStrides,
    pub v_strides: KvStrides,
    pub q_scale: *const c_void,
    pub k_scale: *const c_void,
    pub v_scale: *const c_void,
    pub kv_scale_stride: i64,
    pub k_scale_strides: KvStrides,
    pub v_scale_strides: KvStrides,
    pub num_blocks: i64,
    pub block_table: *const c_void,
    pub block_table_stride: i64,
    pub max_blocks_per_seq: i32,
    pub reserved: i32,
    pub seq_lens: *const c_void,
    pub kv_indptr: *const c_void,
    pub kv_indices: *const c_void,
    pub kv_last_block_len: *const c_void,
    pub kv_start_loc: *const c_void,
    pub token_lists: *const c_void,
    pub token_list_stride: i64,
    pub max_list_len: i32,
    pub reserved1: i32,
    pub query_seqs: *const c_void,
    pub query_start_loc: *const c_void,
    pub num_query_tokens: i32,
    pub reserved2: i32,
    pub causal_flags: *const c_void,
    pub out: *mut c_void,
    pub out_stride_token: i64,
    pub out_stride_head: i64,
    pub out_scale: *const c_void,
    pub lse: *mut c_void,
    pub window_left: i32,
    pub window_right: i32,
    pub chunk_size: i32,
    pub reserved3: i32,
    pub custom_mask: *const c_void,
    pub custom_mask_indptr: *const c_void,
    pub bidirectional_ranges: *const c_void,
    pub bidirectional_ranges_stride: i64,
    pub max_bidirectional_ranges: i32,
    pub ranges_within_window: i32,
    pub block_sparse: BlockSparseArgs,
    pub soft_cap: f32,
    pub alibi_slopes: *const c_void,
    pub qq_bias: *const c_void,
    pub qq_bias_stride_seq: i64,
    pub qq_bias_stride_row: i64,
    pub sinks: *const c_void,
    pub num_seqs: i32,
    pub num_kv_heads: i32,
    pub scale: f32,
    pub max_seq_len: i32,
    pub num_splits: i32,
    pub reserved4: i32,
    pub workspace: *mut c_void,
    pub workspace_bytes: usize,
}

#[repr(C)]
pub struct CacheWriteSpec {
    pub struct_size: usize,
    pub dtype: i32,
    pub kv_dtype: i32,
    pub scale: i32,
    pub layout: i32,
    pub head_size: i32,
    pub head_size_v: i32,
    pub block_size: i32,
    pub rope: i32,
    pub rotary_dim: i32,
    pub cos_sin_dtype: i32,
    pub row_alignment: i32,
    pub debug: i32,
    pub pdl: i32,
    pub reserved: i32,
}

#[repr(C)]
pub struct CacheWriteArgs {
    pub struct_size: usize,
    pub key: *const c_void,
    pub value: *const c_void,
    pub key_stride_token: i64,
    pub key_stride_head: i64,
    pub value_stride_token: i64,
    pub value_stride_head: i64,
    pub k_cache: *mut c_void,
    pub v_cache: *mut c_void,
    pub k_strides: KvStrides,
    pub v_strides: KvStrides,
    pub slot_mapping: *const c_void,
    pub num_tokens: i32,
    pub num_kv_heads: i32,
    pub k_scale: *const c_void,
    pub v_scale: *const c_void,
    pub q: *mut c_void,
    pub q_stride_token: i64,
    pub q_stride_head: i64,
    pub num_q_heads: i32,
    pub reserved: i32,
    pub positions: *const c_void,
    pub cos_sin: *const c_void,
    pub num_blocks: i64,
    pub max_position: i64,
    pub debug_report: *mut c_void,
}

#[repr(C)]
pub struct CopyBlocksSpec {
    pub struct_size: usize,
    pub alignment: i32,
    pub debug: i32,
}

#[repr(C)]
pub struct CopyBlocksArgs {
    pub struct_size: usize,
    pub caches: *const c_void,
    pub num_caches: i32,
    pub reserved: i32,
    pub block_bytes: i64,
    pub block_stride_bytes: i64,
    pub pairs: *const c_void,
    pub num_pairs: i32,
    pub reserved1: i32,
    pub num_blocks: i64,
    pub debug_report: *mut c_void,
}

#[repr(C)]
pub struct SwapBlocksArgs {
    pub struct_size: usize,
    pub direction: i32,
    pub reserved: i32,
    pub from: *const c_void,
    pub to: *mut c_void,
    pub block_bytes: i64,
    pub from_stride_bytes: i64,
    pub to_stride_bytes: i64,
    pub pairs: *const c_void,
    pub num_pairs: i32,
    pub reserved1: i32,
}

#[link(name = "pagejit")]
extern "C" {
    pub fn pagejit_status_name(status: Status) -> *const c_char;
    pub fn pagejit_error_create(error: *mut Handle) -> Status;
    pub fn pagejit_error_message(error: Handle) -> *const c_char;
    pub fn pagejit_error_destroy(error: Handle) -> Status;

    pub fn pagejit_engine_options_init(value: *mut EngineOptions, struct_size: usize) -> Status;
    pub fn pagejit_kernel_spec_init(value: *mut KernelSpec, struct_size: usize) -> Status;
    pub fn pagejit_attention_args_init(value: *mut AttentionArgs, struct_size: usize) -> Status;
    pub fn pagejit_cache_write_spec_init(value: *mut CacheWriteSpec, struct_size: usize) -> Status;
    pub fn pagejit_cache_write_args_init(value: *mut CacheWriteArgs, struct_size: usize) -> Status;
    pub fn pagejit_copy_blocks_spec_init(value: *mut CopyBlocksSpec, struct_size: usize) -> Status;
    pub fn pagejit_copy_blocks_args_init(value: *mut CopyBlocksArgs, struct_size: usize) -> Status;
    pub fn pagejit_swap_blocks_args_init(value: *mut SwapBlocksArgs, struct_size: usize) -> Status;

    pub fn pagejit_engine_options_from_environment(
        options: *mut EngineOptions,
        environment: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_environment_destroy(environment: Handle, error: Handle) -> Status;
    pub fn pagejit_engine_create(
        options: *const EngineOptions,
        engine: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_engine_destroy(engine: Handle, error: Handle) -> Status;
    pub fn pagejit_engine_swap_blocks(
        engine: Handle,
        args: *const SwapBlocksArgs,
        stream: Stream,
        error: Handle,
    ) -> Status;
    pub fn pagejit_pending_destroy(pending: Handle, error: Handle) -> Status;

    pub fn pagejit_kernel_prepare_async(
        engine: Handle,
        spec: *const KernelSpec,
        device: i32,
        options: *const c_void,
        pending: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_kernel_wait(pending: Handle, kernel: *mut Handle, error: Handle) -> Status;
    pub fn pagejit_kernel_launch(
        kernel: Handle,
        args: *const AttentionArgs,
        stream: Stream,
        error: Handle,
    ) -> Status;
    pub fn pagejit_kernel_destroy(kernel: Handle, error: Handle) -> Status;

    pub fn pagejit_cache_write_kernel_prepare_async(
        engine: Handle,
        spec: *const CacheWriteSpec,
        device: i32,
        options: *const c_void,
        pending: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_cache_write_kernel_wait(
        pending: Handle,
        kernel: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_cache_write_kernel_launch(
        kernel: Handle,
        args: *const CacheWriteArgs,
        stream: Stream,
        error: Handle,
    ) -> Status;
    pub fn pagejit_cache_write_kernel_destroy(kernel: Handle, error: Handle) -> Status;

    pub fn pagejit_copy_blocks_kernel_prepare_async(
        engine: Handle,
        spec: *const CopyBlocksSpec,
        device: i32,
        options: *const c_void,
        pending: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_copy_blocks_kernel_wait(
        pending: Handle,
        kernel: *mut Handle,
        error: Handle,
    ) -> Status;
    pub fn pagejit_copy_blocks_kernel_launch(
        kernel: Handle,
        args: *const CopyBlocksArgs,
        stream: Stream,
        error: Handle,
    ) -> Status;
    pub fn pagejit_copy_blocks_kernel_destroy(kernel: Handle, error: Handle) -> Status;

    pub fn pagejit_kernel_max_workspace_bytes(
        kernel: Handle,
        bytes: *mut usize,
        error: Handle,
    ) -> Status;
    pub fn pagejit_kernel_workspace_init(
        kernel: Handle,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: Stream,
        error: Handle,
    ) -> Status;
}
