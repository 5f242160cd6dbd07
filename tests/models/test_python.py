"""``python:``: any module that a callable returns, and every way in which it doesn't."""

from __future__ import annotations

import pytest
from PIL import Image

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from tests.feeding import arguments

CODE = "python:tests.models.code:"


def test_a_module_that_no_library_knows() -> None:
    loaded = load_model(f"{CODE}plain")
    assert [(layer.name, layer.path) for layer in loaded.layers] == [
        ("0", "body.0"),
        ("1", "body.0"),
        ("2", "body.1"),
        ("3", "body.2"),
        ("final", "last"),
    ]
    assert {layer.kind for layer in loaded.layers} == {"tokens"}
    assert set(arguments(loaded, [Image.new("RGB", (9, 9))])) == {"image"}


def test_the_suites_configuration_becomes_arguments() -> None:
    assert len(load_model(f"{CODE}plain", config={"depth": 5}).layers) == 7


def test_a_head_model_is_observed_at_its_backbone() -> None:
    head, base = load_model(f"{CODE}head_model"), load_model(f"{CODE}vit")
    assert head.architecture == base.architecture
    assert head.layers == base.layers


def test_preprocessing_that_comes_with_the_module() -> None:
    loaded = load_model(f"{CODE}with_preprocess")
    assert loaded.feed.describe()["size"] == "16x16"


def test_convolutions_of_one_channel_need_to_be_told() -> None:
    with pytest.raises(SourceError, match=r"fails on one blank input .*3 channels instead"):
        load_model(f"{CODE}grey")
    assert load_model(f"{CODE}grey", preprocess={"channels": 1}).layers


def test_vectors_are_single_tokens() -> None:
    loaded = load_model(f"{CODE}perceptron")
    assert [(layer.name, layer.path) for layer in loaded.layers] == [
        ("0", "flatten"),
        ("1", "body.0"),
        ("2", "body.1"),
    ]
    import torch

    assert loaded.layers[0].select(torch.zeros(4, 192)).shape == (4, 1, 192)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plane", "tests.models.code has no 'plane'; did you mean 'plain'?"),
        ("zzzzzz", "tests.models.code has no 'zzzzzz'"),
        ("NOT_CALLABLE", "expected a callable, found tests.models.code:NOT_CALLABLE to be int"),
        ("raises", "tests.models.code:raises raised RuntimeError: no such luck"),
        ("a_number", "to return a torch.nn.Module, or a pair of it and its preprocessing, found i"),
        ("a_triple", "found a tuple of 3"),
        ("with_a_bad_preprocess", "to have describe() for the protocol"),
        ("no_layers", "no recognisable layers in Sequential"),
        ("no_layers", "layers = ['0', '1', '2']"),
        ("broken", "Broken fails on one blank input (image (1, 3, 224, 224)): ValueError: broken"),
        (
            "shared",
            "layer '0' (module body.0): expected it to run once in a forward pass, it ran 4",
        ),
    ],
)
def test_bad_input_is_one_clear_message(name: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(f"{CODE}{name}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("python:tests.models.code", "expected python:MODULE:FUNCTION"),
        ("python::build", "expected python:MODULE:FUNCTION"),
        ("python:tests.models.code:plain?x=1", "unknown option 'x'"),
    ],
)
def test_malformed_sources(source: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source)
    assert message in str(caught.value)


def test_a_module_that_is_not_there_is_missing() -> None:
    with pytest.raises(MissingError, match="no module named 'nonsense_zz'; install it, or put its"):
        load_model("python:nonsense_zz:build")


def test_arguments_that_the_function_does_not_take() -> None:
    with pytest.raises(SourceError, match="unexpected keyword argument 'depht'"):
        load_model(f"{CODE}plain", config={"depht": 5})


def test_own_preprocessing_and_the_suites_exclude_each_other() -> None:
    with pytest.raises(SourceError, match="brings its own preprocessing"):
        load_model(f"{CODE}with_preprocess", preprocess={"size": 32})
