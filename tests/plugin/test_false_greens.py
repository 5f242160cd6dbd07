"""What other gates let through, from the outside: each of these runs must not be green."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.profile_json import read_profile, write_profile
from isotest.reproduction import reproduces
from tests.plugin.project import RESNET, VIT, hub, net

if TYPE_CHECKING:
    from collections.abc import Callable

    from isotest.profile import Profile
    from tests.plugin.project import Project

# The same architecture as ``net``, with other numbers.
VARIANTS = """

def louder():
    model = Net()
    model.norm.weight.data.mul_(10)
    return model


def drifted(size=3.0):
    model = Net()
    model.stem.bias.data.add_(size)
    return model


def spread():
    return drifted(-0.5)
"""


def test_a_test_of_a_profile_does_not_pass_without_the_flag(project: Project) -> None:
    project.suite(name="a")
    project.write("suites/test_it.py", "def test_it(isotest_profile): pass")
    result = project.plain("suites/test_it.py")
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    assert "run it with --isotest (a test like this must not pass unmeasured)" in str(result.stdout)
    result = project.run("suites/test_it.py")
    result.assert_outcomes(passed=1)


def test_a_missing_baseline_is_red_and_the_message_makes_one(project: Project) -> None:
    project.suite()
    red = project.run()
    assert red.ret == 1
    red.assert_outcomes(failed=1, passed=3)
    red.stdout.fnmatch_lines(["*tiny.toml::net::anisotropy*baselines/tiny/net.json*"])
    command = "pytest --isotest suites/tiny.toml::net --isotest-update=missing"
    red.stdout.fnmatch_lines([f"*record one: {command}"])
    assert project.baselines() == {}, "a gate never writes"
    assert project.plain(*command.split()[1:]).ret == 0
    assert project.run().ret == 0


@pytest.mark.parametrize("limit", ["max = nan", "min = nan", "baseline = { margin = nan }"])
def test_a_nan_in_a_demand_is_refused(project: Project, limit: str) -> None:
    project.suite(checks=f"[checks.anisotropy]\n{limit}")
    result = project.run()
    assert result.ret == 2
    result.stdout.fnmatch_lines(["suites/tiny.toml:5: *= nan: expected a finite number*"])


def without_a_layer(profile: Profile) -> Profile:
    return replace(profile, layers=profile.layers[:-1])


def without_a_metric(profile: Profile) -> Profile:
    first, *rest = profile.layers
    kept = {name: each for name, each in first.estimates.items() if name != "anisotropy"}
    return replace(profile, layers=(replace(first, estimates=kept), *rest))


@pytest.mark.parametrize(
    ("dropped", "words"),
    [(without_a_layer, "final, which the baseline lacks"), (without_a_metric, "not in the base")],
)
def test_what_the_baseline_lacks_is_red(
    project: Project, dropped: Callable[[Profile], Profile], words: str
) -> None:
    project.suite()
    project.record()
    path = project.baseline()
    write_profile(dropped(read_profile(path)), path)
    result = project.run()
    assert result.ret == 1
    assert words in str(result.stdout)


def test_a_layer_that_the_model_lost_is_red(project: Project) -> None:
    project.suite()
    project.record()
    text = (project.path / "nets.py").read_text()
    project.write("nets.py", text.replace("range(3)", "range(2)"))
    result = project.run()
    assert result.ret == 1
    assert "not comparable" in str(result.stdout)


def test_a_tenfold_rise_is_red_whichever_way_is_worse_by_default(project: Project) -> None:
    project.suite(checks="[checks.mean_norm]\nbaseline = { margin_relative = 0.1 }")
    project.write("nets.py", (project.path / "nets.py").read_text() + VARIANTS)
    project.record()
    result = project.run("--isotest-model", "net=python:nets:louder")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*tiny.toml::net::mean_norm: * layer final*"])


def test_the_sign_of_a_regression_is_that_of_the_metric(project: Project) -> None:
    """Anisotropy is worse when it rises; a suite that says ``down`` turns exactly that around."""
    project.write("nets.py", (project.path / "nets.py").read_text() + VARIANTS)
    rise = ("--isotest-model", "net=python:nets:drifted")
    project.suite(checks="[checks.anisotropy]\nbaseline = { margin = 0.02 }")
    project.record()
    assert project.run(*rise).ret == 1
    project.suite(checks='[checks.anisotropy]\nbaseline = { margin = 0.02, worse = "down" }')
    assert project.run(*rise).ret == 0


@pytest.mark.parametrize(("limit", "ret"), [("max", 1), ("min", 0)])
def test_the_sign_of_a_limit_is_as_it_reads(project: Project, limit: str, ret: int) -> None:
    """All layers of ``net`` lie between 0.01 and 0.6."""
    project.suite(checks=f"[checks.anisotropy]\n{limit} = 0.01")
    assert project.run().ret == ret


def test_limits_that_no_value_satisfies_are_refused(project: Project) -> None:
    project.suite(checks="[checks.anisotropy]\nmin = 0.9\nmax = 0.1")
    result = project.run()
    assert result.ret == 2
    assert "no value satisfies both" in str(result.stdout)


def test_two_workers_lose_no_entry(project: Project) -> None:
    """Both workers measure, one process writes, the same as a run without workers."""
    project.suite(net("a"), net("b"))
    recorded = project.distributed("--isotest-update=missing")
    assert recorded.ret == 0
    assert sorted(project.baselines()) == ["tiny/a.json", "tiny/b.json"]
    assert project.run().ret == 0
    before = [read_profile(project.baseline(name)) for name in "ab"]
    assert project.run("--isotest-update=all").ret == 0
    for name, old in zip("ab", before, strict=True):
        assert reproduces(old, read_profile(project.baseline(name))) == []


def test_the_gate_compares_with_the_baseline_and_not_with_what_it_measured(
    project: Project,
) -> None:
    project.suite()
    project.write("nets.py", (project.path / "nets.py").read_text() + VARIANTS)
    project.record()
    untouched = project.baselines()
    for options in ((), ("--isotest-update=missing",)):
        result = project.run(*options, "--isotest-model", "net=python:nets:drifted")
        assert result.ret == 1
        assert project.baselines() == untouched


def test_recording_does_not_excuse_a_limit(project: Project) -> None:
    """With ``--isotest-update`` nothing is compared with itself, and nothing red is recorded."""
    project.suite(checks="[checks.anisotropy]\nmax = 0.1\nbaseline = {}")
    result = project.run("--isotest-update=all")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*not recorded, because anisotropy did not pass"])
    assert project.baselines() == {}


def test_a_suite_whose_every_entry_is_skipped_is_red(project: Project) -> None:
    project.suite(hub(more="optional = true"))
    result = project.run()
    assert result.ret == 1
    result.assert_outcomes(skipped=2, failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*no check compared anything*found none in 1 check(s) of 1 model(s).",
            "  skipped: *isotest-tests/absent*--isotest-download",
            "  Bring what is missing, or do not run this suite here.",
        ]
    )


def test_names_that_differ_only_in_case_are_refused(project: Project) -> None:
    project.suite(net("net"), net("Net"))
    result = project.run()
    assert result.ret == 2
    result.stdout.fnmatch_lines(["suites/tiny.toml:*differ only in case*"])


def test_names_whose_slugs_coincide_have_baselines_of_their_own(project: Project) -> None:
    project.write("nets.py", (project.path / "nets.py").read_text() + VARIANTS)
    project.suite(net("a b"), net("a, b", "python:nets:drifted"), net("a-b", "python:nets:spread"))
    project.record()
    assert len(project.baselines()) == 3
    assert project.run().ret == 0


def test_two_suites_that_would_share_their_baselines_are_refused(project: Project) -> None:
    project.suite()
    (project.path / "tiny.toml").write_bytes((project.path / "suites" / "tiny.toml").read_bytes())
    result = project.run("suites/tiny.toml", "tiny.toml")
    assert result.ret == 2
    assert "shares the id 'tiny', and so its baselines, with" in str(result.stdout)


def test_a_baseline_that_nothing_compares_with_is_red(project: Project) -> None:
    project.suite(VIT, RESNET)
    project.record()
    project.suite(VIT)
    result = project.run()
    assert result.ret == 1
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["*no gated entry claims*", "*baselines/tiny/resnet.json", "*--isotest-prune"]
    )
