"""Property tests on any machine: a slow example is no failure, only a wrong one is.

On a developer's machine every run tries new examples; in CI the examples are fixed, so that a
landing is not red for what it did not change.

Under pytest-xdist each worker, and what it starts, computes on one thread: several that each take
all cores are many times slower than one.
"""

from __future__ import annotations

import os

from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("isotest", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "isotest")
