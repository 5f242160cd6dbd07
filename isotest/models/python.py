"""``python:MODULE:FUNCTION``: whatever ``nn.Module`` a callable returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import IsotestError, MissingError, SourceError, one_line
from isotest.models.offline import wanted_the_hub
from isotest.models.registry import Built
from isotest.reference import referenced

if TYPE_CHECKING:
    from isotest.models.registry import Request


def build(request: Request) -> Built:
    """Call the function without arguments, or with the suite's ``config`` as keywords.

    It returns an ``nn.Module``, or a pair of it and its preprocessing (an object as
    :class:`isotest.models.loaded.Preprocess` says).

    Raises:
        MissingError: there is no such module, or it wants something from the hub that isn't
            cached, without permission.
        SourceError: it can't be imported, isn't there, raises, or returns something else.
    """
    from torch import nn

    source = request.source
    source.require_options(())
    what = str(source)
    function = referenced(source.location, f"source {what!r}")
    try:
        result = function(**request.config)
    except IsotestError:
        raise
    except (Exception, SystemExit) as error:
        if wanted_the_hub(error) and not request.download:
            raise MissingError(
                f"source {what!r}: {source.location} wants something from the hub that is not in "
                f"the cache ({one_line(error)})",
                "fetch it with --isotest-download",
            ) from error
        raise SourceError(f"source {what!r}: {source.location} raised {one_line(error)}") from error
    module, preprocess = result if _is_pair(result) else (result, None)
    if not isinstance(module, nn.Module):
        raise SourceError(
            f"source {what!r}: expected {source.location} to return a torch.nn.Module, or a pair "
            f"of it and its preprocessing, found {_described(result)}"
        )
    if preprocess is not None and not (callable(preprocess) and hasattr(preprocess, "describe")):
        raise SourceError(
            f"source {what!r}: expected the preprocessing to be callable with a list of images, "
            "to return keyword inputs, and to have describe() for the protocol (see "
            f"isotest.models.Preprocess), found {_described(preprocess)}"
        )
    library = type(module).__module__.partition(".")[0]
    known = (library,) if library in ("transformers", "timm") else ()
    return Built(module, preprocess=preprocess, libraries=known)


def _is_pair(result: object) -> bool:
    return isinstance(result, tuple) and len(result) == 2


def _described(value: object) -> str:
    kind = type(value).__name__
    return kind if not isinstance(value, tuple) else f"a tuple of {len(value)}"
