"""Train a small vision transformer on handwritten digits, in under a minute on two cores.

    python examples/digits/train.py --seed 1 --output runs/digits-1

The folder that it writes can be gated: ``--isotest-model digits=path:runs/digits-1``. ``--fault``
plants a mistake that does not stop a training run but ruins what it learns:

- ``equal-labels``: all labels are equal, as after a wrong join of images and labels;
- ``learning-rate``: the learning rate is twenty times too high.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cross_entropy
from transformers import ViTConfig, ViTForImageClassification
from transformers.utils.logging import disable_progress_bar

from isotest.data.digits import load_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

FAULTS = ("equal-labels", "learning-rate")
EPOCHS = 35
BATCH = 64
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.05
LABEL_SMOOTHING = 0.1
WARM_UP = 0.1  # share of all steps


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True, help="of weights and batches")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="new folder")
    parser.add_argument("--fault", choices=FAULTS, help="plant this mistake")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.seed < 0:
        parser.error(f"--seed is {options.seed}, expected 0 or more")
    if options.epochs < 1:
        parser.error(f"--epochs is {options.epochs}, expected at least 1")
    if options.output.exists() and (not options.output.is_dir() or any(options.output.iterdir())):
        parser.error(f"--output {options.output} exists and is not an empty folder; name a new one")

    # One thread is nearly as fast on matrices this small, and its sums do not depend on how many
    # cores the machine has.
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    model = new_model()
    pixels, labels = digits("training")
    if options.fault == "equal-labels":
        labels = torch.zeros_like(labels)
    learning_rate = LEARNING_RATE * (20 if options.fault == "learning-rate" else 1)
    train(model, pixels, labels, options.epochs, learning_rate)
    accuracy = held_out_accuracy(model)
    disable_progress_bar()
    model.save_pretrained(options.output)
    print(f"held-out accuracy {accuracy:.2%}; saved in {options.output}")


def new_model() -> ViTForImageClassification:
    return ViTForImageClassification(
        ViTConfig(
            image_size=8,
            num_channels=1,
            patch_size=2,
            num_hidden_layers=6,
            hidden_size=64,
            num_attention_heads=4,
            intermediate_size=128,
            id2label={digit: str(digit) for digit in range(10)},
            label2id={str(digit): digit for digit in range(10)},
            initializer_range=0.04,  # the default, 0.02, is meant for a width of 768
        )
    )


def digits(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels from -1 to 1, of shape (n, 1, 8, 8), and labels, of shape (n,)."""
    images, labels = load_digits(split)
    pixels = torch.from_numpy(images).float() / 127.5 - 1
    return pixels.unsqueeze(1), torch.from_numpy(labels)


def train(
    model: ViTForImageClassification,
    pixels: torch.Tensor,
    labels: torch.Tensor,
    epochs: int,
    learning_rate: float,
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=WEIGHT_DECAY)
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=steps, pct_start=WARM_UP
    )
    started = time.monotonic()
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for batch in torch.randperm(len(labels)).split(BATCH):
            logits = model(pixels[batch]).logits
            loss = cross_entropy(logits, labels[batch], label_smoothing=LABEL_SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(
            f"epoch {epoch:2d} of {epochs}: loss {total / len(labels):.4f}, "
            f"held-out accuracy {held_out_accuracy(model):.2%}, "
            f"{time.monotonic() - started:.0f} s",
            file=sys.stderr,
        )


@torch.no_grad()
def held_out_accuracy(model: ViTForImageClassification) -> float:
    model.eval()
    pixels, labels = digits("held-out")
    right = model(pixels).logits.argmax(-1) == labels
    return float(right.float().mean())


if __name__ == "__main__":
    main()
