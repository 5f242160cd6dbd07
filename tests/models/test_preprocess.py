"""Images to inputs: the model's own way, the suite's way, and the same words for the same steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from PIL import Image

from isotest.errors import SourceError
from isotest.models import load_model
from isotest.models.preprocess import ImagePreprocess
from tests.models.test_hidden_states import images
from tests.models.test_path import classifier
from tests.models.tiny import VIT

if TYPE_CHECKING:
    from pathlib import Path


def preprocess_of(source: str, **options: Any) -> Any:
    feed: Any = load_model(source, **options).feed
    return feed.preprocess


def vit(**preprocess: Any) -> Any:
    return preprocess_of("init:vit", config=VIT, preprocess=preprocess or None)


def test_an_image_of_the_target_size_is_not_resampled() -> None:
    (image,) = images(1)
    exact = image.resize((32, 32))
    (pixels,) = ImagePreprocess(size=(32, 32), resize=40)([exact])["pixel_values"]
    back = ((pixels * 0.5 + 0.5) * 255).round().to(torch.uint8).permute(1, 2, 0)
    assert Image.fromarray(back.numpy()).tobytes() == exact.tobytes()


def test_normalisation_by_hand() -> None:
    prepare = ImagePreprocess(size=(1, 1), mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 4.0))
    (pixel,) = prepare([Image.new("RGB", (1, 1), (255, 51, 0))])["pixel_values"].flatten(1)
    assert pixel.tolist() == pytest.approx([0.9, 0.0, -0.075])


def test_stretching_and_cropping_are_not_the_same() -> None:
    image = Image.new("RGB", (64, 32))
    image.paste((255, 255, 255), (0, 0, 16, 32))
    stretched = ImagePreprocess(size=(32, 32))([image])["pixel_values"]
    cropped = ImagePreprocess(size=(32, 32), resize=32)([image])["pixel_values"]
    assert stretched.shape == cropped.shape == (1, 3, 32, 32)
    assert stretched.max() == 1
    assert cropped.max() == -1, "the centre is black"


def test_one_channel_is_luma() -> None:
    prepare = preprocess_of("init:vit", config={**VIT, "num_channels": 1})
    red = prepare([Image.new("RGB", (32, 32), (255, 0, 0))])["pixel_values"]
    assert red.shape == (1, 1, 32, 32)
    # ITU-R 601: 0.299 of red.
    assert red[0, 0, 0, 0].item() == pytest.approx(76 / 255 * 2 - 1)


def test_the_configuration_decides_and_the_suite_overrides() -> None:
    assert vit().describe() == {
        "size": "32x32",
        "resize": "stretch",
        "interpolation": "bilinear",
        "mean": "0.5 0.5 0.5",
        "std": "0.5 0.5 0.5",
        "channels": 3,
    }
    changed = preprocess_of(
        "init:resnet",
        config={"embedding_size": 8, "hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]},
        preprocess={
            "size": [48, 64],
            "resize": 70,
            "interpolation": "bicubic",
            "mean": [0.1, 0.2, 0.3],
            "std": 1,
        },
    )
    assert changed.describe() == {
        "size": "48x64",
        "resize": "shorter edge to 70",
        "interpolation": "bicubic",
        "mean": "0.1 0.2 0.3",
        "std": "1.0 1.0 1.0",
        "channels": 3,
    }
    assert changed(images())["pixel_values"].shape == (2, 3, 48, 64)


@pytest.mark.parametrize(
    ("preprocess", "message"),
    [
        ({"siez": 3}, "unknown key 'siez'; did you mean 'size'?"),
        ({"size": 0}, "expected size to be pixels, or [height, width], found 0"),
        ({"size": [1, 2, 3]}, "found [1, 2, 3]"),
        ({"size": True}, "found True"),
        ({"size": "big"}, "found 'big'"),
        ({"resize": 31}, "a length of the shorter edge that the size fits into, found 31"),
        ({"interpolation": "cubic"}, "one of nearest, bilinear, bicubic, found 'cubic'"),
        ({"mean": [1, 2]}, "a number, or 3 of them, a channel each, found [1, 2]"),
        ({"mean": "x"}, "found 'x'"),
        ({"std": 0}, "expected std to be positive, found 0"),
        ({"std": float("nan")}, "found nan"),
        ({"channels": 2}, "expected channels to be 1 or 3, found 2"),
    ],
)
def test_bad_input_is_one_clear_message(preprocess: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        vit(**preprocess)
    assert message in str(caught.value)


def test_a_size_that_the_model_does_not_take() -> None:
    with pytest.raises(SourceError, match=r"fails on one blank input .*64, 64.*preprocess"):
        vit(size=64)


# The processor in a folder


def processor(folder: Path, **settings: Any) -> Any:
    from transformers import ViTImageProcessor

    classifier().save_pretrained(folder)
    made = ViTImageProcessor(size={"height": 32, "width": 32}, **settings)
    made.save_pretrained(folder)
    return made


def test_a_folders_processor_is_used_as_it_is(tmp_path: Path) -> None:
    made = processor(tmp_path, image_mean=[0.1, 0.2, 0.3])
    prepare = preprocess_of(f"path:{tmp_path}")
    expected = made(images=images(), return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(prepare(images())["pixel_values"], expected, rtol=0, atol=0)


@pytest.mark.parametrize("resample", [0, 2, 3])
def test_equal_steps_have_equal_descriptions(tmp_path: Path, resample: int) -> None:
    processor(tmp_path, resample=resample)
    folder = preprocess_of(f"path:{tmp_path}")
    name = {0: "nearest", 2: "bilinear", 3: "bicubic"}[resample]
    ours = vit(interpolation=name)
    assert folder.describe() == ours.describe()
    torch.testing.assert_close(
        folder(images())["pixel_values"], ours(images())["pixel_values"], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    "setting",
    [{"do_normalize": False}, {"rescale_factor": 0.1}, {"do_center_crop": True, "crop_size": 32}],
)
def test_other_steps_have_other_descriptions(tmp_path: Path, setting: dict[str, Any]) -> None:
    processor(tmp_path, **setting)
    described = load_model(f"path:{tmp_path}").feed.describe()
    assert described != vit().describe()
    key = next(iter(setting))
    assert described[key] == setting[key]
    assert all(type(value) in (str, int, float) for value in described.values())


def test_a_processor_that_fails_is_one_clear_message(tmp_path: Path) -> None:
    processor(tmp_path, do_center_crop=True)
    with pytest.raises(SourceError, match=r"preprocessing fails on one blank input: .*crop_size"):
        load_model(f"path:{tmp_path}")


def test_the_suite_takes_a_folders_processors_place(tmp_path: Path) -> None:
    processor(tmp_path, image_mean=[0.1, 0.2, 0.3])
    loaded = load_model(f"path:{tmp_path}", preprocess={"mean": 0.25})
    assert loaded.feed.describe()["mean"] == "0.25 0.25 0.25"


def test_a_damaged_processor_is_one_clear_message(tmp_path: Path) -> None:
    processor(tmp_path)
    for text in ("{", '{"image_processor_type": "NoSuchProcessor"}'):
        (tmp_path / "preprocessor_config.json").write_text(text)
        with pytest.raises(SourceError, match=r"cannot use .*preprocessor_config\.json"):
            load_model(f"path:{tmp_path}")
        assert vit(mean=0.25)
