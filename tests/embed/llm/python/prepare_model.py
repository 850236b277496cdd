"""Turns a GGUF file into a plain folder that programs without a GGUF reader can use:

  model.txt       one fact per line: "KEY VALUE...", and "tensor NAME TYPE ROWS COLUMNS OFFSET" for each tensor
  weights.bin     the tensors: matrices as bf16 [rows, columns], vectors as f32; offsets are multiples of 64 bytes
  vocabulary.bin  u32 count, u32 ends[count], then the bytes of all token ids one behind the other
  prompts.txt     one line of token ids per prompt

  prepare_model.py MODEL FILE.gguf FOLDER      MODEL is a key of prompts.json

Everything is little-endian. What a model's architecture fixes but its file does not say stands in ARCHITECTURES. Where a file
says it all the same, or has what the programs here would leave out, the two must agree: exit 1, with both.
"""

import json
import math
import pathlib
import sys

import gguf
import numpy

from gguf_tokenizer import GgufTokenizer

HERE = pathlib.Path(__file__).resolve().parent
ALIGNMENT = 64  # bytes, a cache line

# rope: in GGUF files of "llama" the rows of q and k are permuted for pairs of neighbours; those of "gemma3" are not.
# global_every, local_rope_base: Gemma 3 has a window in 5 of 6 layers, which have a rope base of their own.
# tensors: those of a layer beside LAYER_TENSORS.
ARCHITECTURES = {
    "llama": {"rope": "interleaved", "activation": "silu", "scales_embedding": False, "tensors": ()},
    "gemma3": {
        "rope": "neox",
        "activation": "gelu_tanh",
        "scales_embedding": True,
        "global_every": 6,
        "local_rope_base": 10000.0,
        "tensors": ("attn_q_norm", "attn_k_norm", "post_attention_norm", "post_ffw_norm"),
    },
}
LAYER_TENSORS = "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"


def to_bf16(values):
    """Rounded to nearest even, as uint16."""
    bits = numpy.ascontiguousarray(values, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def field_of(reader, name, default=None):
    """default: for what a file need not say; without one it must."""
    found = reader.get_field(name)
    if found is None and default is None:
        raise SystemExit(f"the file does not say {name}")
    return default if found is None else found.contents()


def hyperparameters(reader):
    name = field_of(reader, "general.architecture")
    if name not in ARCHITECTURES:
        raise SystemExit(f"architecture {name} is not known here ({', '.join(ARCHITECTURES)} are)")
    known = ARCHITECTURES[name]
    get = lambda key, default=None: field_of(reader, f"{name}.{key}", default)
    layers, width, heads = get("block_count"), get("embedding_length"), get("attention.head_count")
    head_size = get("attention.key_length", width // heads)
    is_global = [(i + 1) % known.get("global_every", 1) == 0 for i in range(layers)]
    base = get("rope.freq_base")
    return {
        "architecture": [name],
        "layers": [layers],
        "width": [width],
        "hidden": [get("feed_forward_length")],
        "heads": [heads],
        "kv_heads": [get("attention.head_count_kv")],
        "head_size": [head_size],
        "rope": [known["rope"]],
        "activation": [known["activation"]],
        "embedding_scale": [repr(math.sqrt(width) if known["scales_embedding"] else 1.0)],
        "attention_scale": [repr(1 / math.sqrt(head_size))],
        "norm_epsilon": [repr(get("attention.layer_norm_rms_epsilon"))],
        # Per layer: tokens that a query sees, its own included; 0: all.
        "window": [0 if whole else get("attention.sliding_window") for whole in is_global],
        "rope_base": [repr(base if whole else known["local_rope_base"]) for whole in is_global],
        "end_token": [field_of(reader, "tokenizer.ggml.eos_token_id")],
    }


def check_metadata(reader, facts):
    """That the file's own words on what is assumed here, as far as it has any, are the same."""
    name = facts["architecture"][0]
    is_local = [window > 0 for window in facts["window"]]
    local_bases = {float(base) for base, local in zip(facts["rope_base"], is_local) if local}
    expected = {
        "vocab_size": {len(field_of(reader, "tokenizer.ggml.tokens"))},
        "attention.value_length": {facts["head_size"][0]},  # V's heads are as long as K's
        "rope.dimension_count": {facts["head_size"][0]},  # all of a head is rotated
        "attention.scale": {float(facts["attention_scale"][0])},
        "embedding_scale": {float(facts["embedding_scale"][0])},
        "rope.freq_base_swa": local_bases,
        # A period, or for each layer whether it has a window.
        "attention.sliding_window_pattern": {ARCHITECTURES[name].get("global_every", 1), tuple(is_local)},
        # Not served: "none" and 0 are the same as no word.
        "rope.scaling.type": {"none"},
        "attn_logit_softcapping": {0},
        "final_logit_softcapping": {0},
        "attention.causal": {True},
        "expert_count": {0},
    }
    for key, values in expected.items():
        found = reader.get_field(f"{name}.{key}")
        if found is None:
            continue
        found = found.contents()
        found = tuple(map(bool, found)) if isinstance(found, list) else found
        # Floats of a file have 24 bits.
        same = lambda value: math.isclose(found, value, rel_tol=1e-6) if isinstance(found, float) else found == value
        if not any(map(same, values)):
            raise SystemExit(f"{name}.{key} of the file is {found}; assumed is {' or '.join(map(str, values))}")


def check_tensors(reader, facts):
    """That the tensors have the shapes that the metadata gives them, none is missing and none would be left out."""
    width, hidden, size = (facts[key][0] for key in ("width", "hidden", "head_size"))
    q_width, kv_width = facts["heads"][0] * size, facts["kv_heads"][0] * size
    table = (len(field_of(reader, "tokenizer.ggml.tokens")), width)
    shapes = {  # [rows, columns]
        "attn_q": (q_width, width),
        "attn_k": (kv_width, width),
        "attn_v": (kv_width, width),
        "attn_output": (width, q_width),
        "attn_q_norm": (size,),
        "attn_k_norm": (size,),
        "ffn_gate": (hidden, width),
        "ffn_up": (hidden, width),
        "ffn_down": (width, hidden),
    }
    expected = {"token_embd.weight": table, "output_norm.weight": (width,)}
    for part in (*LAYER_TENSORS, *ARCHITECTURES[facts["architecture"][0]]["tensors"]):
        for layer in range(facts["layers"][0]):
            expected[f"blk.{layer}.{part}.weight"] = shapes.get(part, (width,))
    found = {tensor.name: tuple(map(int, reversed(tensor.shape))) for tensor in reader.tensors}  # GGUF has columns first
    if "output.weight" in found:  # else the embedding serves
        expected["output.weight"] = table
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise SystemExit(f"tensor {name} of the file is {found.get(name)}; assumed is {expected.get(name)}")


def write_weights(reader, folder):
    """Writes weights.bin; returns the lines that describe it."""
    lines = []
    with open(folder / "weights.bin", "wb") as file:
        for tensor in reader.tensors:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            kind, data = ("f32", values.astype("<f4")) if values.ndim == 1 else ("bf16", to_bf16(values).astype("<u2"))
            file.write(bytes(-file.tell() % ALIGNMENT))
            rows = 1 if values.ndim == 1 else values.shape[0]
            lines.append(f"tensor {tensor.name} {kind} {rows} {values.shape[-1]} {file.tell()}")
            data.tofile(file)
    return lines


def write_vocabulary(pieces, folder):
    ends = numpy.cumsum([len(piece) for piece in pieces]).astype("<u4")
    header = numpy.array([len(pieces)], dtype="<u4")
    (folder / "vocabulary.bin").write_bytes(header.tobytes() + ends.tobytes() + b"".join(pieces))


def prompts_of(model, tokenizer):
    texts = json.loads((HERE.parent / "prompts.json").read_text())[model]
    words = (HERE.parents[3] / "LICENSE").read_text().split()[: texts.get("license_words", 0)]
    return [tokenizer.encode(" ".join(words) + texts["shared"] + ending) for ending in texts["endings"]]


def main():
    model, path, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True)
    reader = gguf.GGUFReader(path)
    facts = hyperparameters(reader)
    check_metadata(reader, facts)
    check_tensors(reader, facts)
    lines = [" ".join([key, *map(str, values)]) for key, values in facts.items()]
    lines += write_weights(reader, folder)
    tokenizer = GgufTokenizer(reader)
    write_vocabulary(tokenizer.pieces, folder)
    prompts = prompts_of(model, tokenizer)
    (folder / "prompts.txt").write_text("".join(" ".join(map(str, ids)) + "\n" for ids in prompts))
    (folder / "model.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
