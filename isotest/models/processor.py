"""The image processor that a model folder brings, in ``preprocessor_config.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError, one_line
from isotest.models.preprocess import ImagePreprocess, require_decodable
from isotest.models.quiet import quiet

if TYPE_CHECKING:
    from pathlib import Path

    from PIL.Image import Image
    from torch import Tensor

# What says how a processor is stored, not what it does to an image at inference.
_BOOKKEEPING = frozenset(
    {"image_processor_type", "processor_class", "feature_extractor_type", "do_reduce_labels"}
    | {"do_convert_rgb", "auto_map", "_name_or_path", "data_format", "input_data_format"}
    | {"return_tensors", "device", "disable_grouping", "default_to_square"}
)
_PIL_INTERPOLATION = {0: "nearest", 2: "bilinear", 3: "bicubic"}
_PLAIN = frozenset(
    {"do_resize", "size", "resample", "do_rescale", "rescale_factor", "do_normalize"}
    | {"image_mean", "image_std"}
)


@dataclass(frozen=True)
class FolderProcessor:
    """transformers' image processor of a folder.

    Attributes:
        processor: the library's object.
        channels: of the model; greyscale models get one luma channel.
        what: the source as text, for messages.
    """

    processor: Any
    channels: int
    what: str

    def __call__(self, images: Sequence[Image]) -> Mapping[str, Tensor]:
        """Decoded images to one batch, as the processor makes it; only what it calls pixels."""
        mode = "L" if self.channels == 1 else "RGB"
        converted = [image if image.mode == mode else image.convert(mode) for image in images]
        with quiet():
            batch = self.processor(images=converted, return_tensors="pt")
        return {"pixel_values": batch["pixel_values"]}

    def describe(self) -> dict[str, str | int | float]:
        """As :meth:`ImagePreprocess.describe` where it does just that, else its own settings."""
        settings = {
            key: value
            for key, value in self.processor.to_dict().items()
            if key not in _BOOKKEEPING and value is not None
        }
        if settings.get("do_center_crop") is False:
            settings.pop("do_center_crop")
            settings.pop("crop_size", None)
        plain = _as_plain(settings, self.channels)
        if plain is not None:
            return plain.describe()
        return {**dict(sorted(_flat(settings))), "channels": self.channels}


def folder_processor(folder: Path, channels: int, what: str) -> FolderProcessor:
    """The processor in ``folder``; only local files are read.

    Raises:
        SourceError: ``preprocessor_config.json`` is damaged, names an unknown processor, or asks
            for images larger than any that are decoded.
    """
    import transformers

    auto: Any = transformers.AutoImageProcessor

    try:
        with quiet():
            processor = auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise SourceError(
            f"source {what!r}: cannot use {folder / 'preprocessor_config.json'}: "
            f"{one_line(error)}; 'preprocess' in the suite entry takes its place"
        ) from error
    for key in ("size", "crop_size", "pad_size"):
        sides = processor.to_dict().get(key)
        if isinstance(sides, Mapping):
            edge = sides.get("shortest_edge")
            height, width = sides.get("height", edge), sides.get("width", edge)
            if isinstance(height, int) and isinstance(width, int):
                require_decodable(height, width, what)
    return FolderProcessor(processor, channels, what)


def _as_plain(settings: Mapping[str, Any], channels: int) -> ImagePreprocess | None:
    """The same steps as an :class:`ImagePreprocess`; ``None`` if it does anything else."""
    size = settings.get("size", {})
    steps = ("do_resize", "do_rescale", "do_normalize")
    if (
        set(settings) != _PLAIN
        or not all(settings[step] is True for step in steps)
        or set(size) != {"height", "width"}
        or abs(settings["rescale_factor"] - 1 / 255) > 1e-12
        or int(settings["resample"]) not in _PIL_INTERPOLATION
        or not len(settings["image_mean"]) == len(settings["image_std"]) == channels
    ):
        return None
    return ImagePreprocess(
        size=(int(size["height"]), int(size["width"])),
        interpolation=_PIL_INTERPOLATION[int(settings["resample"])],
        mean=tuple(map(float, settings["image_mean"])),
        std=tuple(map(float, settings["image_std"])),
        channels=channels,
    )


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str | int | float]]:
    flat: list[tuple[str, str | int | float]] = []
    for key, value in settings.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            flat += _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            flat.append((f"{prefix}{key}", " ".join(map(str, value))))
        elif isinstance(value, int | float):
            flat.append((f"{prefix}{key}", value if type(value) is float else int(value)))
        else:
            flat.append((f"{prefix}{key}", str(value)))
    return flat
