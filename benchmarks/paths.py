"""What evaluating paths costs: seconds for each path against seconds for a forward pass.

    python benchmarks/paths.py [--paths 10000] [--model bert] [--batch 32]

Paths are drawn uniformly from all 13^12 of an untrained model of 12 layers and 12 heads, 768 wide,
and evaluated on 8 sequences of 128 tokens, every output in full (8 × 128 × 768), and its rank
residual. Target: at most 1/20 of a forward pass for each path. Beside it: what taking the model
apart costs, and the exact sums of all paths of each length.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SEQUENCES, LENGTH = 8, 128


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=10_000)
    parser.add_argument("--model", choices=["bert", "gpt2"], default="bert")
    parser.add_argument("--batch", type=int, default=32)
    given = parser.parse_args()

    import numpy as np
    import torch
    import transformers

    from isotest.blocks.paths.enumeration import sample_paths
    from isotest.blocks.paths.evaluation import evaluate
    from isotest.blocks.paths.length import residuals
    from isotest.blocks.paths.model import fixed_model

    torch.manual_seed(0)
    name = {"bert": "Bert", "gpt2": "GPT2"}[given.model]
    config = getattr(transformers, f"{name}Config")()
    model: Any = getattr(transformers, f"{name}Model")(config).eval()
    ids = torch.randint(0, config.vocab_size, (SEQUENCES, LENGTH))

    def forward() -> None:
        with torch.inference_mode():
            model(input_ids=ids)

    forward()
    network = fixed_model(model, {"input_ids": ids})
    apart = seconds(lambda: fixed_model(model, {"input_ids": ids}))
    exact = seconds(network.by_length)
    paths = sample_paths(network.depth, network.heads, given.paths)
    found = np.empty((given.paths, SEQUENCES))

    # Forward passes in between, so that both see the same machine.
    passes, took, measured = [seconds(forward)], 0.0, 0.0
    start = time.perf_counter()
    for number, (rows, outputs) in enumerate(evaluate(network, paths, batch=given.batch), start=1):
        took += time.perf_counter() - start
        start = time.perf_counter()
        found[rows] = residuals(outputs, network.valid)
        measured += time.perf_counter() - start
        if number % max(1, given.paths // given.batch // 8) == 0:
            passes.append(seconds(forward))
        start = time.perf_counter()
    bare = statistics.median(passes)
    print(f"{given.model}, {torch.get_num_threads()} threads, {len(passes)} forward passes\n")
    print("| what | seconds | forward passes |")
    print("|---|---|---|")
    for what, each in (
        ("forward pass, median", bare),
        ("taken apart and compared", apart),
        ("exact sums of all lengths", exact),
        (f"{given.paths} paths", took),
        ("a path", took / given.paths),
        ("its rank residual", measured / given.paths),
    ):
        print(f"| {what} | {each:.4g} | {each / bare:.4g} |")
    print(f"\na path is 1/{bare * given.paths / took:.0f} of a forward pass")
    print(f"mean rank residual of a path {np.nanmean(found):.3g}")


if __name__ == "__main__":
    main()
