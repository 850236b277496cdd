"""prepare_model.py refuses a file whose metadata or tensors are not what the programs here assume.

  test_prepare_model.py          with gguf, numpy and tokenizers on the path (setup.sh); exit 77 where they are not
"""

import os
import sys
import types
import unittest

try:
    import prepare_model
except ModuleNotFoundError as error:
    print(f"{error}: tests/embed/llm/setup.sh fetches it (it needs network)")
    sys.exit(1 if os.environ.get("PAGEJIT_TEST_REQUIRE_COMPILERS") == "1" else 77)

LAYERS, WIDTH, HIDDEN, HEADS, KV_HEADS, SIZE, TOKENS = 6, 32, 48, 4, 2, 16, 10


class File:
    """What a reader of a small file would have, in the shape of gguf.GGUFReader."""

    def __init__(self, name):
        self.name = name
        self.metadata = {
            "general.architecture": name,
            f"{name}.block_count": LAYERS,
            f"{name}.embedding_length": WIDTH,
            f"{name}.feed_forward_length": HIDDEN,
            f"{name}.attention.head_count": HEADS,
            f"{name}.attention.head_count_kv": KV_HEADS,
            f"{name}.attention.key_length": SIZE,
            f"{name}.attention.layer_norm_rms_epsilon": 1e-6,
            f"{name}.rope.freq_base": 1e6,
            "tokenizer.ggml.tokens": ["token"] * TOKENS,
            "tokenizer.ggml.eos_token_id": 1,
        }
        if name == "gemma3":
            self.metadata["gemma3.attention.sliding_window"] = 512
        q, kv = HEADS * SIZE, KV_HEADS * SIZE
        layer = {"attn_norm": [WIDTH], "attn_q": [WIDTH, q], "attn_k": [WIDTH, kv], "attn_v": [WIDTH, kv], "attn_output": [q, WIDTH]}
        layer |= {"ffn_norm": [WIDTH], "ffn_gate": [WIDTH, HIDDEN], "ffn_up": [WIDTH, HIDDEN], "ffn_down": [HIDDEN, WIDTH]}
        if name == "gemma3":
            layer |= {"attn_q_norm": [SIZE], "attn_k_norm": [SIZE], "post_attention_norm": [WIDTH], "post_ffw_norm": [WIDTH]}
        self.shapes = {f"blk.{i}.{part}.weight": shape for i in range(LAYERS) for part, shape in layer.items()}
        self.shapes |= {"token_embd.weight": [WIDTH, TOKENS], "output_norm.weight": [WIDTH]}

    def get_field(self, name):
        return types.SimpleNamespace(contents=lambda: self.metadata[name]) if name in self.metadata else None

    @property
    def tensors(self):
        return [types.SimpleNamespace(name=name, shape=shape) for name, shape in self.shapes.items()]

    def refusal(self):
        """The sentence; empty where the file is accepted."""
        try:
            facts = prepare_model.hyperparameters(self)
            prepare_model.check_metadata(self, facts)
            prepare_model.check_tensors(self, facts)
        except SystemExit as error:
            return str(error)
        return ""


class PrepareModelTest(unittest.TestCase):
    def test_accepts_what_is_assumed_whether_it_is_said_or_not(self):
        for name in "llama", "gemma3":
            self.assertEqual(File(name).refusal(), "")
        said = File("gemma3")
        said.metadata |= {
            "gemma3.vocab_size": TOKENS,
            "gemma3.attention.value_length": SIZE,
            "gemma3.attention.scale": 0.25,
            "gemma3.rope.freq_base_swa": 10000.0,
            "gemma3.attention.sliding_window_pattern": [True] * 5 + [False],
            "gemma3.final_logit_softcapping": 0.0,
            "gemma3.rope.scaling.type": "none",
        }
        said.shapes["output.weight"] = [WIDTH, TOKENS]
        self.assertEqual(said.refusal(), "")
        said.metadata["gemma3.attention.sliding_window_pattern"] = 6
        self.assertEqual(said.refusal(), "")

    def test_refuses_other_words_of_the_file(self):
        for key, value in {
            "vocab_size": TOKENS + 1,
            "attention.value_length": 2 * SIZE,
            "rope.dimension_count": SIZE // 2,
            "attention.scale": 0.125,
            "embedding_scale": 1.0,
            "rope.freq_base_swa": 1e6,
            "attention.sliding_window_pattern": [False] + [True] * 5,
            "rope.scaling.type": "yarn",
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "attention.causal": False,
            "expert_count": 8,
        }.items():
            file = File("gemma3")
            file.metadata[f"gemma3.{key}"] = value
            self.assertIn(f"gemma3.{key} of the file is ", file.refusal(), key)

    def test_refuses_a_file_that_does_not_say_what_only_it_knows(self):
        optional = {"gemma3.attention.key_length"}  # else width / heads, which the tensors' shapes then contradict
        for key in File("gemma3").metadata.keys() - optional:
            file = File("gemma3")
            del file.metadata[key]
            self.assertEqual(file.refusal(), f"the file does not say {key}")

    def test_refuses_tensors_of_another_shape_and_those_that_would_be_left_out(self):
        for key, value in {"attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 32, "feed_forward_length": 64}.items():
            file = File("llama")
            file.metadata[f"llama.{key}"] = value
            self.assertRegex(file.refusal(), "^tensor blk.0.* of the file is ", key)
        fewer, more = File("llama"), File("llama")
        del fewer.shapes["blk.5.attn_v.weight"]
        self.assertEqual(fewer.refusal(), "tensor blk.5.attn_v.weight of the file is None; assumed is (32, 32)")
        more.shapes["blk.0.attn_q.bias"] = [HEADS * SIZE]
        self.assertEqual(more.refusal(), "tensor blk.0.attn_q.bias of the file is (64,); assumed is None")


if __name__ == "__main__":
    unittest.main()
