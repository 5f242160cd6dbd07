"""From decoded images to a model's input, with every step in the protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.feed import PlainFeed
from isotest.models.feeds import input_name
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PIL.Image import Image
    from torch import Tensor, nn

    from isotest.models.feeds import FeedRequest
    from isotest.models.loaded import Feed, Preprocess

# PIL's nearest is torch's "nearest-exact": the pixel whose centre is closest.
INTERPOLATIONS = {"nearest": "nearest-exact", "bilinear": "bilinear", "bicubic": "bicubic"}
KEYS = ("size", "resize", "interpolation", "mean", "std", "channels")
_DEFAULT_SIZE = 224
_MAX_PIXELS = 89_478_485  # as Pillow: no image that it decodes has more


@dataclass(frozen=True)
class ImagePreprocess:
    """Resize, crop, scale to 0 … 1, normalise: what image models share.

    An image that already has the target size is neither resized nor cropped, so that samples which
    were stored at that size give the same numbers on every machine.

    Attributes:
        size: (height, width) of the input.
        resize: length of the shorter edge before the centre is cut out; ``None`` stretches the
            image to ``size``.
        interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``, with antialiasing.
        mean: subtracted, a channel each, on the scale 0 … 1.
        std: divided by, a channel each.
        channels: 3 for RGB, 1 for luma (ITU-R 601).
        input_name: keyword of the model's forward pass.

    >>> from PIL import Image
    >>> prepare = ImagePreprocess(size=(2, 2))
    >>> prepare([Image.new("RGB", (2, 2), (255, 0, 0))])["pixel_values"][0, :, 0, 0].tolist()
    [1.0, -1.0, -1.0]
    """

    size: tuple[int, int] = (_DEFAULT_SIZE, _DEFAULT_SIZE)
    resize: int | None = None
    interpolation: str = "bilinear"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    channels: int = 3
    input_name: str = "pixel_values"

    def __call__(self, images: Sequence[Image]) -> Mapping[str, Tensor]:
        """Decoded images to one batch: float32, (batch, channels, height, width)."""
        import torch
        from torchvision.transforms.v2 import functional

        batch = torch.stack([self._sized(image) for image in images]).to(torch.float32) / 255
        normalised = functional.normalize(batch, list(self.mean), list(self.std))
        return {self.input_name: normalised}

    def _sized(self, image: Image) -> Tensor:
        from torchvision.transforms.v2 import InterpolationMode, functional

        colours = "L" if self.channels == 1 else "RGB"
        pixels: Tensor = functional.pil_to_tensor(
            image if image.mode == colours else image.convert(colours)
        )
        if tuple(pixels.shape[-2:]) == self.size:
            return pixels
        target = list(self.size) if self.resize is None else [self.resize]
        mode = InterpolationMode(INTERPOLATIONS[self.interpolation])
        pixels = functional.resize(pixels, target, interpolation=mode, antialias=True)
        return pixels if self.resize is None else functional.center_crop(pixels, list(self.size))

    def describe(self) -> dict[str, str | int | float]:
        """The protocol's description; equal for equal steps, wherever they were configured."""
        return {
            "size": "x".join(map(str, self.size)),
            "resize": "stretch" if self.resize is None else f"shorter edge to {self.resize}",
            "interpolation": self.interpolation,
            "mean": " ".join(map(repr, self.mean)),
            "std": " ".join(map(repr, self.std)),
            "channels": self.channels,
        }


def image_feed(request: FeedRequest) -> Feed:
    """How images become inputs of a module.

    In this order: what the source brought itself; the suite's ``preprocess`` (complete in itself:
    it replaces the folder's); the image processor in the folder; timm's data configuration of the
    model; ``image_size`` and ``num_channels`` of its configuration, else 224 and 3, normalised to
    -1 … 1.

    Raises:
        SourceError: an unknown key or a malformed value, or a damaged ``preprocessor_config.json``.
    """
    from PIL import Image

    grey = Image.new("RGB", (_DEFAULT_SIZE, _DEFAULT_SIZE), (128, 128, 128))
    return PlainFeed(_preprocess_of(request), grey)


def _preprocess_of(request: FeedRequest) -> Preprocess:
    what, overrides, folder = request.what, request.overrides, request.folder
    if request.brought is not None:
        if overrides:
            raise SourceError(
                f"source {what!r}: it brings its own preprocessing; remove 'preprocess' from the "
                "suite entry"
            )
        return request.brought
    configured = _configured(request.module, input_name(request.module), what)
    if overrides:
        configured = _overridden(configured, overrides, what)
    elif folder is not None and (folder / "preprocessor_config.json").is_file():
        from isotest.models.processor import folder_processor

        return folder_processor(folder, configured.channels, what)
    require_decodable(*configured.size, what)
    require_decodable(configured.resize or 1, configured.resize or 1, what)
    return configured


def require_decodable(height: int, width: int, what: str) -> None:
    """Refuse to make images larger than any that Pillow would decode.

    Raises:
        SourceError: more pixels than that.
    """
    if height * width > _MAX_PIXELS:
        raise SourceError(
            f"source {what!r}: expected its images to be resized to at most {_MAX_PIXELS} pixels, "
            f"found {height}x{width}"
        )


def _configured(module: nn.Module, name: str, what: str) -> ImagePreprocess:
    if isinstance(getattr(module, "pretrained_cfg", None), dict):
        return _of_timm(module, name)
    config = getattr(module, "config", None)
    channels = getattr(config, "num_channels", 3)
    if channels not in (1, 3):
        raise SourceError(
            f"source {what!r}: expected a model of 1 or 3 channels, found num_channels = {channels}"
        )
    return ImagePreprocess(
        size=_pair(getattr(config, "image_size", None) or _DEFAULT_SIZE),
        mean=(0.5,) * channels,
        std=(0.5,) * channels,
        channels=channels,
        input_name=name,
    )


def _of_timm(module: nn.Module, name: str) -> ImagePreprocess:
    import timm.data

    resolve: Any = timm.data
    data = resolve.resolve_model_data_config(module)
    channels, height, width = data["input_size"]
    # The data configuration is that of the pretrained weights; the model may have been built for
    # another size.
    height, width = getattr(getattr(module, "patch_embed", None), "img_size", None) or (
        height,
        width,
    )
    crop = data["crop_mode"] != "squash"
    return ImagePreprocess(
        size=(height, width),
        resize=int(min(height, width) / data["crop_pct"]) if crop else None,
        interpolation=data["interpolation"],
        mean=_per_channel(data["mean"], channels),
        std=_per_channel(data["std"], channels),
        channels=channels,
        input_name=name,
    )


def _overridden(
    configured: ImagePreprocess, overrides: Mapping[str, object], what: str
) -> ImagePreprocess:
    for key in overrides:
        if key not in KEYS:
            raise SourceError(
                f"source {what!r}: preprocess: unknown key {key!r}{did_you_mean(key, KEYS)}"
            )

    def refuse(key: str, expected: str) -> SourceError:
        return SourceError(
            f"source {what!r}: preprocess: expected {key} to be {expected}, "
            f"found {overrides[key]!r}"
        )

    changes: dict[str, Any] = {}
    channels = overrides.get("channels", configured.channels)
    if channels not in (1, 3) or isinstance(channels, bool):
        raise refuse("channels", "1 or 3")
    changes["channels"] = channels
    if "size" in overrides:
        if not _is_size(overrides["size"]):
            raise refuse("size", "pixels, or [height, width]")
        # A new size says nothing of a crop, and half a crop would be a surprise: stretch.
        changes |= {"size": _pair(overrides["size"]), "resize": None}
    if "resize" in overrides:
        edge = overrides["resize"]
        if not _is_length(edge) or edge < max(changes.get("size", configured.size)):
            raise refuse("resize", "a length of the shorter edge that the size fits into")
        changes["resize"] = edge
    if "interpolation" in overrides:
        if overrides["interpolation"] not in INTERPOLATIONS:
            raise refuse("interpolation", f"one of {', '.join(INTERPOLATIONS)}")
        changes["interpolation"] = overrides["interpolation"]
    for key in ("mean", "std"):
        values = overrides.get(key, getattr(configured, key))
        try:
            changes[key] = _per_channel(values, int(str(channels)))
        except (TypeError, ValueError):
            raise refuse(key, f"a number, or {channels} of them, a channel each") from None
    if not all(value > 0 for value in changes["std"]):
        raise refuse("std", "positive")
    return replace(configured, **changes)


def _is_length(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_size(value: object) -> bool:
    if isinstance(value, list | tuple):
        return len(value) == 2 and all(_is_length(item) for item in value)
    return _is_length(value)


def _pair(size: Any) -> tuple[int, int]:
    """(height, width) of a square's edge or of a pair."""
    return (int(size), int(size)) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _per_channel(values: Any, channels: int) -> tuple[float, ...]:
    """One finite number a channel; one number stands for all, RGB's mean for grey.

    Raises:
        ValueError: another count, or a number that is not finite.
    """
    numbers = [values] if isinstance(values, int | float) else list(values)
    floats = [float(number) for number in numbers]
    if not all(abs(number) < float("inf") for number in floats):
        raise ValueError
    if len(set(floats)) == 1:
        return (floats[0],) * channels
    if len(floats) != channels:
        raise ValueError
    return tuple(floats)
