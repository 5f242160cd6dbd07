"""The claims of the literature as checks: each can fail, on numbers planted to contradict it.

The weights that the claims are about are not here, so the checks are judged on profiles of which
the sentence is true, and on profiles of which it is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isotest.gate.verdict import Outcome
from isotest.suite import load_suite
from tests.gate.profiles import judge, profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import Profile
    from isotest.suite import ModelSpec, Suite

ROOT = Path(__file__).parents[2]
SUITES = {
    path.stem: load_suite(path, root=ROOT / "suites")
    for path in sorted((ROOT / "suites" / "claims").glob("*.toml"))
}
ENTRIES = [(suite, model) for suite in SUITES.values() for model in suite.models]


def curve(*values: float, names: Sequence[str] | None = None) -> Profile:
    return profile({"anisotropy": list(values)}, names=names)


def two_curves(drift: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Profile:
    """Anisotropy that rises over twelve layers, a drift of these lengths, norms that vary."""
    rising = np.linspace(0.1, 0.8, 12)
    return profile(
        {
            "anisotropy": rising.tolist(),
            "drift_norm": drift.tolist(),
            "mean_norm": np.linspace(5, 20, 12).tolist(),
        }
    )


T5 = ["encoder.0", "encoder.1", "encoder.final", "decoder.0", "decoder.1", "decoder.final"]
NORMED = ["0", "1", "2", "final"]

SIGNIFICANT_SOMEWHERE = curve(0.05, 0.25, 0.1)
SIGNIFICANT_NOWHERE = curve(0.05, 0.19, 0.1)
LOW = curve(0.02, 0.19, 0.08)
ISOTROPIC = curve(0.02, 0.09, -0.01, 0.05)
EXPLAINED = two_curves(np.linspace(1, 4, 12))
NOT_EXPLAINED = two_curves(np.resize([1.0, 4.0, 2.0], 12))
EXTREME_DECODER = curve(0.1, 0.3, 0.1, 0.2, 0.96, 0.9, names=T5)
EXTREME_ENCODER = curve(0.1, 0.96, 0.9, 0.2, 0.5, 0.4, names=T5)

# By suite, entries, check: a profile of which the sentence is true, and those of which it is not.
CLAIMS: dict[tuple[str, str, str], tuple[Profile, list[Profile]]] = {
    ("characters", "*", "anisotropy"): (SIGNIFICANT_SOMEWHERE, [SIGNIFICANT_NOWHERE]),
    ("characters", "character-bert canine-s byt5-small", "drift_correlation"): (
        EXPLAINED,
        [NOT_EXPLAINED],
    ),
    ("characters", "canine-c manta-base", "drift_correlation"): (NOT_EXPLAINED, [EXPLAINED]),
    ("characters", "byt5-small", "decoder-extreme"): (EXTREME_DECODER, [EXTREME_ENCODER]),
    ("tokens", "*", "anisotropy"): (SIGNIFICANT_SOMEWHERE, [SIGNIFICANT_NOWHERE]),
    ("tokens", "bert-base roberta-base t5-base gpt2-pearson", "drift_correlation"): (
        EXPLAINED,
        [NOT_EXPLAINED],
    ),
    ("tokens", "gpt2", "drift_correlation"): (NOT_EXPLAINED, [EXPLAINED]),
    ("tokens", "t5-base", "decoder-extreme"): (EXTREME_DECODER, [EXTREME_ENCODER]),
    # One layer below 0.2 is enough, the embedding's included.
    ("speech", "*", "anisotropy"): (
        curve(0.2, 0.5, 0.9),
        [curve(0.4, 0.19, 0.9), curve(0.19, 0.5, 0.9)],
    ),
    ("speech", "hubert-base whisper-base", "drift_correlation"): (NOT_EXPLAINED, [EXPLAINED]),
    ("vision", "*", "drift_correlation"): (NOT_EXPLAINED, [EXPLAINED]),
    ("vision", "vit-base", "anisotropy"): (LOW, [curve(0.02, 0.21, 0.08)]),
    ("vision", "mit-b0", "anisotropy"): (ISOTROPIC, [LOW]),
    ("vision", "beit-base deit-base", "anisotropy"): (SIGNIFICANT_SOMEWHERE, [LOW]),
    ("convolution", "efficientnet-b0 cvt-13 convnext-tiny van-base", "anisotropy"): (
        ISOTROPIC,
        [LOW],
    ),
    # More isotropic, flat, with one step back, and isotropic from the start.
    ("convolution", "resnet-50", "anisotropy"): (
        curve(0.7, 0.5, 0.3, 0.2, 0.1),
        [
            curve(0.1, 0.2, 0.3, 0.5, 0.7),
            curve(0.5, 0.5, 0.5, 0.5, 0.5),
            curve(0.7, 0.3, 0.4, 0.2, 0.1),
            curve(0.09, 0.07, 0.05, 0.03, 0.01),
        ],
    ),
    ("counter-evidence", "*", "isotropic-after-the-final-norm"): (
        curve(0.1, 0.6, 0.6, 0.05, names=NORMED),
        [curve(0.1, 0.05, 0.05, 0.6, names=NORMED)],
    ),
    ("counter-evidence", "*", "isotropic-before-the-final-norm"): (
        curve(0.1, 0.6, 0.05, 0.6, names=NORMED),
        [curve(0.1, 0.05, 0.6, 0.05, names=NORMED)],
    ),
    ("counter-evidence", "*", "final-norm-makes-isotropic"): (
        curve(0.1, 0.2, 0.6, 0.05, names=NORMED),
        [
            curve(0.1, 0.2, 0.05, 0.6, names=NORMED),
            curve(0.9, 0.6, 0.05, 0.05, names=NORMED),
        ],
    ),
}


def _expanded() -> dict[tuple[str, str, str], tuple[Profile, list[Profile]]]:
    return {
        (suite, model.name, check): profiles
        for (suite, models, check), profiles in CLAIMS.items()
        for model in SUITES[suite].models
        if models == "*" or model.name in models.split()
    }


PLANTED = _expanded()


def test_every_claim_is_planted_both_ways() -> None:
    assert PLANTED.keys() == {
        (suite.path.stem, model.name, check)
        for suite, model in ENTRIES
        for check in suite.checks_of(model)
    }


@pytest.mark.parametrize("claim", PLANTED, ids="::".join)
def test_a_claim_is_green_where_it_holds_and_red_with_numbers_where_it_does_not(
    claim: tuple[str, str, str],
) -> None:
    suite, model, name = claim
    (spec,) = [each for each in SUITES[suite].models if each.name == model]
    check = SUITES[suite].checks_of(spec)[name]
    true, false = PLANTED[claim]
    assert judge(true, None, check, name).outcome is Outcome.PASSED
    for contradicting in false:
        verdict = judge(contradicting, None, check, name)
        assert verdict.outcome is Outcome.FAILED
        assert re.search(r"\d\.\d", verdict.message)


@pytest.mark.parametrize(("suite", "model"), ENTRIES, ids=lambda each: getattr(each, "name", None))
def test_a_claim_is_about_pretrained_weights_and_has_no_baseline(
    suite: Suite, model: ModelSpec
) -> None:
    """A baseline would turn a claim about a model into one about what somebody accepted."""
    assert model.source.startswith("hub:")
    assert model.optional
    assert not model.baseline


ROWS = re.findall(
    r"^\| (.*) \| (.*`claims/.*) \| .* \|$",
    (ROOT / "docs" / "figures.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(("sentence", "checks"), ROWS)
def test_a_check_quotes_the_sentence_that_it_is_listed_with(sentence: str, checks: str) -> None:
    comments = {
        suite: " ".join(re.findall(r"^# (.*)$", path.read_text(), re.MULTILINE))
        for suite in SUITES
        if (path := ROOT / "suites" / "claims" / f"{suite}.toml")
    }
    (quoted,) = re.findall('"(.*)"', sentence)
    for suite in set(re.findall("claims/([\\w-]+)::", checks)):
        for fragment in quoted.split("[…]"):
            assert fragment.strip().strip(",.") in comments[suite]


def test_the_page_on_the_figures_lists_every_claim() -> None:
    listed = set()
    nodes = " ".join(checks for _, checks in ROWS)
    for suite, models, check in re.findall(r"`claims/([\w-]+)::([^:`]+)::([\w-]+)`", nodes):
        every = [model.name for model in SUITES[suite].models]
        names = every if models == "*" else models.split(",")
        listed |= {(suite, name.strip(), check) for name in names}
    assert listed == PLANTED.keys()


def test_without_the_weights_the_skips_say_what_is_missing_and_how_to_get_it(
    tmp_path: Path,
) -> None:
    """Alone, a suite of which nothing was evaluated is red; beside others it is skipped."""
    command = [sys.executable, "-m", "pytest", "--isotest", "suites/claims/speech.toml", "-rs"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("HF_")},
            "HF_HOME": str(tmp_path / "hub"),
            "ISOTEST_CACHE_DIR": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    for repository in (
        "facebook/wav2vec2-base-960h",
        "facebook/hubert-base-ls960",
        "openai/whisper-base",
    ):
        assert re.search(
            rf"^SKIPPED .*{repository} at main is not in the Hugging Face cache; fetch it with "
            "--isotest-download$",
            done.stdout,
            re.MULTILINE,
        )
    assert "no check compared anything" in done.stdout
