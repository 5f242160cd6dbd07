"""The energy of a layer's representations, in pots: what they share, and how they differ.

Of a unit of squared length, with A ``anisotropy``, I ``intra_similarity``, D ``drift_share`` and r
``rank_residual``:

========== ============================================ ======== ===========
pot        what it is                                   cosines  lengths
========== ============================================ ======== ===========
common     the direction that all representations share A        D
between    what sequences do not share with each other  I − A    1 − D − r²
within     what positions of a sequence do not share    1 − I    r²
========== ============================================ ======== ===========

(A is an unbiased estimate of the squared length of the mean direction, since its pairs are
independent. Where sequences have one position, there is no ``between``.) The similarities are
ratios of pots: A or D is common / all, I or 1 − r² is (common + between) / all.

Copies and the common pot are taken apart, from the most specific to the most general:

- *copies*: with P ``duplicate_pairs``, the mean cosine of the other pairs is A′ = (A − P)/(1 − P);
  copies add A − A′. Within sequences copies are what ``duplicate_pairs_within`` is above P, as a
  share P_w of the other pairs; without them the within pot would be within/(1 − P_w). (P_w = 1 is
  no copying but a collapse: no other pair is left.)
- *rogue*: their share, ``rogue_share``, of A′.
- *concentration*: with C ``centered_anisotropy``, without its copies C′, an A′ of which centring
  leaves C′ is drift + (1 − drift)·C′. So C′(1 − A′)/(1 − C′) is no drift: representations lie on
  one side even about their mean. (C above A says that a few long representations make the mean,
  and not the direction that all share: then C tells nothing, and this part is not known.)
- *drift*: what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.gate.diagnosis.reading import rogue, share, value

if TYPE_CHECKING:
    from isotest.profile import LayerProfile


@dataclass(frozen=True)
class Energy:
    """Pots, up to one common factor.

    Attributes:
        copies, rogue, drift, concentration: the parts of the common pot.
        between, within: the others, as they would be without copies within sequences.
        copied: share of the within pot that copies have moved into the between pot, 0…1.
        noise: a pot of this size, of a whole of one, may as well be empty: three standard errors.
    """

    copies: float
    rogue: float
    drift: float
    concentration: float
    between: float
    within: float
    copied: float
    noise: float = 0.0

    @property
    def common(self) -> float:
        """The direction that all representations share."""
        return self.copies + self.rogue + self.drift + self.concentration

    @property
    def all(self) -> float:
        """Everything."""
        return self.common + self.between + self.within

    @property
    def alike(self) -> float:
        """Share of the energy that representations of different sequences share: A or D."""
        return self.common / self.all

    @property
    def alike_within(self) -> float:
        """Share that representations of one sequence share: I or 1 − r²."""
        own = self.between + self.copied * self.within
        return (self.common + own) / self.all


def centring_tells(layer: LayerProfile) -> bool:
    """Whether ``centered_anisotropy`` says what of the mean cosine is no drift."""
    centred, anisotropy = value(layer, "centered_anisotropy"), value(layer, "anisotropy")
    if centred is None or anisotropy is None:
        return "centered_anisotropy" in layer.estimates
    return centred <= anisotropy + max(0.01, 3 * _error(layer, "anisotropy"))


def of_cosines(layer: LayerProfile, *, several: bool, centred: bool) -> Energy | None:
    """The pots of directions, each of length one; ``None`` where anisotropy is unknown.

    Args:
        layer: where.
        several: whether rogue dimensions were counted; see :func:`.reading.rogue`.
        centred: whether :func:`centring_tells`, on both sides.
    """
    anisotropy, intra = value(layer, "anisotropy"), value(layer, "intra_similarity")
    if anisotropy is None:
        return None
    common = _part(anisotropy)
    between, within = 0.0, 1.0 - common
    if intra is not None:  # else every sequence has one representation, or it was not measured
        between, within = max(0.0, intra - common), 1.0 - _part(intra)
    noise = max(_error(layer, "anisotropy"), _error(layer, "intra_similarity"))
    return _energy(layer, common, between, within, 3 * noise, several=several, centred=centred)


def of_lengths(layer: LayerProfile, *, several: bool) -> Energy | None:
    """The pots of representations as they are; ``None`` where they are not known.

    The mean is the drift here, so nothing of it is concentration. Copies and rogue dimensions have
    the shares in it that they have in the mean direction.
    """
    drift, residual = value(layer, "drift_share"), value(layer, "rank_residual")
    if drift is None:
        return None
    common, between, within = _part(drift), 0.0, 1.0 - _part(drift)
    noise = _error(layer, "drift_share")
    if residual is not None:
        within = _part(residual) ** 2
        common = min(common, 1.0 - within)
        between = 1.0 - common - within
        noise = max(noise, 2 * residual * _error(layer, "rank_residual"))
    return _energy(layer, common, between, within, 3 * noise, several=several, centred=False)


def _energy(
    layer: LayerProfile,
    common: float,
    between: float,
    within: float,
    noise: float,
    *,
    several: bool,
    centred: bool,
) -> Energy:
    alike = _part(value(layer, "anisotropy") or 0.0)
    pairs = share(layer, "duplicate_pairs")
    others = without_copies(alike, pairs)
    copies = common * (1.0 - _part(others) / alike) if alike > 0 else 0.0
    rest = common - copies
    of_rogue = rogue(layer, several=several)[1] * rest
    left = without_copies(share(layer, "centered_anisotropy"), pairs)
    skewed = 0.0
    if centred and 0 < left < 1 and others > 0:
        skewed = min(1.0, left * (1.0 - others) / (1.0 - left) / others)
    copied = copied_within(layer)
    apart = within / (1.0 - copied)
    return Energy(
        copies=copies,
        rogue=of_rogue,
        drift=(rest - of_rogue) * (1.0 - skewed),
        concentration=(rest - of_rogue) * skewed,
        between=max(0.0, between - copied * apart),
        within=apart,
        copied=copied,
        noise=noise,
    )


def copied_within(layer: LayerProfile) -> float:
    """P_w: share of the pairs within sequences that are copies, beyond those between units."""
    copied = without_copies(share(layer, "duplicate_pairs_within"), share(layer, "duplicate_pairs"))
    return 0.0 if copied >= 1.0 else max(0.0, copied)


def without_copies(mean: float, copies: float) -> float:
    """The mean cosine of the pairs that are no copies: (mean − P) / (1 − P).

    >>> without_copies(0.25, 0.25), without_copies(1.0, 1.0)
    (0.0, 0.0)
    """
    return (mean - copies) / (1.0 - copies) if copies < 1.0 else 0.0


def _error(layer: LayerProfile, metric: str) -> float:
    estimate = layer.estimates.get(metric)
    return 0.0 if estimate is None else estimate.se or 0.0


def _part(found: float) -> float:
    return min(1.0, max(0.0, found))
