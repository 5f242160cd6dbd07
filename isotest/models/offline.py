"""No network without permission, whatever code a source runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def offline() -> Iterator[None]:
    """huggingface_hub refuses to connect inside, as under ``HF_HUB_OFFLINE=1``.

    The sources ask for local files anyway. This holds where they hand over to others: a ``python:``
    function, or a configuration that names a backbone elsewhere on the hub.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def wanted_the_hub(error: BaseException | None) -> bool:
    """Whether an error comes from something that is not cached and could not be fetched."""
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    while error is not None:
        if isinstance(error, OfflineModeIsEnabled | LocalEntryNotFoundError):
            return True
        error = error.__cause__ or error.__context__
    return False
