"""``python -m isotest.blocks.tasks circle``: train its networks anew, or draw what is kept."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from isotest.blocks.tasks.config import DESIGNS
from isotest.blocks.tasks.identity import VARIANTS
from isotest.errors import IsotestError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from isotest.blocks.tasks.circle import CircleNetwork
    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.identity import Variant
    from isotest.blocks.tasks.picture import Row

_TRAINED_BY = {"fitted": "trained until it predicts well", "authors": "trained as the authors do"}
_SHOWN = (1, 3, 10, 30, 100, 300)
_SEEDS = 4
_MET = 1e-6
"""Apart by less than this, two points count as one."""


def add_circle(command: argparse.ArgumentParser) -> None:
    """Give the subcommand its options and its ``run``."""
    command.add_argument(
        "--design",
        choices=(*DESIGNS, "all"),
        default="all",
        help="how the blocks are built (default: %(default)s)",
    )
    command.add_argument(
        "--training",
        choices=tuple(_TRAINED_BY),
        default="fitted",
        help="until the prediction is good, or with the authors' learning rate and epochs "
        "(default: %(default)s)",
    )
    command.add_argument(
        "--picture", type=Path, metavar="FILE.svg", help="draw the trajectories into this file"
    )
    command.add_argument(
        "--from",
        dest="sources",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.safetensors",
        help="with --picture: train nothing, draw what is in this file; can be given again, for "
        "one row each",
    )
    command.set_defaults(run=_run)


def file_name(design: Design, training: str) -> str:
    """Of the weights of a design.

    >>> file_name("bert", "fitted"), file_name("bert", "authors")
    ('circle-bert.safetensors', 'circle-authors-bert.safetensors')
    """
    parts = ("circle", design) if training == "fitted" else ("circle", training, design)
    return f"{'-'.join(parts)}.safetensors"


def _run(arguments: argparse.Namespace) -> int:
    picture: Path | None = arguments.picture
    if picture is not None and picture.suffix != ".svg":
        raise IsotestError(f"--picture: expected a file that ends in .svg, found {picture}")
    if arguments.sources and picture is None:
        raise IsotestError("--from names what is drawn; say where to with --picture FILE.svg")
    rows = (
        [_kept_row(file) for file in arguments.sources] if arguments.sources else _train(arguments)
    )
    if picture is not None:
        from isotest.atomic import write_atomically
        from isotest.blocks.tasks.__main__ import say
        from isotest.blocks.tasks.picture import picture as drawn

        try:
            write_atomically(drawn(rows).encode(), picture)
        except OSError as error:
            raise IsotestError(f"{picture}: cannot be written ({error})") from error
        say(f"drawn into {picture}")
    return 0


def _train(arguments: argparse.Namespace) -> list[Row]:
    from isotest.blocks.tasks.__main__ import say, writable
    from isotest.blocks.tasks.circle_training import RECIPES, train_circle

    training = arguments.training
    folder = writable(arguments.to)
    rows = []
    for design in DESIGNS if arguments.design == "all" else (arguments.design,):
        start = time.perf_counter()
        epochs = len(VARIANTS) * RECIPES[training].settings.epochs
        with tqdm(total=epochs, desc=f"circle {design}", unit="epoch", leave=False) as bar:

            def show(_: int, __: float, bar: tqdm[NoReturn] = bar) -> None:
                bar.update()

            seeds = range(arguments.seed, arguments.seed + _SEEDS)
            fit = train_circle(design, training, seeds=seeds, progress=show)
        file = folder / file_name(design, training)
        fit.save(file)
        say(f"circle {design}: {time.perf_counter() - start:.0f} s; {file}")
        _report(fit.networks, fit.errors)
        rows.append(_row(design, training, fit.networks))
    return rows


def _report(
    networks: Mapping[Variant, Mapping[int, CircleNetwork]],
    errors: Mapping[Variant, Sequence[float]],
) -> None:
    from isotest.blocks.tasks.__main__ import say
    from isotest.blocks.tasks.circle import STEP, starting_pairs
    from isotest.blocks.tasks.recurrence import measure_recurrence

    for variant, of_seeds in networks.items():
        off = ", ".join(f"{error / STEP:.2f}" for error in errors[variant])
        say(f"  {variant}: the next point is missed by {off} steps of the circle")
        for step in measure_recurrence(of_seeds, starting_pairs(16), _SHOWN, name=variant):
            apart = ", ".join(f"{distance:.4f}" for distance in step.pair_distance)
            say(f"    {step.layer}: {apart} apart")


def _kept_row(file: Path) -> Row:
    from isotest.blocks.tasks.circle_training import load_circle, said_of

    design, training = said_of(file)
    return _row(
        design,
        training,
        {variant: load_circle(file, design=design, variant=variant) for variant in VARIANTS},
    )


def _row(
    design: Design, training: str, networks: Mapping[Variant, Mapping[int, CircleNetwork]]
) -> Row:
    """The first network of each variant, from the first pair of all, as the authors draw it."""
    from isotest.blocks.tasks.circle import starting_pairs
    from isotest.blocks.tasks.picture import Panel, Row
    from isotest.blocks.tasks.recurrence import STEPS, pair_distances, roll_out

    panels = []
    for variant, of_seeds in networks.items():
        rolled = [
            roll_out(network, starting_pairs(1), STEPS, name=f"{variant}, seed {seed}")[:, 0]
            for seed, network in of_seeds.items()
        ]
        met = sum(bool(pair_distances(trajectories[-1]) < _MET) for trajectories in rolled)
        note = f"together in {met} of {len(rolled)} trainings"
        panels.append(Panel(_TITLES[variant], rolled[0], note))
    return Row(f"{design}, {_TRAINED_BY[training]}", tuple(panels))


_TITLES: Mapping[Variant, str] = {
    "attention": "attention alone",
    "skip": "with a skip",
    "mlp": "with an MLP",
    "both": "with both",
}
