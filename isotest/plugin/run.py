"""The working part of the plugin: registered only when a run asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from isotest.baselines import BaselineStore
from isotest.cache import ProfileCache
from isotest.entry import Settings
from isotest.errors import IsotestError, MissingError, SuiteError
from isotest.plugin import collection
from isotest.plugin.collection import CheckItem, SuiteFile
from isotest.plugin.controller import Controller
from isotest.plugin.entries import Bench, Entry
from isotest.plugin.ledger import Reporter
from isotest.plugin.progress import ProgressDisplay
from isotest.plugin.settings import Options, read_options
from isotest.plugin.xdist import EntryScheduling, is_worker, tell_controller, threads_of_worker
from isotest.source import MODEL_SCHEMES, did_you_mean
from isotest.suite import MODALITIES

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from isotest.suite import ModelSpec, Suite


def start(config: pytest.Config) -> None:
    """Validate the options and register the hooks.

    Raises:
        pytest.UsageError: an option has a bad value.
    """
    options = read_options(config)
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        if not options.suites.is_dir():
            raise pytest.UsageError(
                f"--isotest without a path runs the suites folder, and {options.suites} is not "
                "there: name a suite, or set isotest_suites in the ini file"
            )
        config.args = [str(options.suites)]
    for marker in (*MODALITIES, *MODEL_SCHEMES):
        config.addinivalue_line("markers", f"isotest_{marker}: entries of this modality or source")
    run = Run(config, options)
    config.pluginmanager.register(run, "isotest-run")
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(EntryScheduling(), "isotest-scheduling")
    if not is_worker(config):
        config.pluginmanager.register(Controller(config, run), "isotest-controller")


class Run:
    """Collection and the items of this process."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.options = options
        self.rootpath = config.rootpath
        self.store = BaselineStore(options.baselines)
        self._bench = Bench(
            options=options,
            settings=Settings(
                device=options.device,
                dtype=options.dtype,
                samples=options.samples,
                batch_size=options.batch_size,
                metrics=options.metrics,
                download=options.download,
                trust_remote_code=options.trust_remote_code,
            ),
            store=self.store,
            cache=ProfileCache(),
            progress=ProgressDisplay(config),
            rootpath=config.rootpath,
        )
        self._threads = threads_of_worker(config)
        self._suites: dict[Path, Suite] = {}
        self._entries: dict[tuple[Path, str], Entry] = {}
        self._reporter = Reporter()

    def suite(self, path: Path) -> Suite:
        """The suite in ``path``, loaded once.

        Raises:
            SuiteError: it cannot be understood, or its baselines would mix with another suite's.
        """
        if path not in self._suites:
            suite = collection.load(self, path)
            for other in self._suites.values():
                if other.id == suite.id:
                    raise SuiteError(
                        f"shares the id {suite.id!r}, and so its baselines, with {other.path}; "
                        "rename one of the two files",
                        path,
                    )
                if _dotted(other.path) == _dotted(path):
                    raise SuiteError(
                        f"is the same as {other.path} in JUnit, where folders are joined by dots; "
                        "rename one of the two files",
                        path,
                    )
            collisions = self.store.collisions([(suite.id, spec.name) for spec in suite.models])
            if collisions:
                raise SuiteError("; ".join(collisions), path)
            self._suites[path] = suite
        return self._suites[path]

    def entry(self, suite: Suite, spec: ModelSpec) -> Entry:
        """The entry of this process for one model of a suite."""
        return self._entries.setdefault((suite.path, spec.name), Entry(self._bench, suite, spec))

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
        """Every ``*.toml`` that is collected is a suite."""
        if file_path.suffix != ".toml" or file_path.name in collection.NOT_SUITES:
            return None
        node = SuiteFile.from_parent(parent, path=file_path)
        node.run = self
        return node

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize ``isotest_profile`` over the models of the suites beside the test."""
        if "isotest_profile" not in metafunc.fixturenames:
            return
        folder = metafunc.definition.path.parent
        paths = sorted(p for p in folder.glob("*.toml") if p.name not in collection.NOT_SUITES)
        if not paths:
            raise pytest.Collector.CollectError(
                f"{metafunc.definition.nodeid} uses isotest_profile, and no suite (*.toml) is "
                f"beside it in {folder}"
            )
        try:
            suites = [self.suite(path) for path in paths]
        except IsotestError as error:
            raise pytest.Collector.CollectError(str(error)) from None
        entries = [self.entry(suite, spec) for suite in suites for spec in suite.models]
        metafunc.parametrize(
            "isotest_profile",
            entries,
            indirect=True,
            ids=[
                f"{e.suite.path.stem}-{e.spec.name}" if len(suites) > 1 else e.spec.name
                for e in entries
            ],
        )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A name in ``--isotest-model`` must be one entry, no more and no less.

        Raises:
            pytest.UsageError: it is none or several.
        """
        try:
            self._require_stand_ins()
        except pytest.UsageError as error:
            tell_controller(session.config, error)
            raise

    def _require_stand_ins(self) -> None:
        for name in self.options.stand_ins:
            owners = [
                suite.path
                for suite in self._suites.values()
                for spec in suite.models
                if spec.name == name
            ]
            if not owners:
                known = {spec.name for suite in self._suites.values() for spec in suite.models}
                hint = did_you_mean(name, known) if known else "; no suite was collected"
                raise pytest.UsageError(f"--isotest-model: no entry is named {name!r}{hint}")
            if len(owners) > 1:
                listing = ", ".join(str(path) for path in owners)
                raise pytest.UsageError(
                    f"--isotest-model: several suites have an entry {name!r} ({listing}); run one"
                )

    def pytest_runtestloop(self) -> None:
        """Share the processor between the workers before torch counts its cores."""
        if self._threads is not None:
            import os

            os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(self._threads))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the check's record travel on its report."""
        report = yield
        if isinstance(item, CheckItem) and call.when == "call":
            self._reporter.attach(item, report)
        return report


def _dotted(path: Path) -> str:
    return path.as_posix().replace("/", ".")


def profile_of(entry: Any) -> Any:
    """What the fixture ``isotest_profile`` gives to a test."""
    try:
        return entry.profile()
    except MissingError as error:
        if entry.may_skip:
            pytest.skip(str(error))
        pytest.fail(str(error), pytrace=False)
    except IsotestError as error:
        pytest.fail(str(error), pytrace=False)
