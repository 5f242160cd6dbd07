"""The command-line options, their ini twins, and their validated form."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Update = Literal["missing", "failing", "all"]

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


@dataclass(frozen=True)
class Options:
    """The options of one run, validated, command line before ini file."""

    update: Update | None
    prune: bool
    stand_ins: Mapping[str, str]
    download: bool
    device: str
    dtype: str | None
    samples: int | Literal["all"] | None
    batch_size: int | None
    allow_skips: bool
    summary: Path | None
    json: Path | None
    trust_remote_code: bool
    suites: Path
    baselines: Path
    invocation: Path


def is_enabled(config: pytest.Config) -> bool:
    """Whether ``--isotest`` (or ``isotest = true`` in the ini file) is given."""
    return bool(_value(config, "isotest"))


def _value(config: pytest.Config, name: str) -> Any:
    value = config.getoption(name)
    return config.getini(name) if value is None else value


def read_options(config: pytest.Config) -> Options:
    """Validate the options of an enabled run.

    Raises:
        pytest.UsageError: a value is malformed, or writing is asked for in CI.
    """
    update = _value(config, "isotest_update") or None
    if update not in (None, "missing", "failing", "all"):
        raise pytest.UsageError(
            f"isotest_update: expected missing, failing or all, found {update!r}"
        )
    dtype = _value(config, "isotest_dtype") or None
    if dtype not in (None, "float32", "float64", "bfloat16", "float16"):
        raise pytest.UsageError(
            f"isotest_dtype: expected float32, float64, bfloat16 or float16, found {dtype!r}"
        )
    prune = bool(_value(config, "isotest_prune"))
    allow_ci_writes = bool(_value(config, "isotest_allow_ci_writes"))
    if (update or prune) and os.environ.get("CI") and not allow_ci_writes:
        what = f"--isotest-update={update}" if update else "--isotest-prune"
        raise pytest.UsageError(
            f"{what} would change baselines, and CI is set: a gate that moves its own limits gates "
            "nothing. Record on a developer's machine and commit, or give --isotest-allow-ci-writes"
        )
    return Options(
        update=update,
        prune=prune,
        stand_ins=_stand_ins(_value(config, "isotest_model") or []),
        download=bool(_value(config, "isotest_download")),
        device=_value(config, "isotest_device") or "cpu",
        dtype=dtype,
        samples=_samples(_value(config, "isotest_samples")),
        batch_size=_positive("--isotest-batch-size", _value(config, "isotest_batch_size")),
        allow_skips=bool(_value(config, "isotest_allow_skips")),
        summary=_output(config, "isotest_summary"),
        json=_output(config, "isotest_json"),
        trust_remote_code=bool(_value(config, "isotest_trust_remote_code")),
        suites=config.rootpath / config.getini("isotest_suites"),
        baselines=config.rootpath / config.getini("isotest_baselines"),
        invocation=config.invocation_params.dir,
    )


def _stand_ins(pairs: list[str]) -> Mapping[str, str]:
    from isotest.errors import SourceError
    from isotest.source import MODEL_SCHEMES, parse_source

    stand_ins: dict[str, str] = {}
    for pair in pairs:
        name, equals, source = pair.partition("=")
        if not (name and equals and source):
            raise pytest.UsageError(
                f"--isotest-model {pair!r}: expected NAME=SOURCE, as in "
                "--isotest-model vit=path:checkpoints/last"
            )
        if name in stand_ins:
            raise pytest.UsageError(f"--isotest-model: entry {name!r} is given twice")
        try:
            stand_ins[name] = str(parse_source(source, MODEL_SCHEMES))
        except SourceError as error:
            raise pytest.UsageError(f"--isotest-model {name}: {error}") from None
    return stand_ins


def _samples(value: str | None) -> int | Literal["all"] | None:
    if value == "all":
        return "all"
    return _positive("--isotest-samples", value, minimum=2)


def _positive(option: str, value: str | None, minimum: int = 1) -> int | None:
    if not value:
        return None
    try:
        number = int(value)
    except ValueError:
        number = minimum - 1
    if number < minimum:
        raise pytest.UsageError(
            f"{option}: expected a whole number of at least {minimum}, found {value!r}"
        )
    return number


def _output(config: pytest.Config, name: str) -> Path | None:
    value = _value(config, name)
    return config.invocation_params.dir / value if value else None
