"""How a red check looks: its message, and its headline where pytest has one line for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from _pytest._code.code import ReprFileLocation, TerminalRepr

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter


class VerdictRepr(TerminalRepr):
    """A failure's text.

    pytest's short summary and JUnit's ``message`` attribute take their one line from
    ``reprcrash.message``; the whole text goes to the terminal and into JUnit's element.
    """

    def __init__(self, nodeid: str, headline: str, message: str) -> None:
        self.reprcrash = ReprFileLocation(nodeid.partition("::")[0], 0, headline)
        self._message = message

    def toterminal(self, tw: TerminalWriter) -> None:
        """Print the message, without a code excerpt."""
        for line in self._message.splitlines():
            tw.line(line)

    def __str__(self) -> str:
        return self._message
