"""A marked test is an item for each property, and no item is green unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

# The runs happen in this process, and forget what they import: what is here already stays.
import isotest.plugin.blocks  # noqa: F401
from isotest.testing.properties import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = """
import unittest

import pytest
from torch import nn

from isotest.testing import parametrize_with_properties


class Leak(nn.Module):
    def forward(self, x):
        return x + 0.01 * x.mean(dim=1, keepdim=True)


class Good(nn.Module):
    def forward(self, x):
        return x


class Tuple(nn.Module):
    def forward(self, x):
        return x, None


def missing():
    raise FileNotFoundError("weights.bin")


"""

MARK = "@pytest.mark.isotest_block(factory={factory}, width=8, heads=2, examples=2{more})\n"
DECORATOR = "@parametrize_with_properties({factory}, width=8, heads=2, examples=2{more})\n"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    def run(code: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_block=BLOCKS + code)
        return pytester.runpytest_inprocess("-pno:cacheprovider", "-rA", *arguments)

    return run


@pytest.mark.parametrize("way", [MARK, DECORATOR])
def test_each_property_is_an_item_and_the_violated_one_fails(
    run: Callable[..., pytest.RunResult], way: str
) -> None:
    """The body is empty, and the item fails all the same."""
    result = run(way.format(factory="Leak", more=", causal=True") + "def test_leak(): pass")
    assert result.ret == 1
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert sum(outcomes.values()) == len(PROPERTIES) + 1
    result.stdout.fnmatch_lines(
        [
            "*causal: other tokens from position 1 on changed what comes before*",
            "again: check_block(Leak, width=8, heads=2, causal=True, *",
            "FAILED test_block.py::test_leak[[]causal[]] - *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("way", [MARK, DECORATOR])
def test_what_does_not_apply_is_skipped_with_its_reason(
    run: Callable[..., pytest.RunResult], way: str
) -> None:
    result = run(way.format(factory="Good", more="") + "def test_good(): pass")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "PASSED test_block.py::test_good[[]constant_rows[]]",
            "PASSED test_block.py::test_good[[]any[]]",
        ]
    )
    result.stdout.fnmatch_lines(["SKIPPED*masked_keys does not apply: *"])


def test_nothing_shown_is_red(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        MARK.format(factory="Good", more=', causal=False, properties=["causal"]')
        + "def test_good(): pass"
    )
    result.assert_outcomes(skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*any: no property could be shown to hold*"])


def test_a_block_that_cannot_be_tried_is_red_and_says_why(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(
        MARK.format(factory="Tuple", more=', properties=["deterministic"]') + "def test_it(): pass"
    )
    result.assert_outcomes(skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*could be shown to hold (shape: forward returned a tuple of 2*"])


def test_a_factory_that_raises_fails_each_item_in_a_line(
    run: Callable[..., pytest.RunResult],
) -> None:
    result = run(
        MARK.format(factory="missing", more=', properties=["shape"]') + "def test_it(): pass"
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["missing, called without arguments, raised FileNotFoundError: *"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_body_runs_and_gets_the_outcome(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        MARK.format(factory="Good", more=', properties=["shape"]')
        + "def test_it(isotest_property):\n    assert not isotest_property.outcome.text"
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*on 7 batches*"])


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("factory=Good, width=8", "*isotest_block: missing a required argument: 'heads'*"),
        ("factory=Good, width=8, heads=3", "*isotest_block: expected heads that divide*"),
        ("factory=Good, width=8, heads=2, casual=True", "*isotest_block: *'casual'*"),
        (
            "factory=Good, width=8, heads=2, properties=['casual']",
            "*isotest_block: no property is named 'casual'; did you mean 'causal'?*",
        ),
    ],
)
def test_wrong_arguments_are_a_fault_of_collection(
    run: Callable[..., pytest.RunResult], mark: str, says: str
) -> None:
    result = run(f"@pytest.mark.isotest_block({mark})\ndef test_it(): pass")
    assert result.ret == 2
    result.stdout.fnmatch_lines([says])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_two_blocks_on_one_test_are_a_fault(run: Callable[..., pytest.RunResult]) -> None:
    mark = MARK.format(factory="Good", more="")
    result = run(f"{mark}{mark}def test_it(): pass")
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*expected one mark isotest_block, found 2*"])


def test_where_pytest_cannot_make_items_the_mark_is_red(
    run: Callable[..., pytest.RunResult],
) -> None:
    """unittest's methods cannot be parametrized: the mark would do nothing, and all be green."""
    mark = MARK.format(factory="Leak", more="")
    result = run(f"class TestIt(unittest.TestCase):\n    {mark}    def test_it(self): pass")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the mark isotest_block needs a plain test function*"])


def test_methods_and_other_parameters(run: Callable[..., pytest.RunResult]) -> None:
    mark = MARK.format(factory="Good", more=', properties=["shape", "causal"]')
    result = run(
        f"class TestIt:\n    {mark}    @pytest.mark.parametrize('n', [1, 2])\n"
        "    def test_it(self, n): pass"
    )
    result.assert_outcomes(passed=6)


def test_the_mark_is_known(run: Callable[..., pytest.RunResult]) -> None:
    result = run("def test_it(): pass", "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.isotest_block(factory, [*], width, heads, *"])


def test_workers_collect_the_same(run: Callable[..., pytest.RunResult]) -> None:
    pytest.importorskip("xdist")
    code = MARK.format(factory="Good", more=', properties=["shape"]') + "def test_it(): pass"
    run(code, "-n1").assert_outcomes(passed=2)
