"""``python -m isotest.blocks.tasks TASK``: train the networks of a task anew."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tqdm import tqdm

from isotest.blocks.tasks.circle_command import add_circle
from isotest.blocks.tasks.config import DESIGNS
from isotest.blocks.tasks.identity import KEPT
from isotest.errors import IsotestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; ``argv`` is ``sys.argv[1:]`` unless given.

    Returns:
        0 if all is well, 2 if the command could not be carried out: one line on stderr says why.
    """
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except IsotestError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130


def _refuse(message: str) -> int:
    sys.stderr.write(f"isotest.blocks.tasks: {message}\n")
    return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SystemExit(_refuse(f"{message}; see '{self.prog} --help'"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m isotest.blocks.tasks",
        description="Train the small networks whose paths and steps the suites of suites/rank "
        "measure, on one thread, and write their weights.",
    )
    commands = parser.add_subparsers(metavar="TASK", required=True)
    for name, add in TRAINERS.items():
        command = commands.add_parser(name)
        command.add_argument(
            "--seed",
            type=_seed,
            default=0,
            metavar="N",
            help="of the weights, the order and the draw of examples (default: %(default)s)",
        )
        command.add_argument(
            "--to",
            type=Path,
            default=KEPT,
            metavar="FOLDER",
            help="where the weights go (default: where isotest keeps those that come with it)",
        )
        add(command)
    return parser


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {text!r}")
    return seed


def writable(folder: Path) -> Path:
    """A folder that files can be written to, made if it is not there.

    Raises:
        IsotestError: they cannot.
    """
    remedy = "name another folder with --to FOLDER"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IsotestError(f"{folder}: cannot be made ({error}); {remedy}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise IsotestError(f"{folder}: cannot be written to; {remedy}")
    return folder


def say(line: str) -> None:
    """A line of what came out."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _paths(command: argparse.ArgumentParser) -> None:
    """A task of :data:`isotest.blocks.tasks.task.TASKS`."""
    name = command.prog.rpartition(" ")[2]
    command.add_argument(
        "--design",
        choices=(*DESIGNS, "all"),
        default="all",
        help="how the blocks are built (default: %(default)s)",
    )
    command.set_defaults(run=lambda arguments: _train_paths(name, arguments))


def _train_paths(name: str, arguments: argparse.Namespace) -> int:
    from isotest.blocks.tasks.task import TASKS
    from isotest.blocks.tasks.trained import train_task

    folder = writable(arguments.to)
    for design in DESIGNS if arguments.design == "all" else (arguments.design,):
        epochs = TASKS[name].settings(design).epochs
        start = time.perf_counter()
        with tqdm(total=epochs, desc=f"{name} {design}", unit="epoch", leave=False) as bar:

            def show(_: int, loss: float, bar: tqdm[NoReturn] = bar) -> None:
                bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
                bar.update()

            trained = train_task(name, design, seed=arguments.seed, progress=show)
        file = folder / f"{name}-{design}.safetensors"
        trained.save(file)
        fresh = trained.test_accuracy
        say(
            f"{name} {design}: accuracy {trained.train_accuracy:.4f} on what it learnt from, "
            f"{'no other examples' if fresh is None else f'{fresh:.4f} on fresh examples'}; "
            f"{time.perf_counter() - start:.0f} s; {file}"
        )
    return 0


TRAINERS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "memorization": _paths,
    "sorting": _paths,
    "convex-hull": _paths,
    "circle": add_circle,
}
"""What can be trained: the name of a subcommand, and what gives it its options and its ``run``."""


if __name__ == "__main__":
    raise SystemExit(main())
