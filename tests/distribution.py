"""Build what is published, look into it, and try it as a user would: ``make dist``.

1. The sdist is built, and from it the wheel. Another wheel, built from the tree, has the same files.
2. The wheel has every file of ``src/rekka`` that git knows and nothing else; no file of it or of the sdist names a
   folder of this machine; every script of others in it is listed in THIRD_PARTY.md.
3. For each Python of ``PYTHONS`` that runs here: the wheel is installed in a new environment in a temporary folder,
   and the commands of ``COMMANDS`` that this version has are called there.

Not a test by itself, because it installs all dependencies; what it looks for is tested in tests/test_package.py.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
BUILT = ("rekka/site/",)  # the documentation, where it was built: not in src/
# Where people have their files, and where this copy of the repository is, unless every text could name that.
MACHINE = (
    *(f"/{name}/".encode() for name in ("home", "Users", "root", "work")),
    b":\\Users\\",
    *([os.fsencode(ROOT)] if len(ROOT.parts) > 3 else []),
)
# A command, what it is called with besides, and what has to be there afterwards. Those that --help does not list
# are not of this version.
COMMANDS = (
    (
        "demo",
        ("--folder", "tried"),
        ("tried/study/report.html", "tried/study/paper.html", "tried/study/trials.csv"),
    ),
    ("verify", ("--out", "verification.html"), ("verification.html",)),
    ("app", ("--help",), ()),
)
PAGE = (b"<!doctype html>", b"</html>")
LONGEST = 1800  # seconds for one command: it compiles the kernels too


def call(*command: object, folder: Path) -> str:
    """What a command prints; where it fails, all of that and the end of this program."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "REKKA_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=clean | {"PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=LONGEST,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))}: exit code {done.returncode}")
    return done.stdout


def find_tracked() -> set[str]:
    """Files of the package as the wheel names them: those that git knows."""
    listed = call("git", "ls-files", "src/rekka", folder=ROOT).split("\n")
    return {name.removeprefix("src/") for name in listed if name}


def read_wheel(file: Path) -> dict[str, bytes]:
    """Files of a wheel by name."""
    with zipfile.ZipFile(file) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def read_sdist(file: Path) -> dict[str, bytes]:
    """Files of an sdist by name, without the folder that holds them all."""
    with tarfile.open(file) as sdist:
        members = [member for member in sdist.getmembers() if member.isfile()]
        return {one.name.partition("/")[2]: sdist.extractfile(one).read() for one in members}


def find_faults(wheel: dict[str, bytes], tracked: set[str], listed: str) -> list[str]:
    """What a wheel lacks, has too many, or should not say; ``listed`` is the text of THIRD_PARTY.md."""
    head = next(name for name in wheel if name.endswith(".dist-info/METADATA")).partition("/")[0]
    own = {name for name in wheel if not name.startswith((f"{head}/", *BUILT))}
    licences = {name.rpartition("/")[2] for name in wheel if name.startswith(f"{head}/licenses/")}
    return [
        *(f"{name} is missing" for name in sorted(tracked - own)),
        *(f"{name} is not of the package" for name in sorted(own - tracked)),
        *(f"the licence {name} is missing" for name in sorted({"LICENSE", "THIRD_PARTY.md"} - licences)),
        *(f"{name} is a script that THIRD_PARTY.md does not list" for name in find_unlisted(wheel, listed)),
        *find_machine(wheel),
    ]


def find_unlisted(names: dict[str, bytes] | set[str], listed: str) -> list[str]:
    """Scripts that neither rekka's own list nor that of scripts by others names."""
    scripts = {name for name in names if name.endswith((".js", ".mjs"))}
    return sorted(name for name in scripts if f"`{name.rpartition('/')[2]}`" not in listed)


def find_machine(files: dict[str, bytes]) -> list[str]:
    """Files that name a folder of a person or of this machine."""
    return [
        f"{name} names {path.decode()}"
        for name, content in sorted(files.items())
        for path in MACHINE
        if path in content
    ]


def build(place: Path) -> tuple[Path, Path, Path]:
    """Build the sdist, the wheel from it, and the wheel from the tree."""
    call(sys.executable, "-m", "build", "--outdir", place, folder=ROOT)
    call(sys.executable, "-m", "build", "--wheel", "--outdir", place / "tree", folder=ROOT)
    (sdist,), (wheel,), (direct,) = place.glob("*.tar.gz"), place.glob("*.whl"), (place / "tree").glob("*.whl")
    return sdist, wheel, direct


def find_python(version: str) -> str | None:
    """The Python of a version that runs here; a name on the path may be of one that is switched off, as by pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for name in (f"python{version}", sys.executable, *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))):
        found = shutil.which(name)
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        if found and subprocess.run([found, "-c", code], capture_output=True, text=True).stdout.strip() == version:
            return found
    return None


def try_wheel(python: str, wheel: Path, place: Path) -> list[str]:
    """Install the wheel in a new environment and use it; what was tried, a line each."""
    home = place / "environment"
    call(python, "-m", "venv", home, folder=place)
    folder = home / ("Scripts" if os.name == "nt" else "bin")
    pip = (folder / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    call(*pip, wheel, folder=place)
    where = call(folder / "python", "-c", "import rekka; print(rekka.__file__)", folder=place).strip()
    if not Path(where).resolve().is_relative_to(home.resolve()):
        sys.exit(f"rekka was imported from {where}, which is not the new environment")
    version = call(folder / "rekka", "--version", folder=place).strip()
    if version.removeprefix("rekka ") != wheel.name.split("-")[1]:
        sys.exit(f"{wheel.name} says that it is {version}")
    tried = ["import rekka", "rekka --version"]
    listed = find_commands(call(folder / "rekka", "--help", folder=place))
    if "demo" not in listed:
        sys.exit(f"rekka --help lists {', '.join(listed) or 'nothing'}")
    if "app" in listed:
        call(*pip, f"{wheel}[app]", folder=place)
    for command, options, files in COMMANDS:
        line = " ".join(["rekka", command, *options])
        if command not in listed:
            tried.append(f"({line}: not in this version)")
            continue
        call(folder / "rekka", command, *options, folder=place)
        tried.append(line)
        for file in files:
            content = (place / file).read_bytes()
            if not content or (file.endswith(".html") and not is_page(content)):
                sys.exit(f"{line} wrote {file}, and it is not whole")
    return tried


def find_commands(printed: str) -> list[str]:
    """Names of the commands in what ``rekka --help`` prints."""
    return re.findall(r"^│ (\w+) {2,}[A-Z]", printed.partition(" Commands ")[2], flags=re.MULTILINE)


def is_page(content: bytes) -> bool:
    """Whether a page begins and ends as one."""
    return content.lstrip().lower().startswith(PAGE[0]) and content.rstrip().lower().endswith(PAGE[1])


def main() -> None:
    """Build into dist/, look, and try."""
    place = ROOT / "dist"
    shutil.rmtree(place, ignore_errors=True)
    sdist, wheel, direct = build(place)
    files = read_wheel(wheel)
    faults = find_faults(files, find_tracked(), (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8"))
    faults += find_machine(read_sdist(sdist))
    if files != read_wheel(direct):
        faults.append("the wheel from the sdist is not that of the tree")
    if faults:
        sys.exit("\n".join(faults))
    shutil.rmtree(place / "tree")
    print(f"{sdist.name}, {sdist.stat().st_size / 1e6:.1f} MB, builds the wheel that the tree builds")
    print(
        f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB, {len(files)} files: all of the package, nothing else"
    )
    for version in PYTHONS:
        python = find_python(version)
        if python is None:
            print(f"Python {version}: not tried, there is none here")
            continue
        with tempfile.TemporaryDirectory(prefix="rekka-dist-") as folder:
            print(f"Python {version}: {'; '.join(try_wheel(python, wheel, Path(folder)))}")


if __name__ == "__main__":
    main()
