"""The options of a run, validated: command line before ini file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest

from isotest.plugin.options import value_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Update = Literal["missing", "failing", "all"]


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
    metrics: Literal["default", "all"] | None
    allow_skips: bool
    summary: Path | None
    json: Path | None
    trust_remote_code: bool
    suites: Path
    baselines: Path
    invocation: Path


def read_options(config: pytest.Config) -> Options:
    """Validate the options of an enabled run.

    Raises:
        pytest.UsageError: a value is malformed, or writing is asked for in CI.
    """
    update = value_of(config, "isotest_update") or None
    if update not in (None, "missing", "failing", "all"):
        raise pytest.UsageError(
            f"isotest_update: expected missing, failing or all, found {update!r}"
        )
    dtype = value_of(config, "isotest_dtype") or None
    if dtype not in (None, "float32", "float64", "bfloat16", "float16"):
        raise pytest.UsageError(
            f"isotest_dtype: expected float32, float64, bfloat16 or float16, found {dtype!r}"
        )
    metrics = value_of(config, "isotest_metrics") or None
    if metrics not in (None, "default", "all"):
        raise pytest.UsageError(f"isotest_metrics: expected default or all, found {metrics!r}")
    prune = bool(value_of(config, "isotest_prune"))
    allow_ci_writes = bool(value_of(config, "isotest_allow_ci_writes"))
    if (update or prune) and os.environ.get("CI") and not allow_ci_writes:
        what = f"--isotest-update={update}" if update else "--isotest-prune"
        raise pytest.UsageError(
            f"{what} would change baselines, and CI is set: a gate that moves its own limits gates "
            "nothing. Record on a developer's machine and commit, or give --isotest-allow-ci-writes"
        )
    return Options(
        update=update,
        prune=prune,
        stand_ins=_stand_ins(value_of(config, "isotest_model") or []),
        download=bool(value_of(config, "isotest_download")),
        device=value_of(config, "isotest_device") or "cpu",
        dtype=dtype,
        samples=_samples(value_of(config, "isotest_samples")),
        batch_size=_positive("--isotest-batch-size", value_of(config, "isotest_batch_size")),
        metrics=metrics,
        allow_skips=bool(value_of(config, "isotest_allow_skips")),
        summary=_output(config, "isotest_summary"),
        json=_output(config, "isotest_json"),
        trust_remote_code=bool(value_of(config, "isotest_trust_remote_code")),
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
    value = value_of(config, name)
    return config.invocation_params.dir / value if value else None
