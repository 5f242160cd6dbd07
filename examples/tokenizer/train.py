"""Train the tokenizer that ships with isotest for untrained language models.

    python examples/tokenizer/train.py --output isotest/samples/tokenizer/tokenizer.json

A byte-level BPE of 4,096 entries on the shipped passages: it can encode any text, and an untrained
model's embeddings are exchangeable, so that which tokenizer names them changes no statistic beside
how often tokens repeat.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import isotest

PASSAGES = Path(isotest.__file__).parent / "samples" / "passages" / "passages.jsonl"
ENTRIES = 4096


def main() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the tokenizer.json to write")
    output: Path = parser.parse_args().output
    texts = [json.loads(line)["text"] for line in PASSAGES.read_text("utf-8").splitlines()]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=ENTRIES,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    output.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(output))
    print(f"{output}: {tokenizer.get_vocab_size()} entries from {len(texts)} passages")


if __name__ == "__main__":
    main()
