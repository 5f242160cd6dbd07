"""Which differences between two profiles forbid comparing their numbers, and which do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isotest.profile import LayerProfile, Profile

_SHOWN_HEX = 12


def comparable(new: Profile, base: Profile) -> list[str]:
    """Why ``new`` cannot be judged against the baseline ``base``; empty where it can.

    Modality, architecture, protocol, data, the commit, the blocks, and the layers with their widths
    must agree. Weights, device and versions may differ: they are what a gate compares across. The
    commit binds only a run of the baseline's own source, at whatever revision; another source
    stands in for it and is judged by architecture alone.

    Args:
        new: this run.
        base: the baseline.

    Returns:
        one line a difference, ``"what: the baseline …, this run …"``.
    """
    return list(_differences(new, base))


def recorded_differences(new: Profile, base: Profile) -> list[str]:
    """What differs between two profiles without forbidding their comparison: for the log.

    Args:
        new: this run.
        base: the baseline.

    Returns:
        one line a difference, of source, weights, device and versions.
    """
    ours, theirs = new.provenance, base.provenance
    return [
        *_keys("", {"source": ours.source}, {"source": theirs.source}),
        *_keys("", {"weights": ours.weights}, {"weights": theirs.weights}),
        *_keys("", {"device": ours.device}, {"device": theirs.device}),
        *_keys("version of ", ours.versions, theirs.versions),
    ]


def _differences(new: Profile, base: Profile) -> Iterator[str]:
    ours, theirs = new.provenance, base.provenance
    yield from _keys("", {"modality": new.modality}, {"modality": base.modality})
    yield from _keys("architecture, ", ours.architecture, theirs.architecture)
    yield from _keys("protocol, ", ours.protocol, theirs.protocol)
    if ours.data != theirs.data:
        yield f"data: the baseline saw {_data(base)}, this run {_data(new)}"
    if theirs.commit is not None and _repository(ours.source) == _repository(theirs.source):
        yield from _keys("", {"commit": ours.commit}, {"commit": theirs.commit})
    if new.block_sequences != base.block_sequences:
        yield (
            f"blocks: the baseline has {_blocks(base.block_sequences)}, this run "
            f"{_blocks(new.block_sequences)}"
        )
    if new.units != base.units:
        yield f"units: the baseline has {base.units} independent groups, this run {new.units}"
    yield from _layers(new.layers, base.layers)
    yield from _counts(new, base)


def _repository(source: str) -> str:
    """The source without its revision, which may name what moves."""
    return source.partition("@")[0]


def _keys(kind: str, new: Mapping[str, object], base: Mapping[str, object]) -> Iterator[str]:
    for key in sorted({*new, *base}):
        if key not in new or key not in base:
            found = [_shown(side[key]) if key in side else "nothing" for side in (base, new)]
        elif new[key] != base[key]:
            found = [_shown(base[key]), _shown(new[key])]
        else:
            continue
        yield f"{kind}{key}: the baseline has {found[0]}, this run {found[1]}"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return _short(value) if isinstance(value, str) else repr(value)


def _short(text: str) -> str:
    """A digest by its first digits, any other text in full."""
    digits = text.removeprefix("sha256:")
    is_digest = len(digits) >= 32 and all(digit in "0123456789abcdef" for digit in digits)
    return f"{digits[:_SHOWN_HEX]}…" if is_digest else repr(text)


def _data(profile: Profile) -> str:
    return f"{profile.sequences} samples {_short(profile.provenance.data)}"


def _blocks(sizes: tuple[int, ...]) -> str:
    if len(sizes) == 1:
        return f"1 block of {sizes[0]}"
    spread = f"{sizes[0]} each" if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)} each"
    return f"{len(sizes)} blocks of {spread}"


def _layers(new: tuple[LayerProfile, ...], base: tuple[LayerProfile, ...]) -> Iterator[str]:
    ours, theirs = {layer.name: layer for layer in new}, {layer.name: layer for layer in base}
    missing = [name for name in theirs if name not in ours]
    added = [name for name in ours if name not in theirs]
    if missing:
        yield f"layers: this run lacks {_listed(missing)}, which the baseline has"
    if added:
        yield f"layers: this run has {_listed(added)}, which the baseline lacks"
    if not missing and not added and list(ours) != list(theirs):
        yield f"layers: the baseline has {_listed(list(theirs))}, this run {_listed(list(ours))}"
    for name in (name for name in theirs if name in ours):
        if ours[name].width != theirs[name].width:
            yield (
                f"width of layer {name}: the baseline has {theirs[name].width}, this run "
                f"{ours[name].width}"
            )
    elsewhere = [name for name in theirs if name in ours and ours[name].at != theirs[name].at]
    if elsewhere:
        yield (
            f"N at {'layer' if len(elsewhere) == 1 else 'layers'} {_listed(elsewhere)}: the "
            f"baseline has {_places(theirs, elsewhere)}, this run {_places(ours, elsewhere)}"
        )


def _counts(new: Profile, base: Profile) -> Iterator[str]:
    """Layers with another number of representations, where the model has no say in it."""
    ours, theirs = ({layer.name: layer for layer in each.layers} for each in (new, base))
    counts: dict[tuple[str, str], list[str]] = {}
    for name in (name for name in theirs if name in ours):
        if new.decides_positions(name) and base.decides_positions(name):
            continue
        if ours[name].block_representations != theirs[name].block_representations:
            counts.setdefault((_counted(theirs[name]), _counted(ours[name])), []).append(name)
    for (before, now), names in counts.items():
        where = "layer" if len(names) == 1 else "layers"
        yield (
            f"representations at {where} {_listed(names)}: the baseline has {before}, "
            f"this run {now}"
        )


def _counted(layer: LayerProfile) -> str:
    return f"{layer.representations} in {_blocks(layer.block_representations)}"


def _places(layers: Mapping[str, LayerProfile], names: list[str]) -> str:
    return _listed(["none" if (at := layers[name].at) is None else f"{at:g}" for name in names])


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown}, … ({len(names)} in all)"
