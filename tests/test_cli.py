import subprocess
import sys

import rekka


def run(*args: str) -> subprocess.CompletedProcess[str]:
    code = "from rekka.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)


def test_demo_prints_summary_and_certificate():
    done = run("demo", "--rows", "300", "--states", "3")
    assert done.returncode == 0, done.stderr
    assert "300 simulated transitions of" in done.stdout
    assert "hazard_ratio" in done.stdout
    assert "certified: a maximum of the likelihood" in done.stdout
    assert done.stderr == ""


def test_version():
    assert run("--version").stdout == f"rekka {rekka.__version__}\n"


def test_help_shows_an_example():
    assert "rekka demo --rows 5000 --states 4" in run("demo", "--help").stdout


def test_wrong_usage_exits_with_2_and_no_traceback():
    done = run("demo", "--rows", "few")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert run("nonsense").returncode == 2


def test_help_does_not_wait_for_the_heavy_parts():
    code = (
        "import sys; from typer.testing import CliRunner; from rekka.cli import app; "
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0; "
        "print([m for m in ('numba', 'polars', 'sklearn', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
