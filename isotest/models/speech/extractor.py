"""The feature extractor of a model: that of its folder, or the library's default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Name = Literal["Wav2Vec2FeatureExtractor", "WhisperFeatureExtractor"]

FILES = ("preprocessor_config.json", "processor_config.json")
"""Where save_pretrained writes an extractor's settings; the second holds a whole processor's."""

# The settings that decide numbers, with the largest values that are taken: tables of their size are
# made before a recording is seen. Padding is masked, or fixed (below), whatever they say of it.
_NUMBERS: dict[Name, Mapping[str, int]] = {
    "Wav2Vec2FeatureExtractor": {"sampling_rate": 192_000, "feature_size": 1},
    "WhisperFeatureExtractor": {
        "sampling_rate": 192_000,
        "feature_size": 1024,
        "hop_length": 1 << 14,
        "chunk_length": 600,
        "n_fft": 1 << 14,
    },
}
_ZERO = ("dither", "padding_value")
_LARGEST_FILE = 1 << 24


def extractor_of(
    folder: Path | None, name: Name, default: Mapping[str, int | bool], what: str
) -> Any:
    """The feature extractor ``name`` of transformers.

    Args:
        folder: where its settings may be.
        name: the class that the model's kind of input needs.
        default: its settings where the folder has none.
        what: the model source as text, for messages.

    Raises:
        SourceError: the folder's settings are damaged, or those of something else.
    """
    import transformers

    settings = _stored(folder, what)
    made: Any = getattr(transformers, name)
    if settings is None:
        return made(**default)
    assert folder is not None
    where = f"source {what!r}: the feature extractor in {folder}"
    stored_as = settings.get("feature_extractor_type", name)
    if stored_as != name:
        raise SourceError(f"{where}: expected a {name} for this model, found {stored_as!r}")
    taken: dict[str, int | bool] = {}
    for key, most in _NUMBERS[name].items():
        value = settings.get(key, default.get(key))
        if value is None:
            continue
        if type(value) is not int or not 1 <= value <= most:
            raise SourceError(
                f"{where}: expected {key!r} to be a whole number from 1 to {most}, found {value!r}"
            )
        taken[key] = value
    for key in _ZERO:
        if settings.get(key, 0) != 0:
            raise SourceError(f"{where}: expected {key!r} to be 0, found {settings[key]!r}")
    normalize = settings.get("do_normalize", True)
    if name == "Wav2Vec2FeatureExtractor":
        if type(normalize) is not bool:
            raise SourceError(
                f"{where}: expected 'do_normalize' true or false, found {normalize!r}"
            )
        taken["do_normalize"] = normalize
    return made(**taken)


def _stored(folder: Path | None, what: str) -> dict[str, Any] | None:
    """The settings in a folder; ``None`` where there are none."""
    if folder is None:
        return None
    for name in FILES:
        path = folder / name
        if not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                stored = json.loads(file.read(_LARGEST_FILE + 1)[:_LARGEST_FILE])
        except (OSError, ValueError, RecursionError) as error:
            raise SourceError(
                f"source {what!r}: {path} cannot be read ({error}); save the processor there again"
            ) from error
        if isinstance(stored, dict) and name == "processor_config.json":
            stored = stored.get("feature_extractor")
            if stored is None:
                continue
        if not isinstance(stored, dict):
            raise SourceError(
                f"source {what!r}: expected the settings of a feature extractor in {path}, found "
                f"{type(stored).__name__}; save the processor there again"
            )
        return stored
    return None
