"""One hub and one client process for the tests that can share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hub.client import Client
from tests.hub.repositories import READER, STRANGER, data_sets, models
from tests.hub.server import Hub, Repository, served

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Repository]:
    base = tmp_path_factory.mktemp("repositories")
    return {**models(base / "models"), **data_sets(base / "data")}


@pytest.fixture(scope="package")
def _hub(repositories: dict[str, Repository]) -> Iterator[Hub]:
    with served(repositories, (READER, STRANGER)) as hub:
        yield hub


@pytest.fixture
def hub(_hub: Hub) -> Iterator[Hub]:
    """Nothing asked for yet, and nothing wrong with any file."""
    _hub.asked.clear()
    yield _hub
    _hub.faults.clear()


@pytest.fixture(scope="package")
def client(_hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A process that has fetched what the tests before had it fetch."""
    client = Client(_hub.endpoint, tmp_path_factory.mktemp("client"))
    yield client
    client.close()
