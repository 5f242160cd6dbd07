"""Options that the repository's own runs need."""

pytest_plugins = ["pytester"]
