"""Tiny repositories: models that load, data sets of images and of text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, BertTokenizer

from isotest.models.seeding import seeded
from tests.data.images import encoded, plain
from tests.hub.server import Repository
from tests.models.test_path import Evil, classifier

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "89abcdef" * 5
READER, STRANGER = "hf_reader", "hf_stranger"
"""Tokens: of an account that accepted the terms of what is gated, and of one that did not."""

IMAGES = 12
TEXTS = {
    "train": [f"sentence number {number}" for number in range(8)],
    "test": [f"another one, {number}" for number in range(5)],
}
TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)


def models(base: Path) -> dict[str, Repository]:
    """The same tiny ViT in every form, and some that are not one."""
    names = ("vit", "sharded", "shards", "torch", "pickle", "code", "bare", "broken", "heavy")
    found = {f"tiny/{name}": Repository(base / name, COMMIT) for name in names} | _withheld(base)
    for name, repository in found.items():
        shard = "50KB" if "shard" in name else "50GB"
        # More than two of the pieces in which the hub's client takes a file.
        size = {"intermediate_size": 30_000} if name == "tiny/heavy" else {}
        classifier(**size).save_pretrained(repository.folder, max_shard_size=shard)
        (repository.folder / "evil.py").write_text("raise RuntimeError('ran')")
        (repository.folder / "README.md").write_text(f"# {name}")
    (found["tiny/bare"].folder / "model.safetensors").unlink()
    state = load_file(found["tiny/vit"].folder / "model.safetensors")
    broken: dict[str, Any] = {"vit": Evil()}
    for name, content in (("tiny/torch", state), ("tiny/pickle", broken)):
        (found[name].folder / "model.safetensors").unlink()
        torch.save(content, found[name].folder / "pytorch_model.bin")
    (found["tiny/code"].folder / "config.json").write_text(
        json.dumps({"model_type": "custom", "auto_map": {"AutoConfig": "evil.CustomConfig"}})
    )
    found["tiny/bert"] = Repository(base / "bert", COMMIT)
    write_bert(found["tiny/bert"].folder)
    for file in TOKENIZER_FILES:
        (found["tiny/vit"].folder / file).write_text(json.dumps({"this is": file}))
    return found


def write_bert(folder: Path) -> None:
    """A model of two layers whose tokenizer knows the words of the sentences."""
    words = sorted({word for texts in TEXTS.values() for text in texts for word in text.split()})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join([*special, ",", *words]))
    BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    with seeded(0):
        config = BertConfig(
            vocab_size=len(special) + 1 + len(words),
            hidden_size=16,
            intermediate_size=32,
            max_position_embeddings=32,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
        BertModel(config).save_pretrained(folder)


def data_sets(base: Path) -> dict[str, Repository]:
    """Twelve grey images in scenes of two, open or withheld; two splits of sentences."""
    pictures = {f"tiny/{name}": Repository(base / name, COMMIT) for name in ("scenes", "plain")}
    pictures |= _withheld(base)
    for repository in pictures.values():
        write_scenes(repository.folder)
    names = ("sentences", "scripted", "days")
    texts = {f"tiny/{name}": Repository(base / name, COMMIT) for name in names}
    for repository in texts.values():
        write_sentences(repository.folder)
    card = "---\nconfigs:\n"
    for name, split in (("day", "train"), ("night", "test")):
        card += f"- config_name: {name}\n  data_files:\n"
        card += f"  - split: train\n    path: data/{split}-*\n"
    (texts["tiny/days"].folder / "README.md").write_text(f"{card}---\n")
    (texts["tiny/scripted"].folder / "scripted.py").write_text("raise RuntimeError('ran')")
    return {f"datasets/{name}": repository for name, repository in (pictures | texts).items()}


def _withheld(base: Path) -> dict[str, Repository]:
    return {
        "tiny/gated": Repository(base / "gated", COMMIT, gated=True, readers=(READER,)),
        "tiny/members": Repository(base / "members", COMMIT, gated=True, readers=(READER,)),
        "tiny/private": Repository(base / "private", COMMIT, private=True, readers=(READER,)),
        "tiny/locked": Repository(base / "locked", COMMIT, locked=True),
        "tiny/down": Repository(base / "down", COMMIT, down=True),
    }


def write_scenes(folder: Path) -> None:
    """One split, ``validation``, of images with grey values 0, 20, …"""
    import datasets

    features = datasets.Features({"image": datasets.Image(), "scene": datasets.Value("int64")})
    rows = {
        "image": [
            {"bytes": encoded(plain(20 * grey)), "path": f"{grey}.png"} for grey in range(IMAGES)
        ],
        "scene": [number // 2 for number in range(IMAGES)],
    }
    _write(folder, {"validation": datasets.Dataset.from_dict(rows, features=features)})


def write_sentences(folder: Path) -> None:
    """Two splits of a column ``text``."""
    import datasets

    _write(
        folder, {split: datasets.Dataset.from_dict({"text": rows}) for split, rows in TEXTS.items()}
    )


def _write(folder: Path, splits: dict[str, Any]) -> None:
    (folder / "data").mkdir(parents=True)
    for split, rows in splits.items():
        rows.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    card = "---\nconfigs:\n- config_name: default\n  data_files:\n"
    for split in splits:
        card += f"  - split: {split}\n    path: data/{split}-*\n"
    (folder / "README.md").write_text(f"{card}---\n")
