"""Settings of the whole test suite. Plugins are named here so that xdist's controller loads them too."""

import asyncio
import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from lmms_eval.utils import redaction

for _library in ("OMP", "OPENBLAS", "MKL"):  # also for commands under test: two processes of tests share the cores
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# No test asks the hub, whose package reads this once, when the first test module imports it. Those of a hub on loopback
# switch it on again.
os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

# No test depends on the packs of whoever runs it, or of earlier tests. Those of the vectors are in another folder
# (tests/parity/packs.py).
os.environ["LMMS_EVAL_PACKS"] = os.path.join(tempfile.gettempdir(), f"lmms-eval-tests-without-packs-{os.getpid()}")

pytest_plugins = ("tests.parity.plugin",)

settings.register_profile("shared_machine", deadline=None)  # a busy machine must not fail a property
settings.load_profile("shared_machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz",
        action="store_true",
        help="10,000 cases per property instead of 200, texts of a megabyte instead of a fifth (minutes, not seconds)",
    )


SLOW = Path(__file__).with_name("slow.txt")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that only ``make test-slow`` runs."""
    slow = tuple(line for line in SLOW.read_text().splitlines() if line and not line.startswith("#"))
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among the modules and tests while they are made: nearly all of them stay."""
    gc.disable()
    yield
    gc.enable()


FREEZE, UNFREEZE = gc.freeze, gc.unfreeze
"""The real ones."""
gc.freeze = gc.unfreeze = lambda: None  # for fixtures of modules and sessions too: runs in them would thaw everything
_COLLECT = gc.collect
_PAUSE = SimpleNamespace(
    freeze=lambda: setattr(gc, "collect", lambda *_: 0), unfreeze=lambda: setattr(gc, "collect", _COLLECT)
)
_modules, _tests = 0, 0


@pytest.fixture(autouse=True)
def _no_garbage_among_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full collection takes a second with the modules of all tests: it looks at what came after them."""
    global _modules, _tests
    _tests += 1
    if len(sys.modules) > _modules + 50 or _tests % 200 == 0:
        gc.collect()
        FREEZE()
        _modules = len(sys.modules)
    if (differences := sys.modules.get("lmms_eval.stats.differences")) is not None:
        monkeypatch.setattr(differences, "gc", _PAUSE, raising=False)  # a library collects at each call in between


def pytest_configure(config: pytest.Config) -> None:
    """Also in xdist's processes, whose command line does not hold the flag."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell that starts the tests in the background ignores it, and every command under test would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--fuzz"):
        os.environ["LMMS_EVAL_TEST_FUZZ"] = "1"


@pytest.fixture(autouse=True)
def _no_secret_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are learnt for the rest of a process; a test begins without those of the tests before it."""
    monkeypatch.setattr(redaction, "_known", redaction._Known())


_OWN_LOGGER = logging.getLogger("lmms_eval")
_LOGGING = _OWN_LOGGER.handlers[:], _OWN_LOGGER.level, _OWN_LOGGER.propagate
"""As it was before any test."""


@pytest.fixture(autouse=True)
def _own_logging_and_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands that a test, or a fixture of several tests, runs in this process set up logging and export VERBOSITY:
    each test begins without."""
    monkeypatch.setenv("VERBOSITY", "INFO")
    _restore_logging()
    yield
    _restore_logging()


def _restore_logging() -> None:
    handlers, level, propagate = _LOGGING
    if (_OWN_LOGGER.handlers, _OWN_LOGGER.level, _OWN_LOGGER.propagate) == _LOGGING:
        return
    _OWN_LOGGER.handlers[:], _OWN_LOGGER.propagate = handlers, propagate
    _OWN_LOGGER.setLevel(level)  # also forgets what loggers below remember of it


_REPOSITORY = Path(__file__).parents[1]
_MADE = {"build", "dist", "site"}
"""Folders that the commands of the Makefile make, perhaps while the tests run."""
_seen = set(os.listdir(_REPOSITORY))


@pytest.fixture(autouse=True)
def _nothing_is_left_in_the_repository() -> Iterator[None]:
    yield
    left = {name for name in os.listdir(_REPOSITORY) if not name.startswith(".")} - _seen - _MADE
    _seen.update(left)
    assert not left, f"this test, or one that ran in another process meanwhile, wrote {sorted(left)} in {_REPOSITORY}"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium for all tests of a process: its driver keeps the event loop of the thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are looked at with playwright: extra dev")
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("pages are looked at in Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def _no_loop_of_a_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """The driver's event loop stays the running one of the thread; tests without a browser run loops of their own."""
    if "chromium" in request.fixturenames or (loop := asyncio._get_running_loop()) is None:
        yield
        return
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)
