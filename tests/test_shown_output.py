"""Terminal output that pages show is what their commands print.

A page is read from top to bottom. A code block without a language holds commands (``rekka ...``), Python that needs
their files (it begins with ``import rekka``), or output of what ran before it. Each line of output must have been printed
after the line above it, wherever lines are broken and however many blanks there are; ``...`` stands for what is left
out. A block of ``text`` becomes the CSV file named last before it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import rekka
from rekka.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
SOURCE = Path(rekka.__file__).parent.parent
ONTARIO = ROOT.parent / "shared" / "data" / "ontario"

RUN = {  # pages whose commands are run, with the folder of the tables they need
    "quickstart.md": None,
    "choosing-safely.md": None,
    "forecasting.md": ONTARIO,
}
# Output that is checked elsewhere: a part of it, and the test.
ELSEWHERE = {"are read as one: the rows that a study trains on": "tests/data/test_merging.py"}


def find_blocks(page, language=""):
    """Code blocks of a language, or without one: (number of the line, text)."""
    text = page.read_text(encoding="utf-8")
    blocks = re.finditer(r"^```(\S*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, one.start()) + 1, one[2]) for one in blocks if one[1] == language]


def kind_of(block):
    """Whether a block holds commands, Python, or output."""
    first = block.lstrip().partition("\n")[0]
    if re.match(r"(rekka|make|docker|py|python|pip|\.venv\S*) ", first):
        return "commands"
    return "python" if first == "import rekka" else "output"


def find_commands(block):
    """The commands of a block as lists of words, without comments."""
    joined = block.replace("\\\n", " ")
    return [words for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


def plain(text):
    """A text without line breaks, and one blank between words."""
    return " ".join(text.split())


def is_shown(block, printed):
    """Whether the lines of a block follow each other in what was printed; rows of a table may be left out."""
    place = 0
    for part in map(plain, re.split(r"\.\.\.|\n", block)):
        found = printed.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def call(words, folder):
    """What a command, or Python, prints in a terminal of 120 columns."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"COLUMNS": "120", "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


REKKA = ("-c", "from rekka.cli import main; main()")


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ("year a\n2025 3\n2035 5", True),
        ("year a\n2035 5\n2025 3", False),
        ("year a ... 2030 4", True),
        ("2035 6", False),
    ],
)
def test_how_output_is_compared(block, shown):
    assert is_shown(block, plain("year   a\n2025   3\n2030   4\n2035   5\n")) is shown


def test_output_is_shown_only_where_its_commands_are_run():
    for page in PAGES:
        if page.name in (*RUN, "reference.md"):  # the latter has directives of Sphinx
            continue
        for line, block in find_blocks(page):
            known = any(part in plain(block) for part in ELSEWHERE)
            assert kind_of(block) == "commands" or known, f"{page.name}:{line} shows output that no test compares"


def test_commands_that_pages_name_have_these_options():
    commands = typer.main.get_command(app).commands
    named = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [block for _, block in find_blocks(page) if kind_of(block) == "commands"]
        for words in [words for block in blocks for words in find_commands(block) if words[0] == "rekka"] + [
            shlex.split(one) for one in re.findall(r"`(rekka\s[a-z][^`]*)`", text)
        ]:
            given = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
            options = [(*option.opts, *option.secondary_opts) for option in commands[words[1]].params]
            assert given <= {"--help", *(name for names in options for name in names)}, f"{page.name}: {words}"
            named += len(given)
    assert named > 100


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_pages_show_what_their_commands_print(page, tmp_path):
    tables = RUN[page]
    if tables is not None and not tables.exists():
        pytest.skip(f"the tables of {page} are not beside the repository")
    for file in tables.glob("*.csv") if tables else ():
        shutil.copy(file, tmp_path)
    mapping = next(text for _, text in find_blocks(DOCS / "data.md", "toml") if "agree" in text)
    (tmp_path / "ontario.toml").write_text(mapping, encoding="utf-8")
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    for line, text in find_blocks(DOCS / page, "text"):
        name = re.findall(r"`(\w+\.csv)`", "\n".join(lines[: line - 1]))[-1]
        (tmp_path / name).write_text(text, encoding="utf-8")
    printed, said, wrong = "", "", []
    for line, block in find_blocks(DOCS / page):
        if kind_of(block) == "output":
            if not is_shown(block, printed):
                wrong.append(f"{page}:{line} is not what was printed:\n{block}\nbut: {plain(said)}")
            continue
        commands = find_commands(block) if kind_of(block) == "commands" else []
        if any("inspections.xlsx" in words for words in commands):  # the reader's own table
            continue
        calls = [[*REKKA, *words[1:]] for words in commands] or [["-c", block]]
        for words in calls:
            code, said = call(words, tmp_path)
            assert code == 0 or "checks" in words or "check" in words, f"{page}:{line} {words}:\n{said}"
            printed += f" {plain(said)}"
    assert not wrong, "\n".join(wrong)
