"""``task:`` sources, which suites of modality ``tasks`` read by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from isotest.errors import SourceError

if TYPE_CHECKING:
    from isotest.models.registry import Request


def build(request: Request) -> NoReturn:
    """Nothing that can be fed samples.

    Raises:
        SourceError: always; says where the network of a task is measured.
    """
    raise SourceError(
        f"source {str(request.source)!r}: the network of a task takes the examples of its task "
        "alone, in a suite of modality 'tasks'"
    )
