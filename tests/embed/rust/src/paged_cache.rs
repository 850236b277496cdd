//! PagedCache: one layer's K and V in blocks that sequences take as they grow, share when they are
//! forked and give back. It decides which block holds what, and copies blocks where sharing ends and
//! where a sequence goes to the host; it computes nothing. One thread.

use std::error::Error;
use std::os::raw::c_void;
use std::rc::Rc;

use crate::cuda_driver::{CudaDriver, DeviceBuffer, PinnedBuffer};
use crate::model::*;
use crate::pagejit::*;
use crate::sys::{SWAP_DEVICE_TO_HOST, SWAP_HOST_TO_DEVICE};

/// A sequence's tokens in the cache: its row of the block table. It is no copy of another one but
/// by `PagedCache::fork`.
#[derive(Default)]
pub struct Sequence {
    pub blocks: Vec<i32>, // num_tokens / BLOCK_SIZE, rounded up
    pub num_tokens: usize,
}

/// A sequence's tokens in host memory: K of all its blocks, then V of all.
pub struct SwappedSequence {
    memory: PinnedBuffer,
    num_blocks: usize,
    num_tokens: usize,
}

/// What is done wrong on purpose (--break), to see that the program's checks find it.
#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    BlockTable, // each sequence's second block in the table has the id of its first
    Fork,       // the fork gets blocks of its own at once
    Copy,       // the block that is written after the fork is not copied
    Grow,       // a decode step that needs another block goes on in the last one
    Swap,       // nothing is copied back from the host
}

pub struct PagedCache {
    cuda: Rc<CudaDriver>,
    engine: Rc<Engine>,
    copy_kernel: CopyBlocksKernel,
    pub k: DeviceBuffer<Bf16>, // [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_SIZE]
    pub v: DeviceBuffer<Bf16>,
    cache_pointers: DeviceBuffer<u64>, // for the copies: k and v
    num_users: Vec<usize>,             // of each block
    free_blocks: Vec<i32>,             // the one given back last is taken first
    pub fault: Fault,                  // but for BlockTable, which is the layer's
}

impl PagedCache {
    /// The strides of k and v.
    pub const STRIDES: KvStrides = KvStrides {
        block: BLOCK_ELEMENTS as i64,
        token: KV_ELEMENTS as i64,
        head: HEAD_SIZE as i64,
    };

    pub fn new(
        cuda: &Rc<CudaDriver>,
        engine: &Rc<Engine>,
        num_blocks: usize,
    ) -> Result<PagedCache, Box<dyn Error>> {
        let k = DeviceBuffer::new(cuda, num_blocks * BLOCK_ELEMENTS)?;
        let v = DeviceBuffer::new(cuda, num_blocks * BLOCK_ELEMENTS)?;
        let pointers = [k.as_ptr::<c_void>() as u64, v.as_ptr::<c_void>() as u64];
        let mut cache = PagedCache {
            cuda: cuda.clone(),
            engine: engine.clone(),
            copy_kernel: CopyBlocksKernel::prepare_async(engine, &CopyBlocksSpec::default())?
                .wait()?,
            k,
            v,
            cache_pointers: DeviceBuffer::copy_of(cuda, &pointers)?,
            num_users: vec![1; num_blocks],
            free_blocks: Vec::new(),
            fault: Fault::None,
        };
        for block in (0..num_blocks as i32).rev() {
            cache.give_back(block)?;
        }
        Ok(cache)
    }

    pub fn num_used_blocks(&self) -> usize {
        self.num_users.len() - self.free_blocks.len()
    }

    fn take_block(&mut self) -> Result<i32, Box<dyn Error>> {
        let block = self.free_blocks.pop().ok_or("the paged cache is full")?;
        self.num_users[block as usize] = 1;
        Ok(block)
    }

    fn give_back(&mut self, block: i32) -> Result<(), Box<dyn Error>> {
        self.num_users[block as usize] -= 1;
        if self.num_users[block as usize] > 0 {
            return Ok(());
        }
        self.free_blocks.push(block);
        // Nothing may read what is left in a free block, nor the rest of one that is taken: to show
        // that, it is filled with NaN (0xffff). An engine does not do this.
        let first = block as usize * BLOCK_ELEMENTS;
        self.k.fill(first, BLOCK_ELEMENTS, 0xff)?;
        self.v.fill(first, BLOCK_ELEMENTS, 0xff)?;
        Ok(())
    }

    /// Makes room for `count` tokens and returns their slots, as CacheWriteArgs::slot_mapping wants
    /// them. A block that is written and shared is copied first.
    pub fn append(
        &mut self,
        sequence: &mut Sequence,
        count: usize,
    ) -> Result<Vec<i64>, Box<dyn Error>> {
        let mut slots = Vec::new();
        for _ in 0..count {
            let place = sequence.num_tokens % BLOCK_SIZE;
            if place == 0 {
                let is_stuck = self.fault == Fault::Grow && count == 1;
                let last = sequence.blocks.last().copied().filter(|_| is_stuck);
                sequence.blocks.push(last.map_or_else(|| self.take_block(), Ok)?);
            }
            let last = sequence.blocks.len() - 1;
            let shared = sequence.blocks[last];
            if self.num_users[shared as usize] > 1 {
                sequence.blocks[last] = self.take_block()?;
                if self.fault != Fault::Copy {
                    self.copy_block(shared, sequence.blocks[last])?;
                }
                self.give_back(shared)?;
            }
            slots.push(sequence.blocks[last] as i64 * BLOCK_SIZE as i64 + place as i64);
            sequence.num_tokens += 1;
        }
        Ok(slots)
    }

    fn copy_block(&self, from: i32, to: i32) -> Result<(), Box<dyn Error>> {
        let pair = DeviceBuffer::copy_of(&self.cuda, &[from as i64, to as i64])?;
        let args = CopyBlocksArgs {
            caches: self.cache_pointers.as_ptr(),
            num_caches: 2,
            block_bytes: BLOCK_BYTES as i64,
            block_stride_bytes: BLOCK_BYTES as i64,
            pairs: pair.as_ptr(),
            num_pairs: 1, // an engine collects those of a step
            ..Default::default()
        };
        unsafe { self.copy_kernel.launch(&args, self.cuda.stream())? };
        Ok(())
    }

    /// A sequence with the same tokens in the same blocks.
    pub fn fork(&mut self, sequence: &Sequence) -> Result<Sequence, Box<dyn Error>> {
        let mut blocks = sequence.blocks.clone();
        for block in &mut blocks {
            if self.fault == Fault::Fork {
                let copy = self.take_block()?;
                self.copy_block(*block, copy)?;
                *block = copy;
            } else {
                self.num_users[*block as usize] += 1;
            }
        }
        Ok(Sequence { blocks, num_tokens: sequence.num_tokens })
    }

    /// Copies to host memory and gives the blocks back.
    pub fn swap_out(&mut self, sequence: Sequence) -> Result<SwappedSequence, Box<dyn Error>> {
        let num_blocks = sequence.blocks.len();
        let swapped = SwappedSequence {
            memory: PinnedBuffer::new(&self.cuda, 2 * num_blocks * BLOCK_BYTES)?,
            num_blocks,
            num_tokens: sequence.num_tokens,
        };
        self.swap(SWAP_DEVICE_TO_HOST, &sequence.blocks, &swapped)?;
        // The copies come first in the stream, so the blocks may be written by what follows there.
        for &block in &sequence.blocks {
            self.give_back(block)?;
        }
        Ok(swapped)
    }

    /// Copies into other blocks.
    pub fn swap_in(&mut self, swapped: SwappedSequence) -> Result<Sequence, Box<dyn Error>> {
        let mut sequence = Sequence { blocks: Vec::new(), num_tokens: swapped.num_tokens };
        for _ in 0..swapped.num_blocks {
            sequence.blocks.push(self.take_block()?);
        }
        if self.fault != Fault::Swap {
            self.swap(SWAP_HOST_TO_DEVICE, &sequence.blocks, &swapped)?;
        }
        Ok(sequence)
    }

    fn swap(
        &self,
        direction: i32,
        blocks: &[i32],
        swapped: &SwappedSequence,
    ) -> Result<(), Box<dyn Error>> {
        let is_out = direction == SWAP_DEVICE_TO_HOST;
        let mut pairs = Vec::new(); // from, to
        for (i, &block) in blocks.iter().enumerate() {
            let (device, host) = (block as i64, i as i64);
            pairs.push(if is_out { [device, host] } else { [host, device] });
        }
        for (i, cache) in [&self.k, &self.v].iter().enumerate() {
            let device: *mut c_void = cache.as_ptr();
            let host =
                (swapped.memory.as_ptr() as usize + i * blocks.len() * BLOCK_BYTES) as *mut _;
            let args = SwapBlocksArgs {
                direction,
                from: if is_out { device } else { host },
                to: if is_out { host } else { device },
                block_bytes: BLOCK_BYTES as i64,
                from_stride_bytes: BLOCK_BYTES as i64,
                to_stride_bytes: BLOCK_BYTES as i64,
                pairs: pairs.as_ptr().cast(),
                num_pairs: pairs.len() as i32,
                ..Default::default()
            };
            unsafe { self.engine.swap_blocks(&args, self.cuda.stream())? };
        }
        Ok(())
    }
}
