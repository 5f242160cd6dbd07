"""Every fault a user can cause, as one exception whose text is the whole message.

The plugin and the command line print ``str(error)`` and nothing else, so a message says what was
expected, what was found, where, and what to do.
"""

from __future__ import annotations

from pathlib import Path


class IsotestError(Exception):
    """A fault whose text a user can act on; never shown with a traceback."""


class SuiteError(IsotestError):
    """A suite file that cannot be understood; the text starts with ``file:line``."""

    def __init__(self, message: str, path: Path | str, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}")


class SourceError(IsotestError):
    """A model or data source that is misspelt, malformed or yields something unusable."""


class BlockError(IsotestError):
    """A transformer block that is configured, fed or copied from in a way that cannot be."""


class MissingError(SourceError):
    """Something that could be had but is not here: weights, data, a package, a device.

    ``what`` names the missing thing, ``remedy`` the command or option that brings it. An entry that
    is marked ``optional`` turns this into a skip; every other entry fails with it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}; {remedy}")


class MeasurementError(IsotestError):
    """A model or its data misbehaved while being measured."""


class NonFiniteError(MeasurementError):
    """NaN or an infinity in a hidden representation; names model, layer and first batch."""


class BaselineError(IsotestError):
    """A baseline that cannot be read, written or trusted; names the file."""


def one_line(error: BaseException) -> str:
    """``Type: text`` of a foreign exception, on one line and not longer than a few.

    >>> one_line(ValueError("spread   out"))
    'ValueError: spread out'
    """
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}{'…' if len(text) > 300 else ''}"
