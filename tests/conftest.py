"""Property tests on any machine: a slow example is no failure, only a wrong one is.

On a developer's machine every run tries new examples; in CI the examples are fixed, so that a
landing is not red for what it did not change.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("isotest", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "isotest")
