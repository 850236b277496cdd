"""The tokenizer of a GGUF file, built with the `tokenizers` package from the vocabulary that the file carries.

Two kinds are known: "gpt2" with the splitting rules of SmolLM (byte-level BPE with merges), and "llama" (SentencePiece
pieces with scores, joined as BPE, as Gemma's are).
"""

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

# tokenizer.ggml.token_type, as the GGUF specification numbers them.
_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6
_SPACE = "\u2581"  # SentencePiece's mark for a space


def _byte_of_character():
    """The bytes behind the characters of byte-level BPE: printable ones stand for themselves, others for 256 + n."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    table.update({chr(256 + n): byte for n, byte in enumerate(others)})
    return table


def _merges_by_score(pieces, scores):
    """SentencePiece's BPE joins the pair whose result has the greatest score: each way to make each piece, best first."""
    ids = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for piece in sorted(pieces, key=lambda piece: -scores[ids[piece]]):
        splits = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        splits = [(left, right) for left, right in splits if left in ids and right in ids]
        merges += sorted(splits, key=lambda split: (ids[split[0]], ids[split[1]]))
    return merges


def _field(reader, name, default=None):
    field = reader.get_field(name)
    return default if field is None else field.contents()


class GgufTokenizer:
    """encode(text) -> ids, and `pieces`, the bytes that each id stands for."""

    def __init__(self, reader):
        kind = (_field(reader, "tokenizer.ggml.model"), _field(reader, "tokenizer.ggml.pre"))
        tokens = _field(reader, "tokenizer.ggml.tokens")
        types = _field(reader, "tokenizer.ggml.token_type")
        vocabulary = {token: i for i, token in enumerate(tokens)}
        if kind == ("gpt2", "smollm"):
            merges = [tuple(pair.split(" ")) for pair in _field(reader, "tokenizer.ggml.merges")]
            self._tokenizer = Tokenizer(models.BPE(vocabulary, merges))
            self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
                [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
            )
            self._tokenizer.decoder = decoders.ByteLevel()
            byte_of = _byte_of_character()
            piece_of = lambda token: bytes(byte_of[character] for character in token)
        elif kind == ("llama", "default"):
            scores = _field(reader, "tokenizer.ggml.scores")
            ordinary = [t for t, token_type in zip(tokens, types) if token_type not in (_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE)]
            merges = _merges_by_score(ordinary, [scores[vocabulary[token]] for token in ordinary])
            self._tokenizer = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
            self._tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
            piece_of = lambda token: token.replace(_SPACE, " ").encode()
        else:
            raise SystemExit(f"tokenizer {kind} is not known here (gpt2/smollm and llama/default are)")
        special = [t for t, token_type in zip(tokens, types) if token_type in (_CONTROL, _USER_DEFINED)]
        self._tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
        self._begin = [_field(reader, "tokenizer.ggml.bos_token_id")] if _field(reader, "tokenizer.ggml.add_bos_token") else []
        self.pieces = []
        for token, token_type in zip(tokens, types):
            if token_type in (_UNKNOWN, _CONTROL, _USER_DEFINED):
                self.pieces.append(token.encode())
            elif token_type == _BYTE:  # "<0x0A>"
                self.pieces.append(bytes([int(token[3:5], 16)]))
            else:
                self.pieces.append(piece_of(token))

    def encode(self, text):
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        assert b"".join(self.pieces[i] for i in ids).decode() == text, "the pieces do not spell the text"
        return self._begin + ids
