"""Progress of a measurement on the terminal, from the third second on, and notices of long work."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Never

from tqdm import tqdm

if TYPE_CHECKING:
    import pytest
    from _pytest.capture import CaptureManager

    from isotest.measurement import Progress

_FORMAT = "isotest: {desc}: {n}/{total} samples,{rate_noinv_fmt}, {remaining} left"


class _Lines:
    """A file for tqdm that writes through pytest's terminal reporter, past the capture.

    On a terminal the line is redrawn; in a log each state is a line of its own.
    """

    def __init__(
        self, reporter: pytest.TerminalReporter, capture: CaptureManager | None, redraw: bool
    ) -> None:
        self._reporter = reporter
        self._capture = capture
        self._redraw = redraw
        self._last = ""

    def write(self, text: str) -> None:
        shown = text if self._redraw else text.strip() and f"\n{text.strip()}"
        if not shown or (not self._redraw and shown == self._last):
            return  # tqdm says its last state once more when it closes
        self._last = shown
        # While a test runs, the file that the reporter writes to is captured as well.
        past = self._capture.global_and_fixture_disabled() if self._capture else nullcontext()
        with past:
            self._reporter.write(shown, flush=True)

    def flush(self) -> None:
        """Everything is flushed as it is written."""


class ProgressDisplay:
    """Shows one measurement at a time; silent in xdist workers, which have no terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager
        self._bar: tqdm[Never] | None = None
        notices = _Notices(self)
        logger = logging.getLogger("isotest")
        logger.addHandler(notices)
        config.add_cleanup(lambda: logger.removeHandler(notices))

    def notice(self, text: str) -> None:
        """Say on a line of its own what is being done, before it takes long."""
        reporter: pytest.TerminalReporter | None = self._plugins.get_plugin("terminalreporter")
        if reporter is not None:
            lines = _Lines(reporter, self._plugins.get_plugin("capturemanager"), redraw=False)
            lines.write(text)

    def start(self, what: str, total: int) -> Progress:
        """Begin showing ``what``; returns the function to call after each batch."""
        self.close()
        # Asked for late: it is registered after this plugin is configured.
        reporter: pytest.TerminalReporter | None = self._plugins.get_plugin("terminalreporter")
        if reporter is None:
            return lambda _count: None
        redraw = bool(reporter.isatty)
        bar = tqdm(
            total=total,
            desc=what,
            delay=2,
            leave=False,
            mininterval=0.5 if redraw else 10,
            unit=" samples",
            bar_format=_FORMAT,
            file=_Lines(reporter, self._plugins.get_plugin("capturemanager"), redraw),
            dynamic_ncols=redraw,
        )
        self._bar = bar
        return bar.update

    def close(self) -> None:
        """Clear the line of the measurement that ended."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Notices(logging.Handler):
    """What isotest's own modules log for a person who waits: elsewhere it goes to stderr."""

    def __init__(self, display: ProgressDisplay) -> None:
        super().__init__(logging.WARNING)
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        self._display.notice(record.getMessage())
