"""Every label against an independent reference, and what is drawn against what is said of it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull as Quickhull

from isotest.blocks.tasks.convex_hull import ConvexHull, turns_left, vertices
from isotest.blocks.tasks.memorization import Memorization, sentences, words
from isotest.blocks.tasks.sorting import Sorting
from isotest.blocks.tasks.task import TASKS
from isotest.data import open_data
from isotest.errors import SourceError

if TYPE_CHECKING:
    from isotest.blocks.tasks.examples import Examples
    from isotest.blocks.tasks.task import Task

DRAWN: list[Task] = [Sorting(), ConvexHull()]


def same(a: Examples, b: Examples) -> bool:
    return all(
        torch.equal(x, y)
        for x, y in ((a.inputs, b.inputs), (a.labels, b.labels), (a.valid, b.valid))
    )


def test_position_i_is_labelled_with_the_ith_smallest_symbol() -> None:
    examples = Sorting().train(seed=3)
    assert examples.inputs.shape == (1000, 8)
    for symbols, labels in zip(examples.inputs.tolist(), examples.labels.tolist(), strict=True):
        assert labels == sorted(symbols)


def test_symbols_are_uniform_and_repeat() -> None:
    inputs = Sorting().train(seed=0).inputs
    counts = inputs.flatten().bincount(minlength=10)
    # 8,000 draws of ten: 800 each, σ = 27.
    assert len(counts) == 10
    assert ((counts - 800).abs() < 5 * 27).all()
    assert any(len(set(row)) < 8 for row in inputs.tolist())


def test_vertices_are_those_of_quickhull() -> None:
    """Random points are in general position, where floating point is enough."""
    examples = ConvexHull().test(300, seed=0, repeat=0)
    assert examples.inputs.shape == (300, 10, 2)
    assert examples.inputs.dtype == torch.float32
    for points, labels in zip(examples.inputs, examples.labels, strict=True):
        hull = Quickhull(points.double().numpy())
        assert labels.nonzero().flatten().tolist() == sorted(hull.vertices.tolist())


def naive_vertices(points: list[tuple[int, int]]) -> list[bool]:
    """A point is no vertex if it lies between two others, or in a triangle of three others."""

    def cross(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    found = []
    for point in points:
        others = sorted(set(points) - {point})
        between = any(
            cross(a, b, point) == 0
            and (a[0] - point[0]) * (b[0] - point[0]) + (a[1] - point[1]) * (b[1] - point[1]) < 0
            for a, b in permutations(others, 2)
        )
        inside = any(
            cross(a, b, point) > 0 and cross(b, c, point) > 0 and cross(c, a, point) > 0
            for a, b, c in permutations(others, 3)
        )
        found.append(not (between or inside))
    return found


# Of a small grid: many points are equal, many lie on a line.
grids = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=150)
@given(grids)
def test_collinear_and_equal_points_are_judged_exactly(points: list[tuple[int, int]]) -> None:
    assert vertices(np.array(points, np.float32)).tolist() == naive_vertices(points)


@settings(deadline=None, max_examples=100)
@given(grids, st.permutations(range(8)))
def test_the_order_of_points_does_not_matter(
    points: list[tuple[int, int]], order: list[int]
) -> None:
    chosen = [place for place in order if place < len(points)]
    labels = vertices(np.array(points, np.float32))
    moved = vertices(np.array([points[place] for place in chosen], np.float32))
    assert moved.tolist() == labels[chosen].tolist()


numbers = st.floats(-100, 100, width=32)


@settings(deadline=None, max_examples=200)
@given(
    st.tuples(*[st.tuples(numbers, numbers)] * 2), st.sampled_from([0.25, 0.5, 1.0, 2.0]), st.data()
)
def test_turns_are_those_of_exact_arithmetic(
    ends: tuple[tuple[float, float], tuple[float, float]], share: float, data: st.DataObject
) -> None:
    (ax, ay), (bx, by) = ends
    # On the line through both, up to rounding, and sometimes a hair beside it.
    cx, cy = ax + share * (bx - ax), ay + share * (by - ay)
    cy = float(np.nextafter(cy, data.draw(st.sampled_from([-np.inf, cy, np.inf]))))
    exact = (Fraction(bx) - Fraction(ax)) * (Fraction(cy) - Fraction(ay)) - (
        Fraction(by) - Fraction(ay)
    ) * (Fraction(cx) - Fraction(ax))
    assert turns_left((ax, ay), (bx, by), (cx, cy)) == (exact > 0)


def test_points_fill_a_square_that_is_moved() -> None:
    examples = ConvexHull().test(2000, seed=0, repeat=0)
    points = examples.inputs.double()
    extent = points.amax(dim=1) - points.amin(dim=1)
    assert (extent <= 10.001).all()
    # The mean extent of n uniform points is (n − 1)/(n + 1) of the side.
    assert float(extent.mean()) == pytest.approx(10 * 9 / 11, abs=0.1)
    # Of a sequence's mean: 3.3² of the shift and 10²/12/10 of ten points.
    assert float(points.mean(dim=1).var(dim=0).mean()) == pytest.approx(3.3**2 + 10 / 12, rel=0.08)
    assert float(points.mean()) == pytest.approx(5, abs=0.2)


def test_as_many_points_are_vertices_as_efron_says() -> None:
    """The tenth point is a vertex unless the hull of the other nine holds it (Efron 1965)."""
    draw = np.random.default_rng(0)
    areas = [Quickhull(draw.random((9, 2))).volume for _ in range(1500)]
    share = float(ConvexHull().test(2000, seed=1, repeat=0).labels.double().mean())
    # The standard deviation of the area is 0.11, of the share in a sequence 0.12.
    assert share == pytest.approx(1 - float(np.mean(areas)), abs=4 * 0.004)


def test_sentences_are_whole_ones_of_the_sample() -> None:
    found = sentences()
    passages = [str(sample.content) for sample in open_data("sample:passages", modality="text")]
    assert len(found) == 500
    assert all(any(sentence in passage for passage in passages) for sentence in found)
    assert {sentence[-1] for sentence in found} <= {".", "?", "!"}
    lengths = [len(words(sentence)) for sentence in found]
    assert min(lengths) >= 3
    assert max(lengths) <= 128


def test_every_word_has_a_number_of_its_own_and_none_is_left_over() -> None:
    examples = Memorization().train(seed=0)
    number_of: dict[str, int] = {}
    for sentence, tokens, valid in zip(sentences(), examples.inputs, examples.valid, strict=True):
        own = tokens[valid].tolist()
        assert not tokens[~valid].any()
        for word, number in zip(words(sentence), own, strict=True):
            assert number_of.setdefault(word, number) == number
    assert sorted(number_of.values()) == list(range(len(number_of)))
    for design in ("bert", "modern"):
        assert Memorization().network_config(design).vocabulary == len(number_of)


def test_labels_are_a_fair_coin() -> None:
    examples = Memorization().train(seed=0)
    labels = examples.labels[examples.valid].double()
    assert float(labels.mean()) == pytest.approx(0.5, abs=4 * 0.5 / len(labels) ** 0.5)
    # Neither the word nor the sentence says anything: a word's labels vary as a coin's do.
    words_of = examples.inputs[examples.valid]
    commonest = words_of.bincount().argmax()
    own = labels[words_of == commonest]
    assert float(own.mean()) == pytest.approx(0.5, abs=4 * 0.5 / len(own) ** 0.5)
    assert not examples.labels[~examples.valid].any()


def test_memorization_is_given_and_not_drawn() -> None:
    task = Memorization()
    assert same(task.train(seed=0), task.train(seed=1))
    assert same(task.train(seed=0), task.test(None, seed=5, repeat=3))
    # Some of it: sentences and labels that it has learnt, others for every seed and repeat.
    known = {row_of(task.train(seed=0)[index : index + 1]) for index in range(500)}
    some = task.test(20, seed=0, repeat=0)
    rows = {row_of(some[index : index + 1]) for index in range(20)}
    assert len(rows) == 20
    assert rows <= known
    assert same(some, task.test(20, seed=0, repeat=0))
    assert not same(some, task.test(20, seed=0, repeat=1))
    assert not same(some, task.test(20, seed=1, repeat=0))
    assert same(task.train(seed=0), task.test(500, seed=1, repeat=0))
    for count in (0, 501):
        with pytest.raises(SourceError, match=rf"samples to be from 1 to 500.* found {count}$"):
            task.test(count, seed=0, repeat=0)


def row_of(one: Examples) -> tuple[int, ...]:
    return (*one.inputs[one.valid].tolist(), *one.labels[one.valid].tolist())


def test_the_ceiling_of_a_network_without_positions_is_that_of_a_table() -> None:
    examples = Memorization().train(seed=0)
    right = 0
    for tokens, labels, valid in zip(
        examples.inputs.tolist(), examples.labels.tolist(), examples.valid.tolist(), strict=True
    ):
        pairs = Counter(
            (token, label)
            for token, label, counts in zip(tokens, labels, valid, strict=True)
            if counts
        )
        right += sum(max(pairs[token, 0], pairs[token, 1]) for token in {t for t, _ in pairs})
    assert Memorization().ceiling() == right / int(examples.valid.sum())


@pytest.mark.parametrize("task", DRAWN, ids=lambda task: task.name)
def test_every_seed_and_repeat_is_a_draw_of_its_own(task: Task) -> None:
    first = task.test(20, seed=0, repeat=0)
    assert same(first, task.test(20, seed=0, repeat=0))
    for seed, repeat in ((1, 0), (0, 1), (-1, 0)):
        assert not same(first, task.test(20, seed=seed, repeat=repeat))
    learnt = task.train(seed=0)
    assert same(learnt, task.train(seed=0))
    assert not torch.equal(learnt.inputs[:20], first.inputs)


@pytest.mark.parametrize("task", DRAWN, ids=lambda task: task.name)
def test_how_many_has_to_be_said(task: Task) -> None:
    with pytest.raises(SourceError, match=f"task:{task.name}: expected samples to be a number"):
        task.test(None, seed=0, repeat=0)
    with pytest.raises(SourceError, match="at least 1, found 0"):
        task.test(0, seed=0, repeat=0)


def test_every_task_is_known_by_its_name() -> None:
    assert list(TASKS) == ["memorization", "sorting", "convex-hull"]
    assert all(task.name == name for name, task in TASKS.items())
