"""The command-line options and their ini twins.

This is loaded in every pytest run where isotest is installed, so it must cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

_HELP: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--isotest",
        {
            "action": "store_true",
            "help": "measure the models of the suites (*.toml) and gate them; without a path, the "
            "suites folder",
        },
    ),
    (
        "--isotest-update",
        {
            "choices": ("missing", "failing", "all"),
            "help": "write baselines: of entries that have none, also of entries whose regression "
            "checks fail, or of all; prints what changes",
        },
    ),
    (
        "--isotest-allow-ci-writes",
        {
            "action": "store_true",
            "help": "let --isotest-update and --isotest-prune write when CI is set",
        },
    ),
    (
        "--isotest-prune",
        {
            "action": "store_true",
            "help": "remove baselines that no entry claims; only on a full, unfiltered run",
        },
    ),
    (
        "--isotest-model",
        {
            "action": "append",
            "metavar": "NAME=SOURCE",
            "help": "measure SOURCE in the place of entry NAME, against its baseline (repeatable)",
        },
    ),
    (
        "--isotest-download",
        {
            "action": "store_true",
            "help": "let sources reach the hub; otherwise only caches and local files are used",
        },
    ),
    (
        "--isotest-device",
        {"metavar": "DEVICE", "help": "where to measure: cpu (default), cuda, cuda:1, mps, …"},
    ),
    (
        "--isotest-dtype",
        {
            "choices": ("float32", "float64", "bfloat16", "float16"),
            "help": "the models' dtype instead of the suite's; part of the protocol",
        },
    ),
    (
        "--isotest-samples",
        {
            "metavar": "N",
            "help": "measure N samples (or 'all') instead of the suite's; part of the protocol",
        },
    ),
    (
        "--isotest-batch-size",
        {"metavar": "N", "help": "inputs per forward pass; the numbers do not depend on it"},
    ),
    (
        "--isotest-metrics",
        {
            "choices": ("default", "all"),
            "help": "measure these metrics instead of those the suites ask for; what their checks "
            "judge is measured anyway",
        },
    ),
    (
        "--isotest-allow-skips",
        {
            "action": "store_true",
            "help": "skip entries whose weights, data, packages or device are missing, instead of "
            "failing them",
        },
    ),
    (
        "--isotest-summary",
        {
            "metavar": "FILE.md",
            "help": "write the results as Markdown (for a CI job's summary page)",
        },
    ),
    (
        "--isotest-json",
        {"metavar": "FILE", "help": "write verdicts and curves as JSON"},
    ),
    (
        "--isotest-trust-remote-code",
        {
            "action": "store_true",
            "help": "let hub models run the code that comes with them; never settable in a suite",
        },
    ),
)


def _name(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def add_options(parser: pytest.Parser) -> None:
    """Register every ``--isotest…`` option and its ini twin ``isotest_…``."""
    group = parser.getgroup("isotest", "isotest: gate models on the geometry of representations")
    for option, keywords in _HELP:
        group.addoption(option, dest=_name(option), default=None, **keywords)
        action = keywords.get("action")
        kind: Any = {"store_true": "bool", "append": "linelist"}.get(str(action), "string")
        parser.addini(_name(option), f"the ini twin of {option}", type=kind, default=None)
    parser.addini("isotest_suites", "folder of the suites, relative to rootdir", "string", "suites")
    parser.addini(
        "isotest_baselines", "folder of the baselines, relative to rootdir", "string", "baselines"
    )


def is_enabled(config: pytest.Config) -> bool:
    """Whether ``--isotest`` (or ``isotest = true`` in the ini file) is given."""
    return bool(value_of(config, "isotest"))


def value_of(config: pytest.Config, name: str) -> Any:
    """The option, or its ini twin where it is not given."""
    value = config.getoption(name)
    return config.getini(name) if value is None else value
