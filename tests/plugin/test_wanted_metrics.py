"""What is measured: what the suite asks for, and never less than what its checks judge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from isotest.statistics.registry import all_metrics, default_metrics
from tests.plugin.project import FOLDER, net

if TYPE_CHECKING:
    from tests.plugin.project import Project

LIMIT = '[checks.intra_similarity]\nmax = 1.0\nlayers = "1"\n'


def measured(project: Project) -> list[str]:
    """The metrics of every layer in the recorded baseline."""
    document = json.loads(project.baseline().read_bytes())
    (names,) = {tuple(layer["estimates"]) for layer in document["layers"]}
    return list(names)


def asked(project: Project, metrics: str, checks: str) -> None:
    data = f"{FOLDER}\n[measure]\nmetrics = {metrics}"
    project.suite(net(), checks=checks, data=data)


@pytest.mark.parametrize(
    ("metrics", "checks", "expected"),
    [
        ('["massive"]', LIMIT, {"massive", "intra_similarity"}),
        # The floor of norm_std is a share of mean_norm.
        ('["norm_std"]', LIMIT, {"mean_norm", "norm_std", "intra_similarity"}),
        ("[]", '[checks.turn]\nmetric = "anisotropy"\nmax = 1.0\n', {"anisotropy"}),
        (
            "[]",
            "[checks.drift_correlation]\nbaseline = 'same-verdict'\n",
            {"anisotropy", "drift_norm", "mean_norm", "drift_share", "centered_anisotropy"},
        ),
        ('"default"', LIMIT, set(default_metrics())),
    ],
)
def test_the_checks_metrics_are_measured_beside_those_asked_for(
    project: Project, metrics: str, checks: str, expected: set[str]
) -> None:
    asked(project, metrics, checks + "[checks.more]\nmetric = 'anisotropy'\nbaseline = {}\n")
    project.record()
    assert set(measured(project)) == expected | {"anisotropy"}
    assert measured(project) == sorted(measured(project)), "as every key of a baseline"


def test_a_check_has_its_metric_measured_though_it_is_no_default(project: Project) -> None:
    assert "effective_rank" not in default_metrics()
    asked(project, '"default"', "[checks.effective_rank]\nbaseline = {}\nlayers = '1'\n")
    project.record()
    assert set(measured(project)) == {*default_metrics(), "effective_rank"}


def test_a_run_may_ask_for_all_of_them(project: Project) -> None:
    """More is measured than the baseline holds, and the same is judged."""
    asked(project, "[]", LIMIT + "[checks.anisotropy]\nbaseline = {}\n")
    project.record()
    assert project.run("--isotest-metrics", "all", "--isotest-json", "all.json").ret == 0
    document = json.loads((project.path / "all.json").read_bytes())
    (entry,) = document["entries"]
    assert set(entry["profile"]["curves"]) == set(all_metrics())
    # Eight dimensions hold no more than eight directions, of isotropic data nearly all of them.
    assert all(7 < value <= 8 for value in entry["profile"]["isotropic"]["effective_rank"])


def test_another_choice_is_another_measurement(project: Project) -> None:
    """The cache must not answer with a profile that lacks what is asked for now."""
    checks = LIMIT + "[checks.anisotropy]\nbaseline = {}\n"
    asked(project, "[]", checks)
    project.record()
    project.baseline().unlink()
    asked(project, '["massive"]', checks)
    project.record()
    assert "massive" in measured(project)


def test_an_unknown_metric_is_named_with_its_line(project: Project) -> None:
    asked(project, '["anisotropy", "massiv"]', LIMIT)
    result = project.run()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["suites/tiny.toml:*: unknown metric 'massiv'; did you mean 'mas*"])
