"""Property tests on any machine: a slow example is no failure, only a wrong one is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("isotest", deadline=None)
settings.load_profile("isotest")
