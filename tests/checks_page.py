"""docs/checks.md from the checks themselves: ``python tests/checks_page.py`` writes it, a test compares."""

from pathlib import Path

from rekka.checks import findings as doctor
from rekka.study.checks.findings import Check
from rekka.study.checks.registry import CHECKS

PAGE = Path(__file__).parent.parent / "docs" / "checks.md"
ROOMS = {"R6": "Fits", "R7": "The choice", "R8": "Golden rows and the confirmation"}
INTRO = """
# The checks

Written from the checks themselves by `python tests/checks_page.py`.

`rekka checks RUN` looks a study over when it is run; in Python, `rekka.check_study(study)`. Every check has one
finding in every study, with a verdict:

| verdict | it means |
|---|---|
| issue | a result in use is wrong or unusable: put it right before a figure is used |
| tip | something to know before the results are read; failures of methods that nobody selected are tips |
| passed | looked at, and found well |
| not applicable | there was nothing to look at, and why |

A finding comes with an explanation and its figures, the cases and methods concerned, and a remedy. With `--strict`
the command ends with exit code 1 if there is an issue, otherwise always with 0. The test of fit (R611) is made
with the choice, for up to 50 components; `--test-fit` makes it for more, and `--quick` does not make it for a run of an
earlier version, which has none.

`rekka check TABLE`, without the s, is the data doctor: it looks at a table before anything is fitted. Its codes are
R001 to R506, [at the end](#the-data-doctors-codes), so that this page is the one list of all codes.
"""


def describe() -> str:
    parts = [INTRO.strip(), index()]
    for room, title in ROOMS.items():
        parts += [f"## {title}", *(section(check) for check in CHECKS if check.code.startswith(room))]
    return "\n\n".join([*parts, "## The data doctor's codes", doctors()]) + "\n"


def index() -> str:
    lines = [f"| {check.code} | {check.title} | {worst(check)} |" for check in CHECKS]
    return "\n".join(["| code | title | at worst |", "|---|---|---|", *lines])


def worst(check: Check) -> str:
    return "issue" if check.issue else "tip"


def section(check: Check) -> str:
    rules = [("issue", check.issue), ("tip", check.tip), ("remedy", check.remedy)]
    table = ["| | |", "|---|---|", *(f"| {name} | {words} |" for name, words in rules if words)]
    return "\n".join([f"### {check.code} {check.title}", "", f"{check.looks_at} {check.matters}", "", *table])


def doctors() -> str:
    words = "What `rekka check` finds in a table; [the data we expect](data.md) says more."
    lines = [f"| {code} | {title} |" for code, title in doctor.CODES.items()]
    return "\n".join([words, "", "| code | title |", "|---|---|", *lines])


if __name__ == "__main__":
    PAGE.write_text(describe(), encoding="utf-8")
