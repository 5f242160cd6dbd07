"""Paths through a network of attention layers with skips: counted, enumerated, drawn.

With its attention maps held fixed, a layer of H heads with a skip is a sum of H + 1 maps: past the
layer, or through one of its heads. A network of L such layers, multiplied out, is a sum over
(H + 1)^L *paths*, each of which takes one of the H + 1 ways in every layer. The *length* of a path
is the number of heads that it goes through, and C(L, k)·H^k paths have the length k (Dong,
Cordonnier and Loukas 2021, section 2.2; Veit, Wilber and Belongie 2016 of convolutional networks).

A path is a row of L whole numbers: 0 past the layer, h through its h-th head, from 1 to H. What
paths compute is :mod:`isotest.blocks.paths.network`'s to say.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from isotest.errors import BlockError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Paths = NDArray[np.int64]

ENUMERABLE = 1_000_000
"""More paths than this are not enumerated."""


def count_paths(layers: int, heads: int, length: int | None = None) -> int:
    """How many paths there are, exactly, however many.

    Args:
        layers: L.
        heads: H, of each layer.
        length: only those through so many heads, 0 to L; ``None``: all.

    Returns:
        C(L, k)·H^k, or (H + 1)^L.

    Raises:
        BlockError: a size below 1, or a length that no path has.

    >>> count_paths(12, 12)
    23298085122481
    >>> [count_paths(3, 2, length) for length in range(4)]
    [1, 6, 12, 8]
    """
    _require(layers, heads, length)
    if length is None:
        return int((heads + 1) ** layers)
    return int(math.comb(layers, length) * heads**length)


def all_paths(layers: int, heads: int, length: int | None = None) -> Paths:
    """Every path once, in lexicographic order.

    Args:
        layers: as of :func:`count_paths`.
        heads: as of :func:`count_paths`.
        length: as of :func:`count_paths`.

    Returns:
        (paths, L), entries 0 to H.

    Raises:
        BlockError: as :func:`count_paths`, or more than a million paths.

    >>> all_paths(2, 2, length=1).tolist()
    [[0, 1], [0, 2], [1, 0], [2, 0]]
    """
    count = count_paths(layers, heads, length)
    if count > ENUMERABLE:
        raise BlockError(
            f"paths: {layers} layers of {heads} heads have {count} paths"
            f"{'' if length is None else f' of length {length}'}, and more than {ENUMERABLE} are "
            "not enumerated; draw some with sample_paths"
        )
    if length is None:
        ways = itertools.product(range(heads + 1), repeat=layers)
        return np.array(list(ways), dtype=np.int64).reshape(count, layers)
    chosen = np.array(list(itertools.combinations(range(layers), length)), dtype=np.int64)
    through = np.array(
        list(itertools.product(range(1, heads + 1), repeat=length)), dtype=np.int64
    ).reshape(heads**length, length)
    paths = np.zeros((len(chosen), len(through), layers), dtype=np.int64)
    for layer_set, rows in zip(chosen, paths, strict=True):
        rows[:, layer_set] = through
    flat = paths.reshape(count, layers)
    ordered: Paths = flat[np.lexsort(flat.T[::-1])]
    return ordered


def sample_paths(
    layers: int, heads: int, number: int, *, length: int | None = None, seed: int = 0
) -> Paths:
    """Paths drawn uniformly and independently, so one may come twice.

    A mean over them is an unbiased estimate of the mean over all paths of that length, and
    ``count_paths`` times it of their sum.

    Args:
        layers: as of :func:`count_paths`.
        heads: as of :func:`count_paths`.
        number: how many, at least 1.
        length: as of :func:`count_paths`. Of all paths, most are long: L·H/(H + 1) on average.
        seed: of the draw, which depends on nothing else.

    Returns:
        (number, L), entries 0 to H.

    Raises:
        BlockError: as :func:`count_paths`, or fewer than one path.

    >>> paths = sample_paths(12, 12, 5, length=3)
    >>> paths.shape, (paths > 0).sum(axis=1).tolist()
    ((5, 12), [3, 3, 3, 3, 3])
    """
    _require(layers, heads, length)
    if number < 1:
        raise BlockError(f"paths: expected to draw at least one path, found number = {number}")
    generator = np.random.default_rng(seed)
    if length is None:
        return generator.integers(0, heads + 1, (number, layers))
    # The layers with the smallest of L independent numbers are a uniform choice of them.
    order = generator.random((number, layers)).argsort(axis=1)[:, :length]
    paths = np.zeros((number, layers), dtype=np.int64)
    through = generator.integers(1, heads + 1, (number, length))
    np.put_along_axis(paths, order, through, axis=1)
    return paths


def _require(layers: int, heads: int, length: int | None) -> None:
    if layers < 1 or heads < 1:
        raise BlockError(
            f"paths: expected at least one layer and one head, found layers = {layers} and "
            f"heads = {heads}"
        )
    if length is not None and not 0 <= length <= layers:
        raise BlockError(
            f"paths: expected a length from 0 to {layers}, the number of layers, found {length}"
        )
