//! AttentionLayer: what pagejit does in a step of an engine. The new tokens' K and V go into the
//! paged cache, then their queries attend to everything that is in it. One thread.

use std::error::Error;
use std::rc::Rc;

use crate::cuda_driver::{CudaDriver, DeviceBuffer};
use crate::model::*;
use crate::paged_cache::{Fault, PagedCache, Sequence};
use crate::pagejit::*;
use crate::sys::{CAUSALITY_CAUSAL, CAUSALITY_NONE, QUERIES_MANY, QUERIES_ONE};

/// The new tokens of a step, those of the first sequence first: one of each sequence (a decode
/// step), or more (a prefill, or a chunk of one).
pub struct Step {
    pub num_new_tokens: usize, // of each sequence
    pub q: Vec<Bf16>,          // [tokens, NUM_HEADS, HEAD_SIZE]
    pub k: Vec<Bf16>,          // [tokens, NUM_KV_HEADS, HEAD_SIZE]
    pub v: Vec<Bf16>,
}

pub struct AttentionLayer {
    cuda: Rc<CudaDriver>,
    write: CacheWriteKernel,
    prefill: Kernel,
    decode: Kernel,
    workspace: DeviceBuffer<u8>,
    pub fault: Fault,
}

fn attention_spec(queries: i32) -> KernelSpec {
    KernelSpec {
        queries,
        head_size: HEAD_SIZE as i32,
        block_size: BLOCK_SIZE as i32,
        group_size: GROUP_SIZE as i32,
        // The one query of a decode step comes last, so that there is nothing to hide from it.
        causality: if queries == QUERIES_ONE { CAUSALITY_NONE } else { CAUSALITY_CAUSAL },
        ..Default::default() // q, K, V and the result are bf16
    }
}

impl AttentionLayer {
    /// Prepares all kernels: from pagejit's cache where this program ran before, else compiled now.
    pub fn new(cuda: &Rc<CudaDriver>, engine: &Engine) -> Result<AttentionLayer, Box<dyn Error>> {
        let write_spec = CacheWriteSpec {
            head_size: HEAD_SIZE as i32,
            block_size: BLOCK_SIZE as i32,
            ..Default::default()
        };
        // All compile at once; a real engine loads its weights meanwhile.
        let write = CacheWriteKernel::prepare_async(engine, &write_spec)?;
        let prefill = Kernel::prepare_async(engine, &attention_spec(QUERIES_MANY))?;
        let decode = Kernel::prepare_async(engine, &attention_spec(QUERIES_ONE))?;
        let (write, prefill, decode) = (write.wait()?, prefill.wait()?, decode.wait()?);

        // One workspace serves all launches of a stream, whatever their shapes.
        let bytes = prefill.max_workspace_bytes()?.max(decode.max_workspace_bytes()?);
        let workspace = DeviceBuffer::<u8>::new(cuda, bytes)?;
        unsafe { decode.workspace_init(workspace.as_ptr(), bytes, cuda.stream())? };
        Ok(AttentionLayer {
            cuda: cuda.clone(),
            write,
            prefill,
            decode,
            workspace,
            fault: Fault::None,
        })
    }

    /// The attention of every new token over its sequence up to itself: as Step::q. The sequences
    /// have their new tokens when this returns.
    pub fn run(
        &self,
        cache: &mut PagedCache,
        sequences: &mut [&mut Sequence],
        step: &Step,
    ) -> Result<Vec<Bf16>, Box<dyn Error>> {
        let mut slots = Vec::new(); // of the new tokens
        let mut query_start = vec![0]; // where each sequence's new tokens begin
        let mut seq_lens = Vec::new(); // new tokens included
        for sequence in sequences.iter_mut() {
            slots.extend(cache.append(sequence, step.num_new_tokens)?);
            query_start.push(slots.len() as i32);
            seq_lens.push(sequence.num_tokens as i32);
        }
        let width = sequences.iter().map(|s| s.blocks.len()).max().unwrap_or(1);
        let mut block_table = Vec::new(); // [sequences, width]
        for sequence in sequences.iter() {
            let mut row = sequence.blocks.clone();
            if self.fault == Fault::BlockTable && row.len() > 1 {
                row[1] = row[0];
            }
            row.resize(width, -1); // what is behind a sequence's blocks is not read
            block_table.extend(row);
        }

        // An engine keeps these buffers from step to step.
        let q = DeviceBuffer::copy_of(&self.cuda, &step.q)?;
        let k = DeviceBuffer::copy_of(&self.cuda, &step.k)?;
        let v = DeviceBuffer::copy_of(&self.cuda, &step.v)?;
        let out = DeviceBuffer::<Bf16>::new(&self.cuda, step.q.len())?;
        let device_slots = DeviceBuffer::copy_of(&self.cuda, &slots)?;
        let device_table = DeviceBuffer::copy_of(&self.cuda, &block_table)?;
        let device_lens = DeviceBuffer::copy_of(&self.cuda, &seq_lens)?;
        let device_starts = DeviceBuffer::copy_of(&self.cuda, &query_start)?;

        let write = CacheWriteArgs {
            key: k.as_ptr(),
            value: v.as_ptr(),
            key_stride_token: KV_ELEMENTS as i64,
            key_stride_head: HEAD_SIZE as i64,
            value_stride_token: KV_ELEMENTS as i64,
            value_stride_head: HEAD_SIZE as i64,
            k_cache: cache.k.as_ptr(),
            v_cache: cache.v.as_ptr(),
            k_strides: PagedCache::STRIDES,
            v_strides: PagedCache::STRIDES,
            slot_mapping: device_slots.as_ptr(),
            num_tokens: slots.len() as i32,
            num_kv_heads: NUM_KV_HEADS as i32,
            ..Default::default()
        };
        unsafe { self.write.launch(&write, self.cuda.stream())? };

        let args = AttentionArgs {
            q: q.as_ptr(),
            q_stride_token: Q_ELEMENTS as i64,
            q_stride_head: HEAD_SIZE as i64,
            out: out.as_ptr(),
            out_stride_token: Q_ELEMENTS as i64,
            out_stride_head: HEAD_SIZE as i64,
            k_cache: cache.k.as_ptr(),
            v_cache: cache.v.as_ptr(),
            k_strides: PagedCache::STRIDES,
            v_strides: PagedCache::STRIDES,
            block_table: device_table.as_ptr(),
            block_table_stride: width as i64,
            max_blocks_per_seq: width as i32,
            seq_lens: device_lens.as_ptr(),
            query_start_loc: device_starts.as_ptr(), // looked at by prefill alone
            num_query_tokens: slots.len() as i32,
            num_seqs: sequences.len() as i32,
            num_kv_heads: NUM_KV_HEADS as i32,
            scale: SCALE,
            workspace: self.workspace.as_ptr(),
            workspace_bytes: self.workspace.len(),
            ..Default::default()
        };
        let kernel = if step.num_new_tokens == 1 { &self.decode } else { &self.prefill };
        unsafe { kernel.launch(&args, self.cuda.stream())? };

        let mut result = vec![0; step.q.len()];
        out.download(&mut result)?;
        Ok(result)
    }
}
