"""The command ``isotest``: look at profiles, compare them, test a suite, print the schema."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from isotest.errors import IsotestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isotest.profile import Profile

    # argparse has no public name for what add_subparsers returns.
    _Commands = argparse._SubParsersAction

_REMEDY = "name a file that isotest wrote"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; ``argv`` is ``sys.argv[1:]`` unless given.

    Returns:
        0 if all is well, 1 if a self-test found a fault unnoticed, 2 if the command could not be
        carried out: then one line on stderr says why.
    """
    _let_output_pass()
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        code = run(arguments)
    except IsotestError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # The reader has seen enough, as in `isotest show … | head`.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _let_output_pass() -> None:
    """A terminal that lacks a character shows a '?' in its place, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _refuse(message: str) -> int:
    sys.stderr.write(f"isotest: {message}\n")
    return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SystemExit(_refuse(f"{message}; see '{self.prog} --help'"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="isotest",
        description="Look at what 'pytest --isotest' measures: the geometry of a model's hidden "
        "representations, layer by layer.",
    )
    parser.add_argument("--version", action="version", version=f"isotest {version('isotest')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_show(commands)
    _add_diff(commands)
    _add_selftest(commands)
    _add_schema(commands)
    return parser


def _add_show(commands: _Commands[_Parser]) -> None:
    command = commands.add_parser(
        "show",
        help="print a profile's curves and the conditions they were measured under",
        description="Print the curves of a profile or baseline, value ± standard error, a layer a "
        "line, and the conditions it was measured under. With --figure, print for every model "
        "whether drift explains its anisotropy, from a report of 'pytest --isotest "
        "--isotest-json', or from baselines, without measuring anything.",
    )
    command.add_argument(
        "file",
        type=Path,
        metavar="FILE.json",
        help="a profile or baseline; with --figure also a report, or a folder of baselines",
    )
    _add_metric(command)
    command.add_argument(
        "--figure",
        type=int,
        choices=(5, 11),
        help="the table of figure 5 (Spearman) or 11 (Pearson) of Godey et al. (2023)",
    )
    command.add_argument("--json", action="store_true", help="with --figure: JSON, for programs")
    command.set_defaults(run=_show)


def _add_diff(commands: _Commands[_Parser]) -> None:
    command = commands.add_parser(
        "diff",
        help="compare two profiles, layer by layer",
        description="Compare two profiles or baselines: the differences between their conditions, "
        "and the change of every curve with its error bar. Profiles of the same samples are "
        "compared block by block, which makes small changes visible.",
    )
    command.add_argument("before", type=Path, metavar="BEFORE.json", help="a profile or baseline")
    command.add_argument("after", type=Path, metavar="AFTER.json", help="another one")
    _add_metric(command)
    command.add_argument("--json", action="store_true", help="print JSON, for programs")
    command.set_defaults(run=_diff)


def _add_metric(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="only this metric; may be given several times",
    )


def _add_selftest(commands: _Commands[_Parser]) -> None:
    command = commands.add_parser(
        "selftest",
        help="plant faults in a suite's models and demand that its checks object",
        description="Plant faults in the models of a suite (a common direction, a collapsed rank, "
        "a rogue dimension, …), measure, and demand that the suite's own checks are red, and green "
        "again without them. Of each fault, the smallest strength that the checks still notice is "
        "searched: below it is what the gate would miss. Some 30 measurements an entry; what goes "
        "on is said on stderr. Exit code 1 if a full fault goes unnoticed.",
    )
    command.add_argument("suite", type=Path, metavar="SUITE.toml", help="the suite to test")
    command.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="only this entry; may be given several times",
    )
    command.add_argument(
        "--quick", action="store_true", help="the full faults only; some 10 measurements an entry"
    )
    command.add_argument("--json", action="store_true", help="print JSON, for programs")
    command.add_argument(
        "--suites",
        type=Path,
        default=Path("suites"),
        metavar="DIR",
        help="the suites folder, which baselines mirror (default: %(default)s)",
    )
    command.add_argument(
        "--baselines",
        type=Path,
        default=Path("baselines"),
        metavar="DIR",
        help="the baselines folder (default: %(default)s)",
    )
    command.add_argument(
        "--device", default="cpu", metavar="DEVICE", help="where to measure (default: %(default)s)"
    )
    command.add_argument(
        "--download", action="store_true", help="let sources reach the hub, not only caches"
    )
    command.set_defaults(run=_selftest)


def _add_schema(commands: _Commands[_Parser]) -> None:
    command = commands.add_parser(
        "schema",
        help="print the JSON Schema of suite files",
        description="Print the JSON Schema of suite files, with which editors complete and check "
        "them: isotest schema > isotest.schema.json",
    )
    command.set_defaults(run=_schema)


def _read(path: Path) -> Profile:
    from isotest.profile_json import read_profile

    return read_profile(path, remedy=_REMEDY)


def _write(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    # So that it is here that a reader who went away is noticed.
    sys.stdout.flush()


def _say(line: str) -> None:
    """What goes on, beside the output: for a person who waits."""
    sys.stderr.write(f"isotest: {line}\n")
    sys.stderr.flush()


def _show(arguments: argparse.Namespace) -> int:
    if arguments.figure is not None:
        return _figure(arguments)
    if arguments.json:
        raise IsotestError("--json goes with --figure: a profile is a JSON file itself")
    from isotest.report.show import metrics_of, show_lines

    profile = _read(arguments.file)
    try:
        metrics = metrics_of(profile, arguments.metric)
    except IsotestError as error:
        raise IsotestError(f"{arguments.file}: {error}") from None
    _write(show_lines(profile, metrics, width=_terminal_width()))
    return 0


def _figure(arguments: argparse.Namespace) -> int:
    from isotest.report.figure import figure_document, read_rows
    from isotest.report.figure_table import figure_lines

    if arguments.metric:
        raise IsotestError("--metric does not go with --figure, which has columns of its own")
    rows = read_rows(arguments.file)
    if arguments.json:
        document = figure_document(rows, arguments.figure)
        _write([json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)])
    else:
        _write(figure_lines(rows, arguments.figure, width=_terminal_width()))
    return 0


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _diff(arguments: argparse.Namespace) -> int:
    from isotest.report.diff import diff_document, diff_lines
    from isotest.report.show import metrics_of

    before, after = _read(arguments.before), _read(arguments.after)
    metrics = list(dict.fromkeys([*metrics_of(before), *metrics_of(after)]))
    for name in arguments.metric:
        if name not in metrics:
            metrics_of(after, [name])
    metrics = arguments.metric or metrics
    if arguments.json:
        document = diff_document(before, after, metrics)
        _write([json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)])
    else:
        _write(
            [
                f"before  {arguments.before}: {_called(before)}",
                f"after   {arguments.after}: {_called(after)}",
                *diff_lines(before, after, metrics),
            ]
        )
    return 0


def _called(profile: Profile) -> str:
    suite = f" of {profile.suite}" if profile.suite else ""
    return f"{profile.model}{suite}, {profile.provenance.source}"


def _selftest(arguments: argparse.Namespace) -> int:
    from isotest.entry import Settings
    from isotest.report.selftest import selftest_document, selftest_lines
    from isotest.selftest import STRENGTHS, selftest

    found = selftest(
        arguments.suite,
        suites=arguments.suites,
        baselines=arguments.baselines,
        models=arguments.model,
        settings=Settings(device=arguments.device, download=arguments.download),
        strengths=STRENGTHS[:1] if arguments.quick else STRENGTHS,
        say=_say,
    )
    if arguments.json:
        document = selftest_document(found)
        _write([json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)])
    else:
        _write(selftest_lines(found, width=_terminal_width()))
    return 0 if found.passed else 1


def _schema(_: argparse.Namespace) -> int:
    from isotest.suite import suite_schema

    _write([json.dumps(suite_schema(), indent=2, ensure_ascii=False)])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
