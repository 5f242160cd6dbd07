"""pytest-xdist: the checks of one entry share one measurement, so they go to one worker."""

from __future__ import annotations

from typing import Any

import pytest

_FAULT = "isotest_usage_error"


class EntryScheduling:
    """Registered only where pytest-xdist is installed and distributing."""

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep an entry's checks together; leave everything else as ``--dist load`` has it."""
        if config.getoption("dist", "no") not in ("load", "worksteal"):
            return None
        from xdist.scheduler import LoadScopeScheduling

        class EntryScopeScheduling(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                file, *rest = nodeid.split("::")
                return f"{file}::{rest[0]}" if file.endswith(".toml") and rest else nodeid

        return EntryScopeScheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """End the run with the fault that a worker found in the options, as if there were none.

        Raises:
            pytest.UsageError: a worker ended with one.
        """
        if fault := getattr(node, "workeroutput", {}).get(_FAULT):
            raise pytest.UsageError(fault)


def tell_controller(config: pytest.Config, error: pytest.UsageError) -> None:
    """Let the controlling process know why this worker ends, if this is a worker."""
    if is_worker(config):
        config.workeroutput[_FAULT] = str(error)  # type: ignore[attr-defined]


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one of xdist's workers."""
    return hasattr(config, "workerinput")


def threads_of_worker(config: pytest.Config) -> int | None:
    """Torch threads for this worker so that all workers together use the machine once."""
    import os

    if not is_worker(config):
        return None
    workers = int(config.workerinput["workercount"])  # type: ignore[attr-defined]
    return max(1, (os.cpu_count() or 1) // workers)
