"""What the results are compared with: attention in double precision over K and V as the program gave
them, without blocks, tables or pagejit. Pure."""

import numpy

from model import GROUP_SIZE, HEAD_SIZE


def compare_with_dense(k, v, q, out):
    """Compares `out` with the attention of `q`, both [count, heads, HEAD_SIZE], the last `count` tokens
    of k and v, [tokens, KV heads, HEAD_SIZE], each over the tokens up to itself. Returns the worst
    error over its limit (above 1 something is wrong) and its place in words.

    The limit: f16 has 11 significant bits, so rounding to it changes a value by at most 2^-11 of
    itself. The result is rounded, and so are the weights before they are multiplied with V: together
    at most 2^-10 of the sum of |weight * v|. A tenth more is for float32, in which all else is computed,
    and 2^-18 for weights below f16's normal numbers: 2^-25 each, of 64 keys at most, times |v| <= 2.
    """
    k, v = (numpy.repeat(x.astype(numpy.float64), GROUP_SIZE, axis=1) for x in (k, v))
    scores = numpy.einsum("qhd,khd->hqk", q.astype(numpy.float64), k) / numpy.sqrt(HEAD_SIZE)
    num_queries, num_keys = len(q), len(k)
    is_later = numpy.arange(num_keys) > numpy.arange(num_keys - num_queries, num_keys)[:, None]
    weights = numpy.exp(numpy.where(is_later, -numpy.inf, scores))
    weights /= weights.sum(axis=-1, keepdims=True)
    want = numpy.einsum("hqk,khd->qhd", weights, v)
    limit = 1.1 / 1024 * numpy.einsum("hqk,khd->qhd", weights, numpy.abs(v)) + 2.0**-18
    ratio = numpy.abs(out - want) / limit
    ratio[numpy.isnan(ratio)] = numpy.inf
    place = numpy.unravel_index(numpy.argmax(ratio), ratio.shape)
    token, head, element = place
    return ratio[place], (f"token {token}, head {head}, element {element} is {out[place]:f}, "
                          f"should be {want[place]:f}")
