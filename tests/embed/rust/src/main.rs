//! Decodes two sequences over one paged cache as an inference engine does, with pagejit's kernels,
//! and compares every step with dense attention of its own.
//!
//!     paged_decoder [--break block-table|fork|copy|grow|swap]
//!
//! Exit code 0: every step is right; 1: one is not; 2: it could not be run. On the CPU emulator
//! with PAGEJIT_DRIVER=emulator.

mod attention_layer;
mod cuda_driver;
mod dense_attention;
mod layout;
mod model;
mod paged_cache;
mod pagejit;
mod sys;

use std::error::Error;
use std::process::ExitCode;
use std::rc::Rc;

use attention_layer::{AttentionLayer, Step};
use cuda_driver::CudaDriver;
use dense_attention::{compare_with_dense, History, RandomNumbers};
use model::*;
use paged_cache::{Fault, PagedCache, Sequence};

/// Few, so that blocks are soon used again.
const NUM_BLOCKS: usize = 8;

#[derive(Default)]
struct Request {
    sequence: Sequence, // in the paged cache
    history: History,   // the same tokens, for comparison
}

struct Decoder {
    layer: AttentionLayer,
    cache: PagedCache,
    random: RandomNumbers,
    has_passed: bool,
}

impl Decoder {
    /// `num_steps` steps, each with `num_new_tokens` more tokens for each request; prints one line.
    fn run(
        &mut self,
        phase: &str,
        requests: &mut [&mut Request],
        num_steps: usize,
        num_new_tokens: usize,
    ) -> Result<(), Box<dyn Error>> {
        let (mut worst, mut what) = (0.0, String::new());
        for step_number in 0..num_steps {
            // Here the model computes q, K and V of the new tokens.
            let num_tokens = requests.len() * num_new_tokens;
            let step = Step {
                num_new_tokens,
                q: self.random.take(num_tokens * Q_ELEMENTS),
                k: self.random.take(num_tokens * KV_ELEMENTS),
                v: self.random.take(num_tokens * KV_ELEMENTS),
            };
            let mut sequences: Vec<_> = requests.iter_mut().map(|r| &mut r.sequence).collect();

            let out = self.layer.run(&mut self.cache, &mut sequences, &step)?;

            for (i, request) in requests.iter_mut().enumerate() {
                let kv = i * num_new_tokens * KV_ELEMENTS..(i + 1) * num_new_tokens * KV_ELEMENTS;
                let q = i * num_new_tokens * Q_ELEMENTS..(i + 1) * num_new_tokens * Q_ELEMENTS;
                request.history.k.extend(&step.k[kv.clone()]);
                request.history.v.extend(&step.v[kv]);
                let (ratio, place) =
                    compare_with_dense(&request.history, &step.q[q.clone()], &out[q]);
                if ratio > worst {
                    worst = ratio;
                    what = format!("step {step_number}, sequence {i}, {place}");
                }
            }
        }
        let verdict = if worst <= 1.0 { "ok".into() } else { format!("WRONG: {what}") };
        println!(
            "{phase:<26} {num_steps:2} steps of {} sequences, worst error {worst:.2} of its limit: \
             {verdict}",
            requests.len()
        );
        self.has_passed = self.has_passed && worst <= 1.0;
        Ok(())
    }

    /// That so many blocks are in use; prints one line, as the next one does.
    fn expect_used_blocks(&mut self, when: &str, num_blocks: usize) {
        let used = self.cache.num_used_blocks();
        let verdict = if used == num_blocks { "ok" } else { "WRONG" };
        println!("{when:<26} {used:2} blocks in use: {verdict}");
        self.has_passed = self.has_passed && used == num_blocks;
    }

    /// That a sequence has none of the blocks that it had before.
    fn expect_other_blocks(&mut self, before: &[i32], after: &Sequence) {
        let is_right = !after.blocks.iter().any(|block| before.contains(block));
        let verdict = if is_right { "ok" } else { "WRONG" };
        println!("{:<26} in other blocks than before: {verdict}", "swap in");
        self.has_passed = self.has_passed && is_right;
    }
}

fn decode_two_sequences(fault: Fault) -> Result<bool, Box<dyn Error>> {
    let engine = Rc::new(pagejit::Engine::from_environment()?);
    let cuda = CudaDriver::open(&engine)?;
    let mut layer = AttentionLayer::new(&cuda, &engine)?;
    layer.fault = fault;
    let mut cache = PagedCache::new(&cuda, &engine, NUM_BLOCKS)?;
    cache.fault = fault;
    let random = RandomNumbers::new();
    let mut decoder = Decoder { layer, cache, random, has_passed: true };

    let mut a = Request::default();
    decoder.run("prefill", &mut [&mut a], 1, 37)?;
    decoder.run("decode", &mut [&mut a], 3, 1)?;
    let num_blocks = decoder.cache.num_used_blocks();

    // 40 tokens: the third block is half full. The next step writes it, for both sequences.
    let sequence = decoder.cache.fork(&a.sequence)?;
    decoder.expect_used_blocks("fork", num_blocks);
    let mut b = Request { sequence, history: a.history.clone() };
    decoder.run("fork, then copy on write", &mut [&mut a, &mut b], 4, 1)?;
    decoder.expect_used_blocks("copy on write", num_blocks + 1);

    // What a had in the device is overwritten by NaN, then by b's fourth block.
    let before = a.sequence.blocks.clone();
    let swapped = decoder.cache.swap_out(std::mem::take(&mut a.sequence))?;
    decoder.expect_used_blocks("swap out", num_blocks);
    decoder.run("one swapped out", &mut [&mut b], 5, 1)?;

    a.sequence = decoder.cache.swap_in(swapped)?;
    decoder.expect_other_blocks(&before, &a.sequence);
    decoder.run("swapped in again", &mut [&mut a, &mut b], 5, 1)?;
    Ok(decoder.has_passed)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let fault = match words[..] {
        [] => Fault::None,
        ["--break", "block-table"] => Fault::BlockTable,
        ["--break", "fork"] => Fault::Fork,
        ["--break", "copy"] => Fault::Copy,
        ["--break", "grow"] => Fault::Grow,
        ["--break", "swap"] => Fault::Swap,
        _ => {
            eprintln!("usage: paged_decoder [--break block-table|fork|copy|grow|swap]");
            return ExitCode::from(2);
        }
    };
    match decode_two_sequences(fault) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
