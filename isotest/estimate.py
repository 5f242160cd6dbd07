"""One measured value with its error bar, as it stands in a profile (torch-free)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """The value of one metric at one layer.

    Attributes:
        value: the estimate over all blocks; ``None`` where the metric is undefined.
        se: its block-jackknife standard error; ``None`` with fewer than two blocks.
        blocks: the jackknife pseudo-value of each block, in block order, so that two profiles of
            the same data can be compared block by block; empty where the metric is undefined.
        undefined: why there is no value, in words; ``None`` where there is one.
        vacuous: with ``undefined``: nothing is wrong, there is merely nothing to measure (a share
            of an anisotropy that is zero). Any other undefined value fails the checks on it.
        isotropic: what isotropic data, N(0, I), of the same number and width would give, so that
            what few samples do is not taken for anisotropy; ``None`` where that says nothing (the
            metric has a scale of its own) or the value is undefined.
        basis: what the value was measured from, in words, where that is a choice: how many of the
            representations, the window of a fit; ``None`` where everything enters.
        dropped: how many of the representations that are its basis a metric could not use (copies
            have no ratio of distances); ``None`` where it uses all of them. It may depend on the
            weights, so unlike the basis it is no condition of a comparison.
    """

    value: float | None
    se: float | None = None
    blocks: tuple[float, ...] = ()
    undefined: str | None = None
    vacuous: bool = False
    isotropic: float | None = None
    basis: str | None = None
    dropped: int | None = None
