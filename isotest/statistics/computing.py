"""What computes a metric, by the name under which the registry has it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from isotest.errors import IsotestError, one_line


def computing(metric: str, reference: str) -> Any:
    """The class or function at ``"module:name"``, which may be another package's.

    Args:
        metric: whose it is, for the message.
        reference: its accumulator or evaluator.

    Raises:
        IsotestError: it cannot be imported.

    >>> computing("mean_norm", "isotest.statistics.norms:Norms").__name__
    'Norms'
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except (Exception, SystemExit) as error:
        raise IsotestError(
            f"metric {metric!r}: what computes it, {reference!r}, cannot be imported: "
            f"{one_line(error)}; repair or uninstall the package that brings it"
        ) from error
