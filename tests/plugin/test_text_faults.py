"""Texts and tokenizers that do not do: red, one message that names the entry and the remedy.

All suites run in one process of their own, as a user would start it, beside one that is well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from junitparser import Failure

from tests.models.text import vocabularies
from tests.plugin.test_junit import read

if TYPE_CHECKING:
    from junitparser import TestCase

    from tests.plugin.project import Project

CONFIG = """config = { vocab_size = 92, hidden_size = 16, num_hidden_layers = 2, \
num_attention_heads = 2, intermediate_size = 32 }"""
TEXTS = 'source = "file:../texts.jsonl"'
OWN = 'tokenizer = "path:../tokenizer"\n'


class Fault(NamedTuple):
    """A suite with one thing wrong, and what its message holds, "…" for anything."""

    message: str
    data: str = TEXTS
    measure: str = OWN
    entry: str = CONFIG
    source: str = "init:bert"


FAULTS = {
    "window": Fault(
        "text …short.txt:1: all texts together is 6 tokens long, shorter than a window of 64 "
        "(2 of them added); lower 'length' in [measure], or use packing = 'documents'",
        data='source = "file:../short.txt"',
        measure=f"{OWN}length = 64",
    ),
    "empty": Fault(
        "text …empty.txt: is empty, expected paragraphs", data='source = "file:../empty.txt"'
    ),
    "latin": Fault(
        "text …latin.txt: cannot be read as UTF-8: line 2, byte 27 is 0xe9; save it so",
        data='source = "file:../latin.txt"',
    ),
    "column": Fault(
        "texts.jsonl:1: no column 'body'…its columns: text",
        data='source = "file:../texts.jsonl?text=body"',
    ),
    "padding": Fault(
        "packing = 'documents' pads shorter texts, and its tokenizer has no padding token; use "
        "packing = 'windows', or give the tokenizer one (pad_token in tokenizer_config.json)",
        measure='packing = "documents"\ntokenizer = "path:../unpadded"',
    ),
    "vocabulary": Fault(
        "expected a tokenizer whose ids the model knows (its vocabulary has 50 entries), found "
        "ids up to 91; name the tokenizer that it was trained with, or build the model with "
        "vocab_size = 92",
        entry=CONFIG.replace("92", "50"),
    ),
    "unnamed": Fault(
        "expected a tokenizer, and the model brings none; name one with measure = { ",
        measure="",
    ),
    "nowhere": Fault(
        "tokenizer 'path:../nowhere': no folder …nowhere; save the tokenizer there",
        measure='tokenizer = "path:../nowhere"',
    ),
    "hub": Fault(
        "isotest-tests/absent is not in the Hugging Face cache; fetch it with --isotest-download",
        measure='tokenizer = "hub:isotest-tests/absent"',
    ),
    "length": Fault(
        "expected 'length' in [measure] to be at most 512, the positions that the model has, ",
        measure=f"{OWN}length = 513",
    ),
    "modality": Fault(
        "ResNetModel takes images, and the modality is 'text', whose samples are texts; correct "
        "'modality' and the data source, or the model",
        entry="config = { embedding_size = 8, hidden_sizes = [8, 8], depths = [1, 1] }",
        source="init:resnet",
    ),
    "molecule": Fault(
        "model 'm', layer molecules.0 (chars_to_molecules), batch 0: expected something of each "
        "input to measure, found that all positions of …short.txt:3 are padding or special "
        "there; leave out inputs this short, or use special_tokens = 'include'",
        data='source = "file:../short.txt"',
        measure='packing = "documents"\ntokenizer = "codepoints"',
        entry=CONFIG.replace("vocab_size = 92", "num_hash_buckets = 64"),
        source="init:canine",
    ),
}


def suite(data: str, measure: str, entry: str, source: str = "init:bert") -> str:
    """A suite of one entry, whose limit needs no baseline."""
    measure += "" if "length" in measure else "\nlength = 12"
    return f"""
modality = "text"
[data]
{data}
[measure]
{measure}
[checks.anisotropy]
max = 0.9999
[[models]]
name = "m"
source = "{source}?seed=0"
baseline = false
{entry}
"""


@pytest.fixture
def texts(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with texts, tokenizers and a suite for each fault."""
    monkeypatch.setenv("HF_HOME", str(project.cache / "hub"))
    vocabularies.around().save_pretrained(project.path / "tokenizer")
    vocabularies.bare().save_pretrained(project.path / "unpadded")
    lines = [f'{{"text": "the letters of {letter} and the rest of them"}}' for letter in "abcdefgh"]
    project.write("texts.jsonl", "\n".join(lines))
    project.write("short.txt", "the cat\n\nno\n")
    project.write("empty.txt", "")
    (project.path / "latin.txt").write_bytes(b"the first line\nand the caf\xe9\n")
    project.write("suites/well.toml", suite(TEXTS, OWN, CONFIG))
    for name, (_, *parts) in FAULTS.items():
        project.write(f"suites/{name}.toml", suite(*parts))
    return project


def message(case: TestCase) -> str:
    """What the one failure of a testcase says."""
    (failure,) = case.result
    assert isinstance(failure, Failure)
    return str(failure.message)


def test_each_fault_is_told_by_name(texts: Project) -> None:
    result = texts.apart("--junitxml=junit.xml", "suites")
    output = result.stdout.str()
    assert result.ret == 1
    assert "Traceback" not in output + result.stderr.str()
    cases = read(texts.path / "junit.xml", 1)
    unwrapped = " ".join(output.split())
    for name, fault in FAULTS.items():
        for check in ("finite", "anisotropy"):
            assert f"FAILED suites/{name}.toml::m::{check} - " in output
            found = message(cases[f"suites.{name}.toml.m::{check}"])
            assert all(part in found for part in fault.message.split("…")), found
            assert found.split(chr(10))[0] in output
        assert f"suites/{name}.toml: 1 model, nothing measured not measured: m: " in unwrapped
        # Whoever looks at the suite's own testcases alone sees red, too.
        compared = message(cases[f"suites.{name}.toml.(suite)::evaluated"])
        assert "no check compared anything" in compared
    # The others' faults are no fault of it.
    well = [case for name, case in cases.items() if name.startswith("suites.well.toml.")]
    assert len(well) >= 3
    assert not any(case.result for case in well)
