"""How well short and long paths of a trained network solve its task by themselves.

Source: Dong, Cordonnier and Loukas 2021, section 4.2. A *path* of length k goes through one head in
each of k of the L layers. Here it is a network of its own, and nothing of the whole network is held
fixed: the attention maps are those that the path's own hidden states give.

**Of a layer that a path goes through** only one head is left: its queries, keys and values, its
slice of the output map, and the output's bias. The attention's skip is left out.

    normalised behind (bert):    y = LN(head(x)),            x ← norm(y + MLP(y))
    normalised in front (modern): y = head(attention_norm(x)), x ← y + MLP(mlp_norm(y))

LN is a LayerNorm without γ and β, norms with a name are the network's own, and the MLP keeps its
skip. **Any other layer** is bypassed wholly: hidden states pass as they are, its MLP is not run.

The final hidden states of n paths of one length are added up, normalised without γ and β (LayerNorm
or RMSNorm, whichever the network has), and given to the network's classifier. Paths are drawn with
replacement, the layers of each without; n smaller counts take the first of the paths of the
largest, so a difference between two counts is one of the same draw.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from isotest.blocks.block import TransformerBlock
from isotest.blocks.paths.enumeration import sample_paths
from isotest.errors import BlockError, MeasurementError, NonFiniteError
from isotest.estimate import Estimate
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from isotest.blocks.attention import SelfAttention
    from isotest.blocks.config import BlockConfig
    from isotest.blocks.paths.enumeration import Paths
    from isotest.blocks.tasks.examples import Examples
    from isotest.blocks.tasks.network import TaskNetwork

FULL = "full"
"""The layer that is the network itself."""

ACCURACY, SHARE, RESIDUAL = METRICS = ("path_accuracy", "path_share", "path_residual")

_POSITIONS = 16_384
"""So many positions of all paths together are computed at once: as many as a cache can hold."""


@dataclass(frozen=True)
class LayerMeasured:
    """What one layer of the profile showed: the network itself, or paths of one length.

    Attributes:
        name: ``"full"``, or ``"paths_20.3"``: twenty paths of length three.
        count: how many paths are added up; ``None`` at ``full``.
        length: how many heads each goes through; ``None`` at ``full``.
        positions: labelled in each repeat.
        estimates: metric to one estimate a repeat, undefined with a reason.
    """

    name: str
    count: int | None
    length: int | None
    positions: list[int] = field(default_factory=list)
    estimates: dict[str, list[Estimate]] = field(default_factory=dict)

    def values(self, metric: str) -> list[float]:
        """Of each repeat.

        Raises:
            MeasurementError: it is undefined in one; says why.
        """
        values = []
        for repeat, estimate in enumerate(self.estimates[metric]):
            if estimate.value is None:
                raise MeasurementError(
                    f"{self.name}, repeat {repeat}: {metric} is undefined: {estimate.undefined}"
                )
            values.append(estimate.value)
        return values


def measure_paths(
    network: TaskNetwork,
    examples_of_repeat: Callable[[int], Examples],
    *,
    counts: Sequence[int],
    repeats: int,
    seed: int,
    lengths: Sequence[int] | None = None,
    progress: Callable[[int], object] | None = None,
) -> dict[str, LayerMeasured]:
    """Accuracy of the network and of its paths by length, in every repeat.

    Args:
        network: trained, in eval mode.
        examples_of_repeat: what each repeat is judged by, from 0.
        counts: how many paths of one length are added up, one after the other.
        repeats: how often paths are drawn.
        seed: of the paths, which depend on it, the repeat and the length alone.
        lengths: of paths; 1 to the number of layers without.
        progress: called after each repeat with 1.

    Returns:
        Name to what it showed: ``"full"``, then every length of the first count, and so on.

    Raises:
        BlockError: a count, length or number of repeats that cannot be, or no valid position.
        NonFiniteError: NaN or an infinity in what paths compute; names layer and repeat.
    """
    depth, heads = network.config.block.depth, network.config.block.heads
    lengths = tuple(range(1, depth + 1)) if lengths is None else tuple(lengths)
    _require(counts, repeats, lengths)
    layers = {FULL: LayerMeasured(FULL, None, None)}
    for count in counts:
        for length in lengths:
            name = f"paths_{count}.{length}"
            layers[name] = LayerMeasured(name, count, length)
    for repeat in range(repeats):
        examples = examples_of_repeat(repeat)
        chance = examples.chance()
        whole = final_hidden(network, examples)
        full = accuracy(network.head(whole), examples, f"{FULL}, repeat {repeat}")
        _add(layers[FULL], whole, full, full, chance, examples)
        draws = [
            sample_paths(
                depth, heads, max(counts), length=length, seed=path_seed(seed, repeat, length)
            )
            for length in lengths
        ]
        sums = iter(summed_paths(network, draws, examples, counts))
        for length, count in product(lengths, counts):
            layer, x = layers[f"paths_{count}.{length}"], next(sums)
            logits = network.head(normalised(network, x))
            own = accuracy(logits, examples, f"{layer.name}, repeat {repeat}")
            _add(layer, x, own, full, chance, examples)
        if progress is not None:
            progress(1)
    return layers


def path_seed(seed: int, repeat: int, length: int) -> int:
    """The seed of the paths of one length in one repeat.

    >>> path_seed(0, 0, 1) == path_seed(0, 0, 1) != path_seed(0, 1, 0)
    True
    """
    digest = hashlib.blake2b(f"paths {seed} {repeat} {length}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@torch.no_grad()
def final_hidden(network: TaskNetwork, examples: Examples) -> Tensor:
    """(B, L, D): what enters the classifier of the network itself, zero where not valid."""
    return _in_batches(
        examples,
        lambda part: network.final_norm(
            network.stack(network.embedding(part.inputs), _mask(part.valid))
        ),
        network.config.block.width,
    )


@torch.no_grad()
def summed_paths(
    network: TaskNetwork, draws: Sequence[Paths], examples: Examples, counts: Sequence[int]
) -> list[Tensor]:
    """The final hidden states of paths, added up: of the first so many of each draw.

    Args:
        network: of L layers with H heads each.
        draws: each (paths, L), 0 past a layer, h through its h-th head.
        examples: what they are given.
        counts: each at most the number of paths of a draw.

    Returns:
        Of each draw, of each count, (B, L, D), zero where not valid.
    """
    unique, inverse = torch.from_numpy(np.concatenate(draws)).unique(dim=0, return_inverse=True)
    of_draw = inverse.split([len(draw) for draw in draws])
    # How often each of the different paths is in a sum.
    times = torch.stack(
        [own[:count].bincount(minlength=len(unique)) for own in of_draw for count in counts]
    ).double()

    def added(part: Examples) -> Tensor:
        ends = through_paths(network, unique, network.embedding(part.inputs), part.valid)
        sums = torch.einsum("sp,pblw->blsw", times, ends.double())
        return sums.flatten(2).float()

    width = network.config.block.width
    sums = _in_batches(examples, added, width * len(times), several=len(unique))
    return list(sums.unflatten(2, (len(times), width)).unbind(2))


def through_paths(network: TaskNetwork, paths: Tensor, x: Tensor, valid: Tensor) -> Tensor:
    """(paths, B, L, D): the final hidden states of every path by itself.

    What paths have in common up to some layer is computed once.

    Args:
        network: of L layers.
        paths: (paths, L), as of :func:`summed_paths`.
        x: (B, L, D), the embedded input.
        valid: (B, L) bool.
    """
    mask = _mask(valid)
    states, state_of = x[None], torch.zeros(len(paths), dtype=torch.int64)
    for layer, block in enumerate(network.stack.blocks):
        assert isinstance(block, TransformerBlock)
        starts, start_of = paths[:, : layer + 1].unique(dim=0, return_inverse=True)
        # Any of the paths that start so says which state it comes from.
        any_path = torch.zeros(len(starts), dtype=torch.int64)
        any_path[start_of] = torch.arange(len(paths))
        states, state_of = states[state_of[any_path]], start_of
        for head in range(network.config.block.heads):
            chosen = (starts[:, layer] == head + 1).nonzero().flatten()
            if not len(chosen):
                continue
            y = states[chosen].flatten(0, 1)
            repeated = None if mask is None else mask.repeat(len(chosen), 1)
            states[chosen] = through_head(block, head, y, repeated).unflatten(0, (len(chosen), -1))
    return states[state_of]


def through_head(block: TransformerBlock, head: int, x: Tensor, valid: Tensor | None) -> Tensor:
    """(B, L, D): a block of which one head is left and the attention's skip is not.

    Args:
        block: with an attention, an MLP and normalisations.
        head: from 0.
        x: (B, L, D).
        valid: (B, L) bool.
    """
    attention, mlp = block.attention, block.mlp
    if attention is None or mlp is None:
        raise BlockError("paths: expected blocks with an attention and an MLP, found one without")
    if block.config.layer_norm == "post":
        y = _plain_norm(block.config, one_head(attention, head, x, valid))
        after: Tensor = block.mlp_norm(y + mlp(y))
    else:
        y = one_head(attention, head, block.attention_norm(x), valid)
        after = y + mlp(block.mlp_norm(y))
    return after


def one_head(attention: SelfAttention, head: int, x: Tensor, valid: Tensor | None) -> Tensor:
    """(B, L, D): what one head adds to the attention's output, and the output's bias.

    Args:
        attention: of H heads.
        head: from 0.
        x: (B, L, D) what it is given.
        valid: (B, L) bool.
    """
    width = attention.head_width
    rows = slice(head * width, (head + 1) * width)
    query, key, value = (
        functional.linear(x, part.weight[rows], None if part.bias is None else part.bias[rows])
        for part in (attention.query, attention.key, attention.value)
    )
    scores = query @ key.transpose(-1, -2) / width**0.5
    allowed = attention.allowed(x, valid)
    if allowed is not None:
        scores = scores.masked_fill(~allowed.squeeze(1), -torch.inf)
    weights = scores.softmax(-1)
    if allowed is not None:
        weights = weights.masked_fill(~allowed.squeeze(1), 0.0)
    attended: Tensor = functional.linear(
        weights @ value, attention.output.weight[:, rows], attention.output.bias
    )
    return attended


def normalised(network: TaskNetwork, x: Tensor) -> Tensor:
    """(B, L, D) normalised as the network's blocks do, without γ and β."""
    return _plain_norm(network.config.block, x)


def accuracy(logits: Tensor, examples: Examples, where: str) -> float:
    """The share of valid positions whose label has the highest logit.

    Raises:
        NonFiniteError: a logit of a valid position is not finite; names ``where``.
    """
    chosen, labels = logits[examples.valid], examples.labels[examples.valid]
    if not bool(chosen.isfinite().all()):
        raise NonFiniteError(f"{where}: NaN or an infinity among the logits")
    return int((chosen.argmax(-1) == labels).sum()) / len(labels)


def _plain_norm(config: BlockConfig, x: Tensor) -> Tensor:
    if config.normalisation == "rmsnorm":
        return functional.rms_norm(x, (config.width,), eps=config.layer_norm_eps)
    return functional.layer_norm(x, (config.width,), eps=config.layer_norm_eps)


def _add(
    layer: LayerMeasured, x: Tensor, own: float, full: float, chance: float, examples: Examples
) -> None:
    """What one repeat showed."""
    if full > chance:
        share = Estimate((own - chance) / (full - chance))
    else:
        share = Estimate(
            None, undefined=f"the network's accuracy is {full:.4g}, where chance is {chance:.4g}"
        )
    found = {ACCURACY: Estimate(own), SHARE: share, RESIDUAL: _residual(x, examples.valid)}
    for metric, estimate in found.items():
        layer.estimates.setdefault(metric, []).append(estimate)
    layer.positions.append(int(examples.valid.sum()))


def _residual(x: Tensor, valid: Tensor) -> Estimate:
    try:
        return Estimate(value_of(RESIDUAL_METRIC, x, None, valid))
    except NonFiniteError:
        raise
    except MeasurementError as error:
        return Estimate(None, undefined=str(error))


RESIDUAL_METRIC = "rank_residual"
"""What ``path_residual`` is of the summed paths."""


def _mask(valid: Tensor) -> Tensor | None:
    """No mask where nothing is padding: the same numbers, sooner."""
    return None if bool(valid.all()) else valid


def _in_batches(
    examples: Examples, compute: Callable[[Examples], Tensor], width: int, *, several: int = 1
) -> Tensor:
    """(B, L, width): ``compute`` of a few sequences of about one length at a time.

    Args:
        examples: of B sequences.
        compute: of some of them, (b, l, width).
        width: of what it gives.
        several: how many times as much is computed on the way.
    """
    result = torch.zeros(*examples.labels.shape, width)
    order = examples.valid.sum(dim=1).argsort(descending=True, stable=True)
    length = examples.labels.shape[1]
    for chosen in order.split(max(1, _POSITIONS // (length * several))):
        part = examples[chosen].trimmed()
        end = part.labels.shape[1]
        # Padding holds whatever was computed there; no sum may see it.
        result[chosen, :end] = compute(part) * part.valid[:, :, None]
    return result


def _require(counts: Sequence[int], repeats: int, lengths: Sequence[int]) -> None:
    for name, values in (("counts", counts), ("lengths", lengths), ("repeats", [repeats])):
        if not values or min(values) < 1 or len(set(values)) < len(values):
            raise BlockError(
                f"paths: expected {name} to be different whole numbers of at least 1, found "
                f"{list(values)}"
            )
