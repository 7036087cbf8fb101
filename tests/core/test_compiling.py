"""Kernels are compiled once, a wait for them is announced, and where they cannot be kept they are compiled anew."""

import importlib.util
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
from numba.core import event

from rekka.core import compiling
from rekka.core.compiling import Announcer

KERNEL = "from rekka.core.compiling import njit\n\n@njit(nogil=True)\ndef double(x):\n    return 2 * x\n"


def load_kernel(folder):
    """A module of ours with one kernel, as a new process would load it."""
    path = folder / "tiny.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("rekka.tiny", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def compilation(module="rekka.model.kernel"):
    kernel = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=kernel)})


def wait_for_timers():
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(60)


@pytest.fixture
def heard():
    """What an impatient announcer tells while numba compiles."""
    told = []
    announcer = Announcer(lambda: told.append("told"), patience=0)
    event.register("numba:compile", announcer)
    yield told
    event.unregister("numba:compile", announcer)


def test_a_wait_is_told_once():
    told = []
    announcer = Announcer(lambda: told.append("told"), patience=0)
    for _ in range(3):  # kernels within kernels
        announcer.on_start(compilation())
        wait_for_timers()
    assert told == ["told"]


def test_a_kernel_that_is_there_at_once_is_not_told_but_a_later_one_may_be():
    told = []
    announcer = Announcer(lambda: told.append("told"), patience=1)
    announcer.on_start(compilation())
    announcer.on_end(compilation())
    wait_for_timers()
    assert told == []
    announcer.on_start(compilation())
    wait_for_timers()
    assert told == ["told"]


def test_other_peoples_kernels_are_none_of_ours():
    told = []
    announcer = Announcer(lambda: told.append("told"), patience=0)
    announcer.on_start(compilation("someone.elses"))
    wait_for_timers()
    assert told == []


def test_what_is_on_disk_is_loaded_without_a_word(tmp_path, heard):
    assert load_kernel(tmp_path)(21) == 42
    wait_for_timers()
    assert heard == ["told"]
    heard.clear()
    again = load_kernel(tmp_path)
    assert again(21) == 42
    assert sum(again.stats.cache_hits.values()) == 1
    wait_for_timers()
    assert heard == []


def test_the_log_has_the_announcement(caplog):
    with caplog.at_level("INFO", "rekka"):
        compiling.announce()
    assert [(one.name, one.levelname, one.message) for one in caplog.records] == [
        ("rekka", "INFO", compiling.COMPILING)
    ]


def test_where_nothing_can_be_kept_kernels_work_all_the_same(tmp_path, monkeypatch, caplog):
    (tmp_path / "__pycache__").write_text("in the way")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "__pycache__" / "none"))
    monkeypatch.setenv("HOME", str(tmp_path / "__pycache__" / "none"))
    compiling.warn_of_no_place.cache_clear()
    for _ in range(2):
        kernel = load_kernel(tmp_path)
        assert kernel(21) == 42
        assert kernel.stats.cache_path is None
    assert [one.message for one in caplog.records] == [compiling.NO_PLACE]


def test_other_errors_of_a_kernel_are_not_hidden(monkeypatch):
    def fail(*signature, **options):
        raise RuntimeError("something else")

    monkeypatch.setattr(compiling, "_NUMBA", SimpleNamespace(njit=fail))
    with pytest.raises(RuntimeError, match="something else"):
        compiling.njit()(len)


def test_every_kernel_is_compiled_by_way_of_this_module():
    source = Path(compiling.__file__).parent
    direct = [
        file.name
        for file in source.rglob("*.py")
        if re.search(r"^from numba import .*njit", file.read_text(), re.M)
    ]
    assert direct == []
