"""Checks a run of the generator: every logit that it wrote against a NumPy forward pass with dense attention.

  reference.py MODEL_FOLDER RUN_FOLDER [--tolerance X]

Shares nothing with the generator but the dequantised weights: no pagejit, no cache, no blocks, float32 throughout. It reads
the whole of each sequence at once (the prompt and the tokens that the generator chose), and compares the logits from which
each of those tokens was chosen.

The error of a position is the root mean square of its logits' differences, divided by the standard deviation of its logits.
A second pass rounds q, k and v to bf16 at the places where a paged cache holds them, and nothing else: its error against the
first is what the cache's type alone costs.

At each position both must choose the same token, but where NumPy's own logits of the two are so close (a near-tie) that two
errors as large as the tolerance can exchange them.

Exit 0: passed; 3: a comparison failed, and the line "FAILED: ..." says by how much. (1 is Python's, where it could not compare.)
"""

import argparse
import pathlib
import sys

import numpy

# About twice the greatest error that rounding q, k and v to bf16 makes by itself in the runs of README.md (0.03), since the
# kernels also round the weights of the softmax to bf16. A wrong block id makes errors of 0.3 and more.
TOLERANCE = 0.06


class Model:
    def __init__(self, folder):
        self.facts, self._places = {}, {}
        for line in (folder / "model.txt").read_text().splitlines():
            key, *values = line.split()
            if key == "tensor":
                name, kind, rows, columns, offset = values
                self._places[name] = (kind, int(rows), int(columns), int(offset))
            else:
                self.facts[key] = values
        self._bytes = numpy.memmap(folder / "weights.bin", dtype=numpy.uint8, mode="r")

    def number(self, key):
        return float(self.facts[key][0])

    def has(self, name):
        return name in self._places

    def tensor(self, name):
        """float32, [rows, columns], or [columns] where there is one row."""
        kind, rows, columns, offset = self._places[name]
        count = rows * columns
        if kind == "f32":
            return self._bytes[offset : offset + 4 * count].view(numpy.float32).reshape(columns)
        halves = self._bytes[offset : offset + 2 * count].view(numpy.uint16).reshape(rows, columns)
        return (halves.astype(numpy.uint32) << 16).view(numpy.float32)

    def num_rows(self, name):
        return self._places[name][1]

    def rows(self, name, ids):
        """Some rows of a bf16 matrix."""
        kind, rows, columns, offset = self._places[name]
        halves = self._bytes[offset : offset + 2 * rows * columns].view(numpy.uint16).reshape(rows, columns)[ids]
        return (halves.astype(numpy.uint32) << 16).view(numpy.float32)


def bf16_rounded(x):
    bits = numpy.ascontiguousarray(x, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


def rms_norm(x, weight, epsilon):
    return x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * weight


def rotate(x, base, style):
    """x [tokens, heads, head_size], the token's position is its row."""
    tokens, _, size = x.shape
    angles = numpy.arange(tokens)[:, None] * base ** (-numpy.arange(0, size, 2, dtype=numpy.float64) / size)
    cosine, sine = (f(angles).astype(numpy.float32)[:, None, :] for f in (numpy.cos, numpy.sin))
    first, second = (x[..., : size // 2], x[..., size // 2 :]) if style == "neox" else (x[..., 0::2], x[..., 1::2])
    out = numpy.empty_like(x)
    a, b = first * cosine - second * sine, second * cosine + first * sine
    if style == "neox":
        out[..., : size // 2], out[..., size // 2 :] = a, b
    else:
        out[..., 0::2], out[..., 1::2] = a, b
    return out


def attention(q, k, v, scale, window):
    """Dense and causal; q [tokens, heads, size], k and v [tokens, kv_heads, size]."""
    tokens, heads, size = q.shape
    group = heads // k.shape[1]
    distance = numpy.arange(tokens)[:, None] - numpy.arange(tokens)[None, :]
    hidden = (distance < 0) | ((distance >= window) if window > 0 else False)
    out = numpy.empty((tokens, heads, size), dtype=numpy.float32)
    for head in range(heads):
        scores = (q[:, head] @ k[:, head // group].T) * numpy.float32(scale)
        scores[hidden] = -numpy.inf
        weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        out[:, head] = (weights @ v[:, head // group]) / weights.sum(axis=1, keepdims=True)
    return out


def activation(x, name):
    if name == "silu":
        return x / (1 + numpy.exp(-x))
    return 0.5 * x * (1 + numpy.tanh(numpy.float32(0.7978845608028654) * (x + numpy.float32(0.044715) * x**3)))  # sqrt(2 / pi)


class Pass:
    """One sequence through the model. narrow is applied to q, k and v; logits are wanted from position `first` on."""

    def __init__(self, ids, first, narrow):
        self.ids, self.first, self.narrow = ids, first, narrow


def attend(model, layer, one, q, k, v):
    base, window = float(model.facts["rope_base"][layer]), int(model.facts["window"][layer])
    style, narrow = model.facts["rope"][0], one.narrow
    q, k, v = narrow(rotate(narrow(q), base, style)), narrow(rotate(narrow(k), base, style)), narrow(v)
    return attention(q, k, v, model.number("attention_scale"), window).reshape(len(one.ids), -1)


def logits(model, passes):
    """For each pass float32 [len(ids) - first, vocabulary]. Their tokens go through each matrix together."""
    heads, kv_heads, size = (int(model.number(key)) for key in ("heads", "kv_heads", "head_size"))
    epsilon, name = model.number("norm_epsilon"), model.facts["activation"][0]
    ends = numpy.cumsum([len(one.ids) for one in passes])
    rows = [slice(end - len(one.ids), end) for one, end in zip(passes, ends)]
    ids = numpy.concatenate([one.ids for one in passes])
    x = model.rows("token_embd.weight", ids) * numpy.float32(model.number("embedding_scale"))
    for layer in range(int(model.number("layers"))):
        weight = lambda part: model.tensor(f"blk.{layer}.{part}.weight")
        optional = lambda part, y: rms_norm(y, weight(part), epsilon) if model.has(f"blk.{layer}.{part}.weight") else y
        y = rms_norm(x, weight("attn_norm"), epsilon)
        q = optional("attn_q_norm", (y @ weight("attn_q").T).reshape(-1, heads, size))
        k = optional("attn_k_norm", (y @ weight("attn_k").T).reshape(-1, kv_heads, size))
        v = (y @ weight("attn_v").T).reshape(-1, kv_heads, size)
        y = numpy.concatenate([attend(model, layer, one, q[row], k[row], v[row]) for one, row in zip(passes, rows)])
        x = x + optional("post_attention_norm", y @ weight("attn_output").T)
        y = rms_norm(x, weight("ffn_norm"), epsilon)
        y = activation(y @ weight("ffn_gate").T, name) * (y @ weight("ffn_up").T)
        x = x + optional("post_ffw_norm", y @ weight("ffn_down").T)
    wanted = numpy.concatenate([x[row][one.first :] for one, row in zip(passes, rows)])
    wanted = rms_norm(wanted, model.tensor("output_norm.weight"), epsilon)
    table = "output.weight" if model.has("output.weight") else "token_embd.weight"
    vocabulary = model.num_rows(table)
    out = numpy.empty((len(wanted), vocabulary), dtype=numpy.float32)
    for begin in range(0, vocabulary, 32768):  # in parts, for the memory
        part = numpy.arange(begin, min(begin + 32768, vocabulary))
        out[:, part] = wanted @ model.rows(table, part).T
    return numpy.split(out, numpy.cumsum([len(one.ids) - one.first for one in passes])[:-1])


def errors(computed, expected):
    """[positions], as described above."""
    return numpy.sqrt(((computed - expected) ** 2).mean(axis=1)) / expected.std(axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    arguments = parser.parse_args()
    model = Model(arguments.model)
    lines = [list(map(int, line.split()[1:])) for line in (arguments.run / "run.txt").read_text().splitlines()]
    sequences = list(zip(lines[0::2], lines[1::2]))  # "prompt ID..." and "chosen ID...", in turn
    steps = len(sequences[0][1])
    written = numpy.fromfile(arguments.run / "logits.bin", dtype="<f4").reshape(len(sequences), steps, -1)
    passes = []
    for prompt, chosen in sequences:
        ids = numpy.array(prompt + chosen[:-1])
        passes += [Pass(ids, len(prompt) - 1, lambda x: x), Pass(ids, len(prompt) - 1, bf16_rounded)]
    computed = logits(model, passes)
    worst, num_others, num_ties, least_lead = 0.0, 0, 0, numpy.inf
    for i, (_, chosen) in enumerate(sequences):
        exact, narrow = computed[2 * i], computed[2 * i + 1]
        error, cost = errors(written[i], exact), errors(narrow, exact)
        place = int(error.argmax())
        worst = max(worst, float(error.max()) if numpy.isfinite(error).all() else numpy.inf)
        ranked = numpy.sort(exact, axis=1)
        least_lead = min(least_lead, float(((ranked[:, -1] - ranked[:, -2]) / exact.std(axis=1)).min()))
        # How far the token that was chosen lies below NumPy's choice, in the unit of the errors; 0 where it is the same.
        behind = (ranked[:, -1] - exact[numpy.arange(steps), chosen]) / exact.std(axis=1)
        num_others += int((behind > 2 * arguments.tolerance).sum())
        num_ties += int(((behind > 0) & (behind <= 2 * arguments.tolerance)).sum())
        print(
            f"sequence {i}: {steps} positions, error median {numpy.median(error):.4f}, worst {error.max():.4f} at {place}; bf16's own: "
            f"median {numpy.median(cost):.4f}, worst {cost.max():.4f}; greatest difference of a logit "
            f"{abs(written[i] - exact).max():.3f}; same choice at {(behind == 0).sum()} of {steps}"
        )
    print(f"NumPy's choice leads by {least_lead:.4f} at least; near-ties (up to {2 * arguments.tolerance}) that fell the other way: {num_ties}")
    passed = worst <= arguments.tolerance and num_others == 0
    others = f"; NumPy chooses another token at {num_others} positions" if num_others > 0 else ""
    print(f"{'PASSED' if passed else 'FAILED'}: worst error {worst:.4f}, tolerance {arguments.tolerance}{others}")
    return 0 if passed else 3


if __name__ == "__main__":
    sys.exit(main())
