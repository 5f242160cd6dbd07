"""A valid suite, and what goes wrong when one thing in it is mistaken."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
modality = "vision"

[data]
source = "sample:photographs"
samples = 16

[[models]]
name = "vit"
source = "init:vit?seed=0"

[checks.anisotropy]
max = 0.95
"""


def write(folder: Path, text: str | bytes, name: str = "a.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# What stands in VALID, what a mistake makes of it, and the line and words that must answer.
MISTAKES = {
    "unknown key": ('modality = "vision"', "modalty = 1", 1, "unknown key 'modalty'.*'modality'"),
    "unknown key in data": ("samples = 16", "sample = 16", 5, r"'sample' in \[data\].*'samples'"),
    "unknown key of a model": (
        'name = "vit"',
        'name = "vit"\noptonal = true',
        9,
        "model 'vit': unknown key 'optonal'; did you mean 'optional'",
    ),
    "unknown key of a check": (
        "max = 0.95",
        "max = 0.95\nmargin = 1",
        13,
        r"unknown key 'margin' in \[checks.anisotropy\]",
    ),
    "unknown key in a regression": (
        "max = 0.95",
        "baseline = { margni = 1 }",
        12,
        r"'margni' in \[checks.anisotropy.baseline\]; did you mean 'margin'",
    ),
    "unknown key in an inline table of a model": (
        'name = "vit"',
        'name = "vit"\npreprocess = { men = [0.5] }',
        9,
        r"'men' in \[models.preprocess\]; did you mean 'mean'",
    ),
    "unknown check": ("anisotropy", "anisotropi", 11, "check 'anisotropi'; did you mean 'anisotr"),
    "unknown metric": ("max = 0.95", 'metric = "x"\nmax = 1', 12, "unknown metric 'x'; known: a"),
    "check named as another metric": (
        "max = 0.95",
        'metric = "massive"\nmax = 1',
        12,
        "'anisotropy' would judge 'massive'",
    ),
    "layers": ("max = 0.95", 'layers = "frist"\nmax = 1', 12, "layers = 'frist': expected 'any'"),
    "source scheme": ("init:vit", "int:vit", 9, "unknown scheme 'int'; did you mean 'init'"),
    "data scheme": ("sample:", "init:", 4, "unknown scheme 'init'"),
    "NaN limit": ("max = 0.95", "max = nan", 12, "max = nan: expected a finite number"),
    "infinite limit": ("max = 0.95", "max = -inf", 12, "max = -inf: expected a finite number"),
    "NaN margin": ("max = 0.95", "baseline.margin = nan", 12, "margin = nan: expected a finite"),
    "negative margin": ("max = 0.95", "baseline.margin = -1", 12, "greater than or equal to 0"),
    "text for a number": ("max = 0.95", 'max = "0.95"', 12, "max = '0.95': expected a number"),
    "boolean for a number": ("max = 0.95", "max = true", 12, "max = true: expected a number"),
    "fraction for a count": ("samples = 16", "samples = 16.0", 5, "a whole number of at least 2"),
    "one sample": ("samples = 16", "samples = 1", 5, 'at least 2, or "all"'),
    "table for text": (
        'source = "sample:photographs"',
        "source = {}",
        4,
        "source = {}: expected a",
    ),
    "number for a table": ("[checks.anisotropy]\nmax = 0.95", "[checks]\nmassive=1", 12, "a table"),
    "min above max": ("max = 0.95", "min = 1\nmax = 0.5", 12, "min = 1 is above max = 0.5"),
    "reach above max": (
        "max = 0.95",
        "max = 0.5\nreach = 0.6",
        13,
        "reach = 0.6 is above max = 0.5",
    ),
    "trend of one layer": (
        "max = 0.95",
        'layers = "final"\ntrend = { direction = "falls" }',
        12,
        "'final' is one layer, and a trend leads from one to another.*'last,final'",
    ),
    "minus the same part": (
        "max = 0.95",
        'layers = "input.any"\nminus = "input"\nmax = 1',
        12,
        "subtracts them from themselves: that is zero in every model",
    ),
    "minus no part": ("max = 0.95", 'minus = "Input.0"\nmax = 1', 12, "the name of a part of the"),
    "minus as a list": ("max = 0.95", 'minus = ["a"]\nmax = 1', 12, "minus = .*: expected a"),
    "a difference alone": ("max = 0.95", 'minus = "input"', 11, "'anisotropy' demands nothing"),
    "a share of a difference": (
        "max = 0.95",
        'minus = "input"\nbaseline = { margin_relative = 0.1 }',
        13,
        "'margin_relative' has no meaning with 'minus'",
    ),
    "a fixed point of one curve": (
        "anisotropy]\nmax = 0.95",
        'fixed_point]\nof = "input"',
        11,
        "of and minus are both 'input': a curve meets itself",
    ),
    "a fixed point of no metric": (
        "anisotropy]\nmax = 0.95",
        'fixed_point]\nmetric = "mean_nrom"',
        12,
        "unknown metric 'mean_nrom'; did you mean 'mean_norm'",
    ),
    "a fixed point of no part": (
        "anisotropy]\nmax = 0.95",
        'fixed_point]\nof = ""',
        12,
        "of = '': expected the name of a part",
    ),
    "a fixed point nowhere": (
        "anisotropy]\nmax = 0.95",
        "fixed_point]\nmin = 30\nmax = 20",
        12,
        "min = 30 is above max = 20",
    ),
    "a fixed point with a baseline": (
        "anisotropy]\nmax = 0.95",
        "fixed_point]\nbaseline = {}",
        12,
        "unknown key 'baseline' in .checks.fixed_point.",
    ),
    "unknown key of block properties": (
        "anisotropy]\nmax = 0.95",
        "block_properties]\ncasual = true",
        12,
        "unknown key 'casual'.*did you mean 'causal'",
    ),
    "properties that are no list": (
        "anisotropy]\nmax = 0.95",
        'block_properties]\nholds = "causal"',
        12,
        "holds = 'causal': expected a",
    ),
    "no heads": ("anisotropy]\nmax = 0.95", "block_properties]\nheads = 0", 12, "heads = 0: expe"),
    "trend without direction": ("max = 0.95", "trend = { by = 0.1 }", 12, "direction"),
    "no demand": ("max = 0.95", "inconclusive = 'pass'", 11, "'anisotropy' demands nothing"),
    "no demand on drift": (
        "anisotropy]\nmax = 0.95",
        "drift_correlation]",
        11,
        "demands nothing; give it 'expect' or 'baseline'",
    ),
    "finite": ("anisotropy]\nmax = 0.95", "finite]", 11, "'finite' is always checked"),
    "no checks": ("[checks.anisotropy]\nmax = 0.95", "[checks]", 11, "'checks' is empty"),
    "no models": (
        '[[models]]\nname = "vit"\nsource = "init:vit?seed=0"',
        "[models]",
        7,
        "models = {}: expected an array",
    ),
    "missing source": ('source = "init:vit?seed=0"', "", 7, "model 'vit': 'source' is missing: wh"),
    "missing name": ('name = "vit"', "", 7, "model number 1: 'name' is missing"),
    "modality": ('"vision"', '"audio"', 1, "modality = 'audio': expected 'vision'"),
    "dtype": ("[data]", "measure.dtype = 'float8'\n[data]", 3, "expected 'float32', 'float64'"),
    "config of a hub model": (
        'source = "init:vit?seed=0"',
        'source = "hub:a/b"\nconfig = {a = 1}',
        7,
        "'config' only applies where a model is built",
    ),
    "date in a config": (
        'name = "vit"',
        'name = "vit"\nconfig = {a = 2026-01-01}',
        9,
        "expected a table of strings, numbers",
    ),
    "no layers": ('name = "vit"', 'name = "vit"\nlayers = []', 9, "layers = .*not empty"),
    "trust_remote_code": (
        'name = "vit"',
        'name = "vit"\ntrust_remote_code = true',
        9,
        "unknown key 'trust_remote_code'",
    ),
    "set by the loader": ("[data]", 'id = "x"\n[data]', 3, "unknown key 'id'"),
}
