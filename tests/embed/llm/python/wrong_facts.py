"""What a wrong fact of an architecture would cost: NumPy's mean loss, in nats per token of the first prompt, by the facts of
model.txt and with one of them changed. The README's table of wrong facts; no test.

  wrong_facts.py FOLDER [MODEL...]     FOLDER is .deps/llm; MODEL is smollm2 or gemma3, default both (minutes for Gemma)
"""

import pathlib
import sys

import numpy

import reference

# The first tokens whose loss counts: Gemma's last 200 of 588, of which 76 have tokens outside of the window; SmolLM2's are few.
FIRST = {"smollm2": 10, "gemma3": 388}
NEIGHBOURS, HALVES = {"rope": ["interleaved"]}, {"rope": ["neox"]}
# Of each model: what is wrong, and the facts then, per layer as in model.txt.
WRONG = {
    "smollm2": {
        "pairs of the other kind": HALVES,
        "the other activation": {"activation": ["gelu_tanh"]},
        "embedding scaled otherwise": {"embedding_scale": ["24.0"]},  # the root of its width
        "scores by 1 / head size": {"attention_scale": [1 / 64]},
    },
    "gemma3": {
        "pairs of the other kind": NEIGHBOURS,
        "the other activation": {"activation": ["silu"]},
        "embedding scaled otherwise": {"embedding_scale": ["1.0"]},
        "scores by 1 / head size": {"attention_scale": [1 / 256]},
        "window and local base in all layers": {"window": ["512"] * 18, "rope_base": ["10000.0"] * 18},
        "the pattern of windows backwards": lambda facts: {key: facts[key][::-1] for key in ("window", "rope_base")},
        "no window": {"window": ["0"] * 18},  # a fact of the file
        "the global rope base in all layers": {"rope_base": ["1000000.0"] * 18},
    },
}


def loss(model, ids, first):
    logits = reference.logits(model, [reference.Pass(ids[:-1], first - 1, lambda x: x)])[0]
    greatest = logits.max(axis=1)
    logarithms = greatest + numpy.log(numpy.exp(logits - greatest[:, None]).sum(axis=1))
    return (logarithms - logits[numpy.arange(len(logits)), ids[first:]]).mean()


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or WRONG:
        ids = numpy.array((folder / name / "prompts.txt").read_text().splitlines()[0].split(), dtype=int)
        for label, change in {"as it is": {}, **WRONG[name]}.items():
            model = reference.Model(folder / name)
            model.facts |= change(model.facts) if callable(change) else change
            print(f"{name}, {label}: {loss(model, ids, FIRST[name]):.2f}", flush=True)


if __name__ == "__main__":
    main()
