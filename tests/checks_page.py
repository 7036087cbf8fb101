"""docs/checks.md from the checks themselves: ``python tests/checks_page.py`` writes it, a test compares."""

from pathlib import Path

from rekka.checks.engine import Subject, format_part, list_codes, load_checks
from rekka.core.language import ENGLISH, RETIRED, load_words

PAGE = Path(__file__).parent.parent / "docs" / "checks.md"
WORDS = load_words(ENGLISH)
ROOMS = {
    "R0": "Reading",
    "R1": "States and transitions",
    "R2": "Intervals",
    "R3": "Covariates",
    "R4": "What a model can learn",
    "R5": "Held-out rows",
    "R6": "Fits",
    "R7": "The choice",
    "R8": "Confirmation rows",
}
INTRO = """
# The checks

Written from the checks themselves by `python tests/checks_page.py`.

`rekka check TABLE` checks a table before anything is fitted (`rekka.check_transitions`; [the table rekka
expects](data.md)). `rekka checks RUN`, with an s, checks a study after it was run (`rekka.check_study`). A code means the
same in both. Severities, and their names in a study:

| severity | in a study | it means |
|---|---|---|
| stop | issue | a fit fails or is refused; a selected result is wrong or unusable: correct it before using a figure |
| warning | tip | look at it before trusting the results; failures of methods that were not selected are tips |
| note | | useful to know |
| passed | passed | checked without a finding; not listed for a table |
| not applicable | not applicable | nothing to check, with the reason; not listed for a table |

Findings marked `rekka fit` are about a fitted model of pairs: what its records contradict of [what it
assumes](model.md#testing-what-the-pair-model-assumes).

A finding has its figures, the components and methods concerned, and a remedy. `rekka check` ends with exit code 1 if a
finding stops the work. Every check of a study has one finding in every study; with `--strict` the command ends with exit
code 1 if there is an issue, otherwise always with 0. The test of fit (R611) is made with the choice, for up to 50
components; `--test-fit` makes it for more. A run of an earlier version has no test: `rekka checks` makes it, unless
`--quick` is given. Where a study and its table have the same finding, a report lists it once.

Codes are never reused. Those that were merged into others are [at the end](#merged-codes).
"""


def describe() -> str:
    parts = [INTRO.strip(), index()]
    for room, title in ROOMS.items():
        sections = [section(code) for code in list_studied() if code.startswith(room)]
        parts += [f"## {title}", *sections] if sections else []
    return "\n\n".join([*parts, "## Merged codes", merged()]) + "\n"


def list_checks():
    load_checks("rekka.checks")
    load_checks("rekka.study.checks")
    return list_codes()


def list_studied() -> list[str]:
    return [code for code, own in list_checks().items() if any(one.subject is Subject.STUDY for one in own)]


def index() -> str:
    lines = [f"| {code} | {tell(code, 'title')} | {' | '.join(worst(code))} |" for code in list_checks()]
    return "\n".join(
        ["| code | title | in a table, at worst | in a study, at worst |", "|---|---|---|---|", *lines]
    )


def worst(code: str) -> tuple[str, str]:
    """In a table, and in a study."""
    data, study = "", ""
    for one in list_checks()[code]:
        if one.subject is Subject.STUDY:
            study = one.worst[code].verdict
        else:
            data = str(one.worst[code]) + (" (rekka fit)" if one.subject is Subject.FIT else "")
    return data, study


def tell(code: str, part: str) -> str:
    """A text of a check, with its limits; '' where it has none."""
    limits = {name: value for one in list_checks()[code] for name, value in one.limits.items()}
    known = f"check.{code}.{part}" in WORDS.texts
    return format_part(code, [part], limits, WORDS) if known else ""


def section(code: str) -> str:
    """What a check looks at in a study."""
    title, looks_at, matters = (tell(code, part) for part in ("title", "looks_at", "matters"))
    rules = [(part, tell(code, part)) for part in ("issue", "tip", "remedy")]
    table = ["| | |", "|---|---|", *(f"| {name} | {words} |" for name, words in rules if words)]
    return "\n".join([f"### {code} {title}", "", f"{looks_at} {matters}", "", *table])


def merged() -> str:
    words = "A command that is given one of these says which code it is now."
    lines = [f"| {code} | now {new} | {tell(new, 'title')} |" for code, new in RETIRED.items()]
    return "\n".join([words, "", "| code | | title |", "|---|---|---|", *lines])


if __name__ == "__main__":
    PAGE.write_text(describe(), encoding="utf-8")
