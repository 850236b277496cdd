//! What the results are compared with: attention in double precision over K and V as the program
//! gave them, without blocks, tables or pagejit. Pure.

use crate::model::*;

fn to_double(bits: Bf16) -> f64 {
    f32::from_bits((bits as u32) << 16) as f64
}

/// The same numbers in each run: bf16, evenly between -2 and 2.
pub struct RandomNumbers(u32);

impl RandomNumbers {
    pub fn new() -> Self {
        RandomNumbers(1)
    }

    pub fn take(&mut self, count: usize) -> Vec<Bf16> {
        let next = || {
            // Numerical Recipes' generator.
            self.0 = self.0.wrapping_mul(1664525).wrapping_add(1013904223);
            let number = (self.0 >> 8) as f32 / (1 << 22) as f32 - 2.0;
            (number.to_bits() >> 16) as Bf16 // truncated
        };
        std::iter::repeat_with(next).take(count).collect()
    }
}

/// K and V of all tokens of a sequence, [tokens, NUM_KV_HEADS, HEAD_SIZE].
#[derive(Clone, Default)]
pub struct History {
    pub k: Vec<Bf16>,
    pub v: Vec<Bf16>,
}

/// Compares `out` with the attention of `q`, both [count, NUM_HEADS, HEAD_SIZE], the last `count`
/// tokens of `history`, each over the tokens up to itself. Returns the worst error over its limit
/// (above 1 something is wrong) and its place in words.
///
/// The limit: bf16 has 8 significant bits, so rounding to it changes a value by at most 2^-8 of
/// itself. The result is rounded, and so are the weights before they are multiplied with V: together
/// at most 2^-7 of the sum of |weight * v|. A hundredth more is for float32, in which all else is
/// computed.
pub fn compare_with_dense(history: &History, q: &[Bf16], out: &[Bf16]) -> (f64, String) {
    let count = q.len() / Q_ELEMENTS;
    let num_tokens = history.k.len() / KV_ELEMENTS;
    let mut worst = 0.0;
    let mut place = String::new();
    for row in 0..count * NUM_HEADS {
        let (query, head) = (row / NUM_HEADS, row % NUM_HEADS);
        let num_keys = num_tokens - count + query + 1;
        let kv_offset = head / GROUP_SIZE * HEAD_SIZE;
        let q_row = &q[row * HEAD_SIZE..][..HEAD_SIZE];
        let weight = |key: usize| {
            let k_row = &history.k[key * KV_ELEMENTS + kv_offset..][..HEAD_SIZE];
            let products = q_row.iter().zip(k_row).map(|(&q, &k)| to_double(q) * to_double(k));
            (products.sum::<f64>() * SCALE as f64).exp() // scores are small: no maximum is taken off
        };
        let weights: Vec<f64> = (0..num_keys).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        for i in 0..HEAD_SIZE {
            let term = |key: usize| {
                weights[key] / sum * to_double(history.v[key * KV_ELEMENTS + kv_offset + i])
            };
            let want: f64 = (0..num_keys).map(term).sum();
            let magnitude: f64 = (0..num_keys).map(|key| term(key).abs()).sum();
            let got = to_double(out[row * HEAD_SIZE + i]);
            let ratio = (got - want).abs() / (1.01 / 128.0 * magnitude);
            if ratio <= worst || worst == f64::INFINITY {
                continue;
            }
            worst = if ratio.is_nan() { f64::INFINITY } else { ratio };
            place =
                format!("token {query}, head {head}, element {i} is {got:.6}, should be {want:.6}");
        }
    }
    (worst, place)
}
