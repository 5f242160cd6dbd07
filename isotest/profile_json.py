"""Profiles as JSON files: reading, which believes nothing, and writing, which is all or nothing."""

from __future__ import annotations

import hashlib
import json
import math
import reprlib
import stat
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import ValidationError

from isotest.atomic import write_atomically
from isotest.attention_heads import AttentionHeads
from isotest.errors import BaselineError
from isotest.estimate import Estimate
from isotest.profile import BlockProperty, LayerProfile, Profile, Provenance, SequenceBound
from isotest.profile_schema import ProfileFile, inconsistencies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from isotest.profile_schema import BoundFile

FORMAT = "isotest-profile"
FORMAT_VERSION = 2

RECORD_AGAIN = "delete it and record again with `pytest --isotest --isotest-update=missing`"

# The largest that isotest itself writes (56 layers, 25 metrics, 64 blocks) is about 2 MB.
_MAX_BYTES = 64 * 1024 * 1024


def write_profile(profile: Profile, path: Path) -> None:
    """Write ``profile`` to ``path``: the old file or the new one is there, never anything between.

    Args:
        profile: what was measured.
        path: the file; its folder must exist.

    Raises:
        BaselineError: ``profile`` holds a NaN or an infinity, or contradicts itself, or the file
            cannot be written; then ``path`` is as it was.
    """
    content = dump_profile(profile, path)
    try:
        write_atomically(content, path)
    except OSError as error:
        raise BaselineError(
            f"{path}: could not be written: {error.strerror or error}; what was there before is "
            "untouched; make the folder writable with room on its disk, then run again"
        ) from error


def read_profile(path: Path, *, remedy: str = RECORD_AGAIN) -> Profile:
    """Read a profile that anybody may have written or edited.

    Args:
        path: the file.
        remedy: what to do about a file that cannot be used; ends every message.

    Raises:
        BaselineError: the file cannot be read, is not a profile in this format, contradicts itself,
            or was changed after isotest wrote it.
    """

    def refuse(fault: str, remedy: str = remedy) -> NoReturn:
        raise BaselineError(f"{path}: {fault}; {remedy}")

    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            refuse("expected a file, found a folder or a device")
        if status.st_size > _MAX_BYTES:
            refuse(f"expected at most {_MAX_BYTES >> 20} MB, found {status.st_size >> 20} MB")
        content = path.read_bytes()
    except OSError as error:
        refuse(f"cannot be read: {error.strerror or error}")
    try:
        return load_profile(content)
    except _FormatVersionError as error:
        refuse(str(error), f"upgrade isotest, or {remedy}")
    except ValueError as error:
        refuse(str(error))


def dump_profile(profile: Profile, name: Path | str) -> bytes:
    """The text of the file: top-level keys sorted, each on a line; under ``layers`` a layer a line.

    Args:
        profile: what was measured.
        name: what messages call it.

    Raises:
        BaselineError: ``profile`` holds a NaN or an infinity, or contradicts itself.
    """
    _refuse_non_finite(profile, name)
    try:
        content = _text(profile).encode()
        load_profile(content)
    except (ValueError, TypeError) as error:
        raise BaselineError(
            f"{name}: not written, for it could not be read back: {error}; "
            f"this is a fault of what measured model {profile.model!r}"
        ) from error
    return content


def load_profile(content: bytes) -> Profile:
    """The inverse of ``dump_profile``.

    Raises:
        ValueError: ``content`` is not what ``dump_profile`` yields; says what is wrong with it.
    """
    document = _decode(content)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f'expected a JSON object with "format": "{FORMAT}", found something else')
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise _FormatVersionError(_foreign_version(document, version))
    try:
        file = ProfileFile.model_validate(document)
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from None
    body = {key: value for key, value in document.items() if key != "digest"}
    if _digest(body) != file.digest:
        raise ValueError(
            "its content does not match its own digest: it was edited or damaged after isotest "
            "wrote it"
        )
    for fault in inconsistencies(file):
        raise ValueError(fault)
    return _profile(file)


class _FormatVersionError(ValueError):
    """Written by another version of isotest: possibly fine, but not for this one."""


def _foreign_version(document: Mapping[str, Any], version: object) -> str:
    provenance = document.get("provenance")
    versions = provenance.get("versions") if isinstance(provenance, dict) else None
    writer = versions.get("isotest") if isinstance(versions, dict) else None
    by = f"isotest {writer:.40}" if isinstance(writer, str) else "an unknown isotest"
    return f"written by {by} in format {version!s:.40}; this isotest reads format {FORMAT_VERSION}"


def _decode(content: bytes) -> Any:
    """Strict JSON: UTF-8, no NaN or infinity in any spelling, no repeated keys."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"expected UTF-8 text, found something else at byte {error.start}"
        ) from None
    if not text.strip():
        raise ValueError("the file is empty")
    if "\n<<<<<<< " in text or text.startswith("<<<<<<< "):
        raise ValueError("it holds the marks of an unresolved merge conflict")
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            object_pairs_hook=_object_without_repeats,
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"not JSON, perhaps cut short: {error.msg} at line {error.lineno} column {error.colno}"
        ) from None
    except (RecursionError, MemoryError):
        raise ValueError("nested too deeply, or too large, to be a profile") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which no profile may")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it holds {text:.40}, which is beyond any float")
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {reprlib.repr(key)} stands twice in one object")
            seen.add(key)
    return result


def _first_fault(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False)
    first = faults[0]
    where = ".".join(str(part) for part in first["loc"])[:200]
    found = "" if first["type"] == "missing" else f", found {reprlib.repr(first['input'])}"
    more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return f"at {where}: {first['msg']}{found}{more}"


def _text(profile: Profile) -> str:
    body = _body(profile)
    document = {**body, "digest": _digest(body)}
    lines = []
    for key in sorted(document):
        value = document[key]
        if key == "layers":
            layers = ",\n".join(_compact(layer) for layer in value)
            lines.append(f'"layers": [\n{layers}\n]')
        else:
            lines.append(f"{_compact(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _digest(body: Mapping[str, Any]) -> str:
    """Of the content and not of the text, so that line ends and indentation may change."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def _refuse_non_finite(profile: Profile, name: Path | str) -> None:
    for where, value in _floats(profile):
        if not math.isfinite(value):
            raise BaselineError(
                f"{name}: not written: {where} of model {profile.model!r} is {value}; a value that "
                "is not finite is never recorded; find out which layer yields it first"
            )


def _floats(profile: Profile) -> Iterator[tuple[str, float]]:
    for layer in profile.layers:
        if layer.at is not None:
            yield f"where layer {layer.name} stands", layer.at
        for metric, estimate in layer.estimates.items():
            where = f"{metric} at layer {layer.name} ({layer.module})"
            if estimate.value is not None:
                yield where, estimate.value
            if estimate.isotropic is not None:
                yield f"the value of isotropic data for {where}", estimate.isotropic
            if estimate.se is not None:
                yield f"the standard error of {where}", estimate.se
            for number, value in enumerate(estimate.blocks):
                yield f"block {number} of {where}", value
        for kind, heads in layer.attention.items():
            for share in (*heads.entropy, *heads.row_max):
                if share is not None:
                    yield f"a head of {kind}-attention at layer {layer.name}", share
    for number, bound in enumerate(profile.bounds):
        known = (bound.beta, bound.gamma, bound.score_range, bound.contraction)
        for size in (*known, *bound.residuals, *bound.log10_bounds):
            if size is not None:
                yield f"the bound of sequence {number}", size
    for key, setting in profile.provenance.protocol.items():
        if isinstance(setting, float):
            yield f"protocol key {key!r}", setting


def _body(profile: Profile) -> dict[str, Any]:
    provenance = profile.provenance
    body: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "suite": profile.suite,
        "model": profile.model,
        "modality": profile.modality,
        "sequences": profile.sequences,
        "units": profile.units,
        "block_sequences": list(profile.block_sequences),
        "layers": [_layer_body(layer) for layer in profile.layers],
        "provenance": {
            "source": provenance.source,
            "architecture": dict(provenance.architecture),
            "protocol": dict(provenance.protocol),
            "data": provenance.data,
            "weights": provenance.weights,
            "commit": provenance.commit,
            "device": provenance.device,
            "versions": dict(provenance.versions),
            "created": provenance.created,
        },
    }
    if profile.properties:  # as with attention below: only where there are some
        body["properties"] = [
            {
                "name": each.name,
                "result": each.result,
                "text": each.text,
                "reproduce": each.reproduce,
            }
            for each in profile.properties
        ]
    if profile.bounds:
        body["bounds"] = [asdict(each) for each in profile.bounds]
    return body


def _bound(file: BoundFile) -> SequenceBound:
    sizes = {key: tuple(getattr(file, key)) for key in ("residuals", "log10_bounds")}
    return SequenceBound(**{**file.model_dump(), **sizes})


def _layer_body(layer: LayerProfile) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": layer.name,
        "module": layer.module,
        "width": layer.width,
        "representations": layer.representations,
        "zero_length": layer.zero_length,
        "block_representations": list(layer.block_representations),
        "estimates": {
            metric: {
                "value": estimate.value,
                "se": estimate.se,
                "blocks": list(estimate.blocks),
                "undefined": estimate.undefined,
                "vacuous": estimate.vacuous,
                "isotropic": estimate.isotropic,
                "basis": estimate.basis,
                "dropped": estimate.dropped,
            }
            for metric, estimate in layer.estimates.items()
        },
    }
    if layer.attention:  # only where there is some: most profiles know nothing of attention
        body["attention"] = {
            kind: {
                "modules": [{"path": path, "heads": count} for path, count in heads.modules],
                "entropy": list(heads.entropy),
                "row_max": list(heads.row_max),
                "histogram": list(heads.histogram),
            }
            for kind, heads in layer.attention.items()
        }
    if layer.at is not None:
        body["at"] = layer.at
    return body


def _profile(file: ProfileFile) -> Profile:
    return Profile(
        suite=file.suite,
        model=file.model,
        modality=file.modality,
        sequences=file.sequences,
        units=file.units,
        block_sequences=tuple(file.block_sequences),
        layers=tuple(
            LayerProfile(
                name=layer.name,
                module=layer.module,
                width=layer.width,
                representations=layer.representations,
                zero_length=layer.zero_length,
                block_representations=tuple(layer.block_representations),
                estimates={
                    metric: Estimate(
                        value=estimate.value,
                        se=estimate.se,
                        blocks=tuple(estimate.blocks),
                        undefined=estimate.undefined,
                        vacuous=estimate.vacuous,
                        isotropic=estimate.isotropic,
                        basis=estimate.basis,
                        dropped=estimate.dropped,
                    )
                    for metric, estimate in layer.estimates.items()
                },
                attention={
                    kind: AttentionHeads(
                        modules=tuple((module.path, module.heads) for module in heads.modules),
                        entropy=tuple(heads.entropy),
                        row_max=tuple(heads.row_max),
                        histogram=tuple(heads.histogram),
                    )
                    for kind, heads in layer.attention.items()
                },
                at=layer.at,
            )
            for layer in file.layers
        ),
        provenance=Provenance(**file.provenance.model_dump()),
        properties=tuple(BlockProperty(**each.model_dump()) for each in file.properties),
        bounds=tuple(_bound(each) for each in file.bounds),
    )
