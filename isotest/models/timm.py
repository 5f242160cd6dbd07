"""``timm:NAME``: a timm model, pretrained from the Hugging Face cache or seeded and untrained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.errors import MissingError, SourceError, one_line
from isotest.models.hub import not_cached, snapshot
from isotest.models.registry import Built, Request, seed_of
from isotest.models.seeding import seeded
from isotest.models.untrusted import refuse_timm_weights
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

_WEIGHTS = "model.safetensors"


def build(request: Request) -> Built:
    """A timm model without its classifier, which lies behind the last observed layer.

    ``pretrained`` is ``true`` unless said otherwise; ``seed`` is for ``pretrained=false`` only.
    ``config`` of the suite goes to ``timm.create_model``.

    Raises:
        MissingError: the weights aren't cached and may not be downloaded.
        SourceError: an unknown model, option or argument, or weights that don't fit.
    """
    import timm

    source = request.source
    source.require_options({"pretrained", "seed"})
    what = str(source)
    pretrained = source.options.get("pretrained", "true")
    if pretrained not in ("true", "false"):
        raise SourceError(
            f"source {what!r}: expected pretrained to be true or false, found {pretrained!r}"
        )
    if pretrained == "true" and "seed" in source.options:
        raise SourceError(f"source {what!r}: seed is for untrained weights; add pretrained=false")
    library: Any = timm
    name = source.location
    if not library.is_model(name.partition(".")[0]) or ":" in name:
        hint = did_you_mean(name, library.list_models())
        hint = hint if "did you mean" in hint else ""
        raise SourceError(f"source {what!r}: timm has no model {name!r}{hint}")
    refuse_timm_weights(request.config, what)
    options: dict[str, Any] = {"num_classes": 0, **request.config}
    commit = None
    if pretrained == "true" and request.weights:
        weights = _weights(name, what, download=request.download)
        commit = weights.parent.name
        # A file in the place of the hub: timm reads it with its own renaming, and fetches nothing.
        options |= {"pretrained": True, "pretrained_cfg_overlay": {"file": str(weights)}}
    try:
        with seeded(seed_of(source)):
            module = library.create_model(name, **options)
    except Exception as error:
        raise SourceError(f"source {what!r}: timm cannot build it: {one_line(error)}") from error
    return Built(module, commit=commit, libraries=("timm",))


def _weights(name: str, what: str, *, download: bool) -> Path:
    """The cached safetensors file of a timm model's default or named weights.

    Raises:
        SourceError: timm knows no weights for it.
        MissingError: as :func:`isotest.models.hub.snapshot`, or no safetensors on the hub.
    """
    from timm.models import get_pretrained_cfg

    lookup: Any = get_pretrained_cfg
    try:
        described = lookup(name, allow_unregistered=False)
    except RuntimeError as error:
        raise SourceError(f"source {what!r}: {one_line(error)}") from None
    repository = described.hf_hub_id if described is not None else None
    if not repository:
        raise SourceError(
            f"source {what!r}: timm has no weights on the hub for {name!r}; "
            "give pretrained=false for untrained ones"
        )
    folder = snapshot(repository, None, (_WEIGHTS,), what, download=download)
    if not (folder / _WEIGHTS).is_file():
        if download:
            raise MissingError(
                f"source {what!r}: {repository} has no {_WEIGHTS} on the hub",
                "choose other weights; pickled ones are not read",
            )
        raise not_cached(what, f"{_WEIGHTS} of {repository}")
    return folder / _WEIGHTS
