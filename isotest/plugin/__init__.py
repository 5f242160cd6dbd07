"""The pytest plugin. Without ``--isotest`` it registers its options and does nothing else."""

from __future__ import annotations

import pytest

from isotest.plugin.options import add_options, is_enabled


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the working part of the plugin when the run asks for it."""
    config.addinivalue_line(
        "markers",
        "isotest_block(factory, *, width, heads, causal=None, ...): try the properties of "
        "transformer blocks on what the factory makes, a test for each (see "
        "isotest.testing.parametrize_with_properties)",
    )
    if is_enabled(config):
        from isotest.plugin.run import start

        start(config)
        return
    for argument in config.args:
        if argument.partition("::")[0].endswith(".toml"):
            raise pytest.UsageError(
                f"{argument} is an isotest suite: add --isotest to measure and gate its models"
            )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of a block one item for each property."""
    if metafunc.definition.get_closest_marker("isotest_block") is not None:
        from isotest.plugin.blocks import parametrize

        parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Judge the property of an item before its body runs."""
    mark = item.get_closest_marker("isotest_block")
    # A suite's entry has it, too, bare, where its source is a block: like a mark for each scheme.
    if mark is not None and (mark.args or mark.kwargs or isinstance(item, pytest.Function)):
        from isotest.plugin.blocks import judge

        judge(item)


@pytest.fixture
def isotest_profile(request: pytest.FixtureRequest) -> object:
    """The profile of one model of the suites beside the test, a test run for each model.

    Requires ``--isotest``: a test that asks for it cannot pass unmeasured.
    """
    entry = getattr(request, "param", None)
    if entry is None:
        pytest.fail(
            f"{request.node.nodeid} uses isotest_profile, which measures models: run it with "
            "--isotest (a test like this must not pass unmeasured)",
            pytrace=False,
        )
    from isotest.plugin.run import profile_of

    return profile_of(entry)
