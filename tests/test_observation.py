"""The observer counts every position once or says why it cannot; it never leaves one out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch import nn

from isotest.data.load import as_data
from isotest.errors import MeasurementError, NonFiniteError, SourceError
from isotest.measurement import measure_loaded
from isotest.models import load_model
from isotest.models.feed import PlainFeed
from isotest.models.loaded import Inputs, LoadedModel, ObservedLayer, Piece, Positions
from isotest.models.reading import Reading
from isotest.models.select import first
from isotest.observation import Observer
from tests.models.text.families import CANINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

WIDTH = 4
CODE = "python:tests.test_observation:"


class Net(nn.Module):
    """Ids to vectors, two parts, a pooled vector; ``plan`` says how often each part runs."""

    def __init__(self, plan: Sequence[str] = ("first", "second")) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Embedding(10, WIDTH)
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.pool = nn.Linear(WIDTH, WIDTH)
        self.plan = list(plan)
        self.forgiving = False

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        x: Tensor = self.stem(input_ids)
        for name in self.plan:
            try:
                x = getattr(self, name)(x)
            except Exception:
                if not self.forgiving:
                    raise
        out: Tensor = self.pool(x.mean(1))
        return out


@dataclass
class Rows:
    """A feed of rows of ids, 0 for padding and 1 for a special token."""

    streams: Mapping[str, Callable[[Tensor], Tensor]] = field(
        default_factory=lambda: {"tokens": lambda ids: ids}
    )

    def batch(self, pieces: Sequence[Piece]) -> Inputs:
        rows = torch.tensor([piece.content for piece in pieces])
        cut = {stream: change(rows) for stream, change in self.streams.items()}
        return Inputs(
            {"input_ids": rows},
            {stream: Positions(ids != 0, ids == 1) for stream, ids in cut.items()},
        )


def layer(name: str, path: str | None = None, **options: Any) -> ObservedLayer:
    options = {"select": first, "kind": "tokens", "stream": "tokens", **options}
    return ObservedLayer(name, path or name, **options)


def model(module: nn.Module, *layers: ObservedLayer, feed: Any = None) -> LoadedModel:
    return LoadedModel(
        module=module.eval(),
        layers=layers,
        feed=cast("Any", Rows() if feed is None else feed),
        architecture={},
        weights="",
        commit=None,
        versions={},
        default_representation="positions",
    )


class Recorder:
    """Keeps what a layer's statistics are handed."""

    def __init__(self) -> None:
        self.rows: list[Tensor] = []

    def update(self, x: Tensor, units: Tensor, mask: Tensor | None = None) -> None:
        kept = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        self.rows += [row[keep] for row, keep in zip(x.clone(), kept, strict=True)]

    @property
    def counts(self) -> list[int]:
        return [len(row) for row in self.rows]


def observe(
    loaded: LoadedModel,
    *batches: list[list[int]],
    representation: Any = "positions",
    special_tokens: Any = "exclude",
) -> dict[str, Recorder]:
    """Run batches of rows of ids."""
    found = {each.name: Recorder() for each in loaded.layers}
    observer = Observer(loaded, cast("Any", found), representation, special_tokens, "net")
    with observer.hooked() as run:
        for number, rows in enumerate(batches):
            run([Piece(k, f"row {number}.{k}", row) for k, row in enumerate(rows)])
    return found


def refusal(loaded: LoadedModel, *batches: list[list[int]], **options: Any) -> str:
    with pytest.raises(MeasurementError) as caught:
        observe(loaded, *batches, **options)
    return str(caught.value)


FULL = [[2, 3, 4], [5, 6, 7]]
PADDED = [[1, 2, 3, 4], [1, 5, 0, 0]]


def test_what_counts_is_observed_where_it_is() -> None:
    net = Net()
    loaded = model(net, layer("0", "stem"), layer("1", "first"), layer("2", "second"))
    for special, kept in (("exclude", [[1, 2, 3], [1]]), ("include", [[0, 1, 2, 3], [0, 1]])):
        found = observe(loaded, PADDED, special_tokens=special)
        stem = net.stem(torch.tensor(PADDED))
        for x, name in ((stem, "0"), (net.first(stem), "1"), (net.second(net.first(stem)), "2")):
            for row, own, positions in zip(found[name].rows, x, kept, strict=True):
                torch.testing.assert_close(row, own[positions], rtol=0, atol=0)


def test_hooks_are_gone_whatever_happened() -> None:
    net = Net()
    observe(model(net, layer("1", "first")), FULL)
    refusal(model(net, layer("1", "first", stream="absent")), FULL)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())


@pytest.mark.parametrize("representation", ["positions", "flattened"])
@pytest.mark.parametrize(
    ("plan", "calls", "message"),
    [
        (["first"], 1, "row 0.0 … row 0.1): these layers did not run as often as expected: "),
        (["first"], 1, "expected: 2 (second, 0 of 1 times); name the layers to observe"),
        (["second"], 2, "expected: 2 (second, 1 of 2 times); name the layers"),
        (["second"] * 3, 2, "layer 2 (second): its module ran more often than expected (2) in"),
        (["second"] * 2, 1, "layer 2 (second): its module ran more often than expected (1) in"),
    ],
)
def test_a_layer_that_runs_more_or_less_often(
    plan: list[str], calls: int, message: str, representation: Any
) -> None:
    loaded = model(Net(plan), layer("0", "stem"), layer("2", "second", calls=calls))
    assert message in refusal(loaded, FULL, representation=representation)


def test_a_layer_that_once_does_not_run() -> None:
    net = Net()
    loaded = model(net, layer("2", "second"))
    found = Recorder()
    with Observer(loaded, cast("Any", {"2": found}), "positions", "exclude", "net").hooked() as run:
        run([Piece(0, "one", [2, 3])])
        net.plan = ["first"]
        with pytest.raises(MeasurementError, match=r"batch 1 \(two\): these layers did not run"):
            run([Piece(1, "two", [2, 3])])


def test_each_call_of_a_shared_module_is_a_layer_of_its_own() -> None:
    net = Net(["first"] * 3)
    layers = [layer(str(k + 1), "first", call=k, calls=3) for k in (0, 1, 2)]
    found = observe(model(net, *layers), FULL)
    x = net.stem(torch.tensor(FULL))
    for name in "123":
        x = net.first(x)
        torch.testing.assert_close(torch.stack(found[name].rows), x, rtol=0, atol=0)


def test_a_module_may_be_two_layers() -> None:
    """One under two names, one by what enters and what leaves it."""
    net = Net()
    found = observe(
        model(net, layer("a", "first"), layer("b", "first"), layer("in", "first", side="input")),
        FULL,
    )
    assert torch.equal(torch.stack(found["a"].rows), torch.stack(found["b"].rows))
    stem = net.stem(torch.tensor(FULL))
    torch.testing.assert_close(torch.stack(found["in"].rows), stem, rtol=0, atol=0)


def test_a_mask_of_another_length() -> None:
    """Even where it masks nothing: it is then the mask of something else."""
    loaded = model(Net(), layer("1", "first"), feed=Rows({"tokens": lambda ids: ids[:, :2]}))
    for rows in (FULL, PADDED):
        assert (
            f"layer 1 (first): expected 2 positions, as in the mask of its inputs, found "
            f"{len(rows[0])}; name the layers"
        ) in refusal(loaded, rows)


def test_a_stream_without_positions() -> None:
    loaded = model(Net(), layer("1", "first", stream="molecules"))
    assert (
        "layer 1 (first): nothing says which of its positions (molecules) are padding"
        in refusal(loaded, FULL)
    )


@pytest.mark.parametrize(
    ("rows", "special", "origin", "message"),
    [
        (
            [[1, 2, 3], [1, 1, 0]],
            "exclude",
            "row 1.1",
            "are padding or special there; leave out inputs this short, or use special_tokens = 'i",
        ),
        ([[0, 0], [2, 3]], "include", "row 1.0", "are padding there; leave out inputs this short"),
    ],
)
def test_a_sequence_of_which_nothing_counts_is_named(
    rows: list[list[int]], special: str, origin: str, message: str
) -> None:
    loaded = model(Net(), layer("1", "first"))
    assert refusal(loaded, FULL, rows, special_tokens=special).startswith(
        "model 'net', layer 1 (first), batch 1: expected something of each input to measure, found "
        f"that all positions of {origin} {message}"
    )
    if special == "exclude":
        found = observe(loaded, FULL, rows, special_tokens="include")
        assert found["1"].counts == [3, 3, 3, 2]


def test_a_layer_of_nothing_but_prefix_tokens() -> None:
    loaded = model(Net(), layer("1", "first", stream="", prefix=3))
    assert "all positions of row 0.0 are padding or special there" in refusal(loaded, FULL)
    assert observe(loaded, FULL, special_tokens="include")["1"].counts == [3, 3]


def test_a_text_too_short_for_a_molecule() -> None:
    """Two characters with CLS and SEP are four: CANINE attends to its CLS molecule alone."""
    loaded = load_model(
        "init:canine", modality="text", reading=Reading(packing="documents"), config=CANINE
    )
    texts = as_data(["long enough", "no"], "text")
    with pytest.raises(MeasurementError, match=r"layer molecules\.0 .*texts, item 1 are padding"):
        measure_loaded(loaded, texts, source="", model="m", modality="text")
    profile = measure_loaded(
        loaded, texts, source="", model="m", modality="text", special_tokens="include"
    )
    assert {layer.name: layer.representations for layer in profile.layers}["molecules.0"] == 4 + 1


def test_flattened_needs_inputs_without_padding() -> None:
    loaded = model(Net(), layer("1", "first"))
    for special in ("include", "exclude"):
        assert "flattened representations need inputs without padding or special" in refusal(
            loaded, PADDED, representation="flattened", special_tokens=special
        )
    found = observe(loaded, FULL, representation="flattened")
    assert [row.shape for row in found["1"].rows] == [(1, 3 * WIDTH)] * 2


def test_a_tensor_of_other_dimensions() -> None:
    loaded = model(Net(), layer("p", "pool"))
    assert (
        "layer p (pool): expected a tensor (batch, length, width), found (2, 4); name the layers"
        in refusal(loaded, FULL)
    )


def test_one_row_for_each_input() -> None:
    class Halved(Net):
        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
            return super().forward(input_ids[:1])

    loaded = model(Halved(), layer("1", "first"))
    assert "expected one row per input (2), found shape (1, 3, 4)" in refusal(loaded, FULL)


def test_nan_counts_where_positions_count() -> None:
    net = Net()
    with torch.no_grad():
        net.stem.weight[0] = float("nan")
        net.stem.weight[9] = float("nan")
    loaded = model(net, layer("0", "stem"))
    # At padding it changes nothing.
    data = as_data(["x", "y"], "text")

    class Fed(Rows):
        def __init__(self, *rows: list[int]) -> None:
            super().__init__()
            self.rows = rows

        def pieces(self, samples: Any, *, grouped: bool) -> Any:
            for sample, row in zip(samples, self.rows, strict=True):
                yield Piece(sample.unit, sample.origin, row)

        def together(self, first: Piece, other: Piece) -> bool:
            return True

        def describe(self) -> dict[str, str]:
            return {}

    fine = replace(loaded, feed=cast("Any", Fed([2, 3, 0], [4, 5, 6])))
    profile = measure_loaded(fine, data, source="", model="net", modality="text")
    assert profile.layers[0].representations == 5
    bad = replace(loaded, feed=cast("Any", Fed([2, 3, 0], [4, 9, 6])))
    with pytest.raises(NonFiniteError, match=r"layer 0 \(stem\), batch 0 .*4 NaN among"):
        measure_loaded(bad, data, source="", model="net", modality="text")


def test_a_mask_that_overflows_in_another_dtype_is_hinted_at() -> None:
    """CANINE's local attention in float64: NaN is the library's, and float32 has none."""
    for dtype in ("float32", "float64"):
        loaded = load_model("init:canine", modality="text", config=CANINE, dtype=dtype)
        data = as_data(["some letters of a text " * 8], "text")
        fault = None
        try:
            measure_loaded(loaded, data, source="", model="net", modality="text")
        except NonFiniteError as error:
            fault = str(error)
        assert (fault is None) == (dtype == "float32")
    assert str(fault).endswith("finite; this is float64: see whether float32 has it")


def test_a_fault_that_the_model_swallows_is_still_one() -> None:
    net = Net()
    net.forgiving = True
    loaded = model(net, layer("1", "first", stream="molecules"))
    assert "nothing says which of its positions" in refusal(loaded, FULL)


# What `python:` sources bring: a model and how its inputs are made.


class Letters:
    """Texts as ids of letters, padded; ``masks`` says whether it tells what is padding."""

    def __init__(self, *, masks: bool = True) -> None:
        self.masks = masks

    def __call__(self, contents: Sequence[str]) -> dict[str, Tensor]:
        longest = max(map(len, contents))
        rows = [[2 + ord(c) % 8 for c in text] + [0] * (longest - len(text)) for text in contents]
        ids = torch.tensor(rows)
        return {"input_ids": ids} | ({"attention_mask": ids.sign()} if self.masks else {})

    def describe(self) -> dict[str, str]:
        return {"letters": "modulo 8"}


def net_of_letters() -> tuple[nn.Module, Letters]:
    return Net(), Letters()


def load_letters(**layers: str) -> LoadedModel:
    return load_model(
        f"{CODE}net_of_letters", modality="text", layers=layers or {"0": "stem", "1": "second"}
    )


TEXTS = ["a", "a few", "some more letters"]


def test_a_mask_that_preprocessing_brings_is_honoured() -> None:
    """Here no position sees another, so padded and single texts have the same numbers."""
    loaded = load_letters()
    assert isinstance(loaded.feed, PlainFeed)
    profiles = [
        measure_loaded(
            loaded, as_data(TEXTS, "text"), source="", model="m", modality="text", batch_size=size
        )
        for size in (1, 3)
    ]
    letters = sum(map(len, TEXTS))
    for one, three in zip(profiles[0].layers, profiles[1].layers, strict=True):
        assert one.representations == three.representations == letters
        for metric in one.estimates.keys() - {"duplicate_share"}:  # bit by bit: see test_padding
            value = three.estimates[metric].value
            assert one.estimates[metric].value == pytest.approx(value, rel=1e-5)


def test_without_a_mask_padding_would_count() -> None:
    loaded = replace(load_letters(), feed=PlainFeed(Letters(masks=False), "x"))
    profile = measure_loaded(
        loaded, as_data(TEXTS, "text"), source="", model="m", modality="text", batch_size=3
    )
    assert profile.layers[0].representations == 3 * len(TEXTS[-1])


class Lists(Letters):
    """What a tokenizer returns unless it is asked for tensors."""

    def __call__(self, contents: Sequence[str]) -> dict[str, Any]:
        return {"input_ids": super().__call__(contents)["input_ids"].tolist()}


def net_of_lists() -> tuple[nn.Module, Lists]:
    return Net(), Lists()


def test_preprocessing_makes_tensors() -> None:
    with pytest.raises(SourceError) as caught:
        load_model(f"{CODE}net_of_lists", modality="text", layers={"0": "stem"})
    assert str(caught.value) == (
        "preprocessing (Lists): expected tensors as the model's inputs, found 'input_ids' to be "
        "list"
    )


def test_a_pooled_vector_is_never_padding() -> None:
    """The mask is for layers as long as the inputs."""
    loaded = load_letters(tokens="stem", pooled="pool")
    profile = measure_loaded(
        loaded, as_data(TEXTS, "text"), source="", model="m", modality="text", batch_size=3
    )
    counts = {layer.name: layer.representations for layer in profile.layers}
    assert counts == {"tokens": sum(map(len, TEXTS)), "pooled": 3}
