"""The command ``rekka app``: its address, its port, its workspace, and what it says without the extra."""

import http.client
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rekka.cli import app
from rekka.core.documentation import Documentation

SERVES = "import sys; from rekka.cli import main; sys.argv[0] = 'rekka'; main()"


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (["starlette"], "starlette, which is not installed"),
        (["starlette", "python_multipart"], "starlette, python-multipart, which are not installed"),
    ],
)
@pytest.mark.parametrize(
    ("folder", "source"), [("docs", ", or in the folder of the source: make app"), (None, "")]
)
def test_without_the_extra_the_command_says_how_to_get_it(monkeypatch, missing, told, folder, source):
    monkeypatch.setattr("rekka.commands.app.find_spec", lambda name: None if name in missing else object())
    found = Documentation(None, folder and Path(folder))
    monkeypatch.setattr("rekka.commands.app.find_documentation", lambda: found)
    done = CliRunner(env={"COLUMNS": "250"}).invoke(app, ["app"])
    assert done.exit_code == 2
    install = f"Install with: pip install 'rekka[app]'{source}\n"
    assert done.stderr == f"BadOption: rekka app needs {told}. {install}"


@pytest.fixture
def serve(tmp_path):
    pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")
    started = []

    def begin(*options):
        process = subprocess.Popen(
            [sys.executable, "-c", SERVES, "app", "--no-open", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
            env=os.environ | {"COLUMNS": "300", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def read_address(process):
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/\?token=[\w-]+)", process.stdout.readline())
    assert found
    return int(found[1]), found[2]


def ask(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal of POSIX")
def test_the_command_prints_an_address_that_opens_the_page(serve, tmp_path):
    process = serve("--workspace", "mine")
    port, path = read_address(process)
    assert ask(port, "/")[0] == 403
    status, headers, _ = ask(port, path)
    assert status == 303
    status, answered, page = ask(port, "/", Cookie=headers["set-cookie"].partition(";")[0])
    assert status == 200
    assert "Drop a table" in page
    assert "server" not in answered
    assert (tmp_path / "mine" / "tables").is_dir()

    other = serve("--workspace", "mine", "--port", str(port))
    assert "cannot be used" in other.communicate()[0]
    assert other.returncode == 2
    other = serve("--workspace", "mine")
    assert "Another process is working on mine" in other.communicate()[0]
    assert other.returncode == 1

    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert "Traceback" not in process.stdout.read()
