"""The metrics isotest knows: what each is called, which way is worse, where its formula lives.

Importing this costs nothing (no torch): the gate reads it to judge profiles that were measured
earlier. ``accumulator`` is an object reference, ``module:name``, resolved when measuring.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.estimate import Estimate

Worse = Literal["up", "down", "both"]


@dataclass(frozen=True)
class Metric:
    """What the gate and the reports need to know of a metric.

    Attributes:
        name: the field's term, as it stands in suites and profiles.
        summary: one line for reports and the generated reference.
        worse: the direction that counts as a regression unless a suite says otherwise.
        floor: the smallest change that is ever judged real. It absorbs the rounding of float32
            forward passes on other machines and keeps a zero spread from making a zero band.
        floor_scale: the metric whose magnitude at the same layer ``floor`` is a share of; ``None``:
            ``floor`` is absolute. A spread of lengths rounds with the lengths, not with itself.
        weight: what a block weighs by in the jackknife.
        accumulator: object reference of the accumulator that yields it.
        source: where the definition comes from.
    """

    name: str
    summary: str
    worse: Worse
    floor: float
    floor_scale: str | None
    weight: Literal["representations", "sequences"]
    accumulator: str
    source: str

    def floor_at(self, estimates: Mapping[str, Estimate]) -> float:
        """The floor at a layer with these estimates, in the metric's own unit."""
        if self.floor_scale is None:
            return self.floor
        scale = estimates.get(self.floor_scale)
        return 0.0 if scale is None or scale.value is None else self.floor * abs(scale.value)


_COSINES = "isotest.statistics.cosine:Cosines"
_NORMS = "isotest.statistics.norms:Norms"
_MASSIVE = "isotest.statistics.massive:MassiveActivations"
_RESIDUAL = "isotest.statistics.residual:RankResidual"
_CENTERED = "isotest.statistics.centered:Centered"
_DUPLICATES = "isotest.statistics.duplicates:Duplicates"

# Floors: float32 forward passes of one model on two machines differ by 1e-6 to 1e-5 of a value.
# A floor stands one to two orders above that, and one to two below a change anyone acts on.
_SHARE = 1e-4  # of quantities between 0 (or −1) and 1
_RATIO_OF_SHARES = 1e-3  # dimension_share divides by an anisotropy that may be as small as 0.01
_RELATIVE = 1e-3  # of lengths and magnitudes, which have no natural scale


def _by_name(*metrics: Metric) -> Mapping[str, Metric]:
    return MappingProxyType({metric.name: metric for metric in metrics})


METRICS: Mapping[str, Metric] = _by_name(
    Metric(
        name="anisotropy",
        summary="mean cosine over pairs of representations from different independent units",
        worse="up",
        floor=_SHARE,
        floor_scale=None,
        weight="representations",
        accumulator=_COSINES,
        source="Godey, de la Clergerie and Sagot 2023",
    ),
    Metric(
        name="anisotropy_all",
        summary="mean cosine over all distinct pairs of representations",
        worse="up",
        floor=_SHARE,
        floor_scale=None,
        weight="representations",
        accumulator=_COSINES,
        source="Ethayarajh 2019",
    ),
    Metric(
        name="intra_similarity",
        summary="mean cosine over pairs of representations within a sequence",
        worse="up",
        floor=_SHARE,
        floor_scale=None,
        weight="representations",
        accumulator=_COSINES,
        source="Ethayarajh 2019",
    ),
    Metric(
        name="mean_norm",
        summary="mean Euclidean length of the representations",
        worse="both",
        floor=_RELATIVE,
        floor_scale="mean_norm",
        weight="representations",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
    ),
    Metric(
        name="norm_std",
        summary="standard deviation (÷ N) of the Euclidean lengths",
        worse="both",
        floor=_RELATIVE,
        floor_scale="mean_norm",
        weight="representations",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
    ),
    Metric(
        name="drift_norm",
        summary="length of the mean representation",
        worse="both",
        floor=_RELATIVE,
        floor_scale="mean_norm",
        weight="representations",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
    ),
    Metric(
        name="drift_share",
        summary="share of the mean squared length that is the common direction",
        worse="up",
        floor=_SHARE,
        floor_scale=None,
        weight="representations",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
    ),
    Metric(
        name="centered_anisotropy",
        summary="anisotropy of what is left when the mean representation is subtracted",
        worse="up",
        floor=_SHARE,
        floor_scale=None,
        weight="representations",
        accumulator=_CENTERED,
        source="Biś, Sobolewski and Rychlik 2021",
    ),
    Metric(
        name="dimension_share",
        summary="share of the anisotropy that the largest single dimension contributes",
        worse="up",
        floor=_RATIO_OF_SHARES,
        floor_scale=None,
        weight="representations",
        accumulator=_COSINES,
        source="Timkey and van Schijndel 2021",
    ),
    Metric(
        name="massive",
        summary="largest absolute activation",
        worse="up",
        floor=_RELATIVE,
        floor_scale="massive",
        weight="representations",
        accumulator=_MASSIVE,
        source="Sun, Chen, Kolter and Liu 2024",
    ),
    Metric(
        name="massive_ratio",
        summary="largest absolute activation of a sequence, over the sequence's median one",
        worse="up",
        floor=_RELATIVE,
        floor_scale="massive_ratio",
        weight="representations",
        accumulator=_MASSIVE,
        source="Sun, Chen, Kolter and Liu 2024",
    ),
    Metric(
        name="rank_residual",
        summary="distance from equal rows within a sequence, relative, in the Frobenius norm",
        worse="down",
        floor=_SHARE,
        floor_scale=None,
        weight="sequences",
        accumulator=_RESIDUAL,
        source="Dong, Cordonnier and Loukas 2021",
    ),
    Metric(
        name="rank_residual_composite",
        summary="distance from equal rows within a sequence, relative, in the norm √(‖·‖₁‖·‖_∞)",
        worse="down",
        floor=_SHARE,
        floor_scale=None,
        weight="sequences",
        accumulator=_RESIDUAL,
        source="Dong, Cordonnier and Loukas 2021",
    ),
    Metric(
        name="duplicate_share",
        summary="share of representations that are bitwise copies of another one",
        worse="up",
        floor=_SHARE,
        floor_scale=None,
        weight="representations",
        accumulator=_DUPLICATES,
        source="count of distinct rows",
    ),
)
"""Every metric by its name, in the order of reports."""
