"""pytest-xdist: the checks of one entry share one measurement, so they go to one worker."""

from __future__ import annotations

from typing import Any

import pytest


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
