"""The drift experiment written out again: one sequence, head and pair at a time, in float64."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erf, softmax

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from isotest.blocks import TransformerBlock

    Array = NDArray[np.float64]


def weights_of(block: TransformerBlock) -> dict[str, Array]:
    return {name: value.double().numpy() for name, value in block.state_dict().items()}


def linear(w: Mapping[str, Array], name: str, x: Array) -> Array:
    result: Array = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return result


def normalised(w: Mapping[str, Array], name: str, x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    result: Array = centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]
    return result


def heads_of(x: Array, heads: int) -> list[Array]:
    return np.split(x, heads, axis=-1)


def post_norm_block(w: Mapping[str, Array], x: Array, heads: int) -> tuple[Array, list[Array]]:
    """Of one sequence (L, D): the output, and the scores of each head."""
    parts = [heads_of(linear(w, f"attention.{name}", x), heads) for name in ("query", "key")]
    scores = [q @ k.T / np.sqrt(q.shape[1]) for q, k in zip(*parts, strict=True)]
    values = heads_of(linear(w, "attention.value", x), heads)
    mixed = [softmax(s, axis=1) @ v for s, v in zip(scores, values, strict=True)]
    attended = linear(w, "attention.output", np.concatenate(mixed, axis=1))
    x = normalised(w, "attention_norm", x + attended)
    hidden = linear(w, "mlp.hidden", x)
    hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
    return normalised(w, "mlp_norm", x + linear(w, "mlp.output", hidden)), scores


def cosine(u: Array, v: Array) -> float:
    return float(u @ v / np.linalg.norm(u) / np.linalg.norm(v))


def geometry(sequences: list[Array]) -> dict[str, float]:
    rows = np.concatenate(sequences)
    between = [
        cosine(u, v) for one, other in combinations(sequences, 2) for u in one for v in other
    ]
    within = [cosine(u, v) for one in sequences for u, v in combinations(one, 2)]
    lengths = np.linalg.norm(rows, axis=1)
    return {
        "anisotropy": float(np.mean(between)),
        "anisotropy_all": float(np.mean(between + within)),
        "intra_similarity": float(np.mean(within)),
        "mean_norm": float(lengths.mean()),
        "norm_std": float(lengths.std()),
        "drift_norm": float(np.linalg.norm(rows.mean(axis=0))),
        "drift_share": float(np.sum(rows.mean(axis=0) ** 2) / np.mean(lengths**2)),
    }


def attention(w: Mapping[str, Array], sequences: list[Array], heads: int) -> dict[str, float]:
    """Of every query: nothing is sampled."""
    scores = [post_norm_block(w, x, heads)[1] for x in sequences]
    maps = [head for of_sequence in scores for head in of_sequence]
    weights = [softmax(head, axis=1) for head in maps]
    every = np.array(maps)
    found = {
        "attention_score_mean": float(every.mean()),
        "attention_score_std": float(every.std()),
        "attention_score_q05": float(np.mean([np.quantile(s, 0.05) for s in maps])),
        "attention_score_median": float(np.mean([np.median(s) for s in maps])),
        "attention_score_q95": float(np.mean([np.quantile(s, 0.95) for s in maps])),
        "attention_row_max": float(np.mean([p.max(axis=1) for p in weights])),
        "attention_row_median": float(np.mean([np.median(p, axis=1) for p in weights])),
        "attention_row_min": float(np.mean([p.min(axis=1) for p in weights])),
        "attention_sequence_max": float(np.mean([p.max() for p in weights])),
        "attention_sequence_min": float(np.mean([p.min() for p in weights])),
    }
    for name in ("query", "key"):
        vectors = [
            head for x in sequences for head in heads_of(linear(w, f"attention.{name}", x), heads)
        ]
        found[f"attention_{name}_norm"] = float(
            np.mean([np.linalg.norm(v, axis=1) for v in vectors])
        )
        found[f"attention_{name}_cosine"] = float(
            np.mean([[cosine(u, v) for u, v in combinations(each, 2)] for each in vectors])
        )
    return found
