"""Tokenizers of chemistry and proteins: the rules of the packages whose vocabularies they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer, BertTokenizer

import isotest
from isotest.data.load import open_data
from isotest.installed import installed

SUITES = Path(__file__).parents[2] / "suites"
SAMPLES = Path(isotest.__file__).parent / "samples"
SMILES = SUITES / "chemistry" / "smiles-tokenizer"
AMINO_ACIDS = SUITES / "proteins" / "amino-acid-tokenizer"


def texts(name: str) -> list[str]:
    lines = (SAMPLES / name / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def packaged(distribution: str, path: str) -> str:
    found = installed(distribution)
    assert found is not None, f"pip install --no-deps {distribution}"
    return (found.root / path).read_text(encoding="utf-8")


def test_reactions_are_cut_as_rxnmapper_cuts_them() -> None:
    """Its pattern is read from its source, which needs packages that are not here to import."""
    vocabulary = packaged(
        "rxnmapper", "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/vocab.txt"
    ).splitlines()
    source = packaged("rxnmapper", "rxnmapper/smiles_utils.py")
    literal = re.search(r'^SMI_REGEX_PATTERN = r"(.*)"$', source, re.MULTILINE)
    assert literal is not None
    ours = tokenizer(SMILES)
    for text in [*texts("reactions"), "C[C@@H](N)C(=O)[O-]", "F/C=C\\Cl", "C%12CC%12.[Na+]~[Cl-]"]:
        tokens = re.findall(literal[1], text)
        assert "".join(tokens) == text
        expected = [vocabulary.index(token) for token in ("[CLS]", *tokens, "[SEP]")]
        assert ours(text)["input_ids"] == expected
        assert ours.unk_token_id not in expected
    assert ours.get_vocab() == {token: number for number, token in enumerate(vocabulary)}


def test_proteins_are_cut_as_antiberty_cuts_them(tmp_path: Path) -> None:
    """It puts spaces between the letters and hands them to BertTokenizer."""
    content = packaged("antiberty", "antiberty/trained_models/vocab.txt")
    (tmp_path / "vocab.txt").write_text(content, encoding="utf-8")
    theirs = BertTokenizer(vocab=str(tmp_path / "vocab.txt"), do_lower_case=False)
    ours = tokenizer(AMINO_ACIDS)
    for text in [*texts("antibodies"), "ACDEFGHIKLMNPQRSTVWY"]:
        found = ours(text)["input_ids"]
        assert found == theirs(" ".join(text))["input_ids"]
        assert len(found) == len(text) + 2
        assert ours.unk_token_id not in found
    assert ours("QV[MASK]L")["input_ids"] == theirs("Q V [MASK] L")["input_ids"]
    assert ours.get_vocab() == theirs.get_vocab()


@pytest.mark.parametrize(
    ("name", "samples", "units"), [("reactions", 75, 25), ("antibodies", 56, 28)]
)
def test_the_samples_have_their_units(name: str, samples: int, units: int) -> None:
    data = list(open_data(f"sample:{name}", modality="text"))
    assert len(data) == samples == len(set(texts(name)))
    assert len({sample.unit for sample in data}) == units


def test_antibodies_are_variable_domains() -> None:
    """Two cysteines a domain apart, and near the end the J region: W or F, G, anything, G."""
    for text in texts("antibodies"):
        assert set(text) <= set("ACDEFGHIKLMNPQRSTVWY")
        assert 100 <= len(text) <= 145
        assert re.search(r"C.{55,95}C", text)
        assert re.search(r"[WFY][GS].[GS]", text[85:])


def test_reactions_have_two_sides_of_balanced_brackets() -> None:
    for text in texts("reactions"):
        left, product = text.split(">>")
        assert all(side.count("(") == side.count(")") for side in (left, product))
        assert left.count(".") >= 1
        assert "." not in product
