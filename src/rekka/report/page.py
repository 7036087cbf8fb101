"""The page: one HTML file that needs nothing else, for a director, a statistician, and a printer.

    Document -> tables, figures, sentences -> template -> HTML

It asks the network for nothing and says so to the browser (Content-Security-Policy). Without scripts everything
can be read; with them charts answer and a case can be followed through all of them. The same document gives the
same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rekka.report import statements
from rekka.report.charts.base import CSS_VARIABLES, PAGE, style
from rekka.report.charts.drawing import bundle_script, draw_svg, slim_svg
from rekka.report.charts.figures import list_figures
from rekka.report.document import CasePart, Document, HypothesisPart
from rekka.report.outline import CaseOutline, lay_under, list_cases, list_sections, split_network
from rekka.report.statements import CaseStatements, Wording
from rekka.report.tables.catalog import list_tables
from rekka.report.text import ENGLISH, MISSING, Words, load_words, slug
from rekka.report.views import Cell, Column, PanelView

SORTED_DIGITS = 9  # of a number that rows are sorted by
PHRASE, SENTENCE = 20, 60  # letters above which a cell of a table needs some width, and more
# Columns with names that data gave.
NAMES = ("case", "cases", "constant", "covariate", "term", "file", "bridge", "member")
DATES = ("seen",)  # columns with days, which stay in one line
SPAN = 2  # parts of a cell with the two ends of a range
ICONS = {  # beside the word, so that colour is never alone
    "issue": "\u25b2",
    "stop": "\u25b2",
    "tip": "\u25cf",
    "warning": "\u25cf",
    "note": "\u25cb",
    "passed": "\u2713",
    "not applicable": "\u2013",
    "supported": "\u2713",
    "partly supported": "\u25d0",
    "not supported": "\u2717",
}
Explain = Callable[[Document, CasePart, Wording], CaseStatements]

_BRACKETS = re.compile(r"\([^()]*\)|\uff08[^\uff08\uff09]*\uff09")
_SCRIPT_WORDS = "page.script."
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # embeddings, overrides, isolates
_SET_APART = {0x2068: "<bdi>", 0x2069: "</bdi>"}  # isolates, which captions have
# What would end a script element, or a line of JavaScript, is written as JSON allows.
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def render_page(document: Document, lang: str = "en") -> str:
    """The report as one HTML file: the same bytes for the same document."""
    words = load_words(lang)
    say = Wording(words)
    tables, figures = list_tables(document, words), list_figures(document, words, PAGE)
    names = [case.case for case in document.cases]
    places = {name: number for number, name in enumerate(names)}
    sections = list_sections(tables, figures, names, words)
    by_id = {section.id: section for section in sections}
    fits, futures = (list_cases(tables, figures, names, section) for section in ("models", "forecast"))
    uses = [statements.explain_use(answer, say) for answer in document.answers]
    shown = {
        "document": document,
        "words": words,
        "say": say,
        "statements": statements,
        "cell": CellWriter(words),
        "anchors": {outline.case: outline.id for outline in fits},
        "sections": sections,
        "by_id": by_id,
        "places": places,
        "place": lambda cases: " ".join(str(places[case]) for case in cases if case in places),
        "title": statements.name_study(document, words),
        "answers": [lay_under(one, uses) for one in by_id["answer"].tables],
        "hypotheses": _group_hypotheses(document),
        "own_calibration": [one for one in by_id["calibration"].figures if one.view.case in places],
        "cases": _explain_each(fits, document, statements.explain_case, say),
        "futures": _explain_each(futures, document, statements.explain_forecast, say),
        "typical": split_network(by_id["forecast"]),
        "script_words": {"texts": _list_script_words(words), "cases": names, "style": style(PAGE)},
        "style": Markup(_write_colours() + _read("page.css")),
        "script": Markup(_read("page.js")),
        "bundle": Markup(bundle_script()),
    }
    return _environment().get_template("page.html").render(**shown) + "\n"


def _explain_each(
    outlines: Sequence[CaseOutline], document: Document, explain: Explain, say: Wording
) -> list[tuple[CaseOutline, CaseStatements]]:
    """Tables and figures of each case in a section, with its sentences."""
    cases = zip(outlines, document.cases, strict=True)
    return [(outline, explain(document, case, say)) for outline, case in cases]


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("rekka.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_calm,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {
        "draw": _draw,
        "isolate": _isolate,
        "icons": ICONS,
        "json": _write_json,
        "slim": _leave_style,
        "slug": slug,
    }
    return found


def _calm(value: Any) -> Any:
    """Any text without letters that turn the direction of what follows: names have one of their own by <bdi>."""
    if not isinstance(value, str) or not _TURNING.search(value):  # pictures and scripts are long, and have none
        return value
    return type(value)(_TURNING.sub("", value))


def _read(name: str) -> str:
    """A file beside the template, as it stands."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _write_colours() -> str:
    """The palette as variables: light, dark where the system or the reader asks for it, light on paper."""
    light, dark = ("".join(f"{name}:{both[n]};" for name, both in CSS_VARIABLES.items()) for n in (0, 1))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media print{{:root:root:root{{color-scheme:light;{light}}}}}\n"
    )


def _draw(panel: PanelView, prefix: str) -> Markup:
    """A chart as a picture; draw_svg writes XML, so that nothing in it needs escaping."""
    return Markup(slim_svg(draw_svg(panel.spec, prefix)))


def _isolate(text: str) -> Markup:
    """A sentence whose names of another direction are set apart, as HTML sets them apart."""
    return Markup(str(escape(text)).translate(_SET_APART))


def _write_json(value: Any) -> Markup:
    """JSON that can stand inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_UNSAFE))


@dataclass(frozen=True)
class CellWriter:
    """Cells of tables as HTML. A page has a hundred thousand of them: a template would take its time."""

    words: Words

    def __call__(
        self, cell: Cell, column: Column, *, head: bool, under: Sequence[Markup] = (), to: str = ""
    ) -> Markup:
        """A cell, or a row's head; ``under`` stands below it in small type, ``to`` is an anchor to go to."""
        tag, scope = ("th", ' scope="row"') if head else ("td", "")
        text = self._text(cell, column)
        text = f'<a href="#{to}">{text}</a>' if head and to else text
        lines = "".join(f' <small class="under">{line}</small>' for line in under)
        return Markup(f"<{tag}{scope}{self._look(cell, column)}>{text}{lines}</{tag}>")

    def _look(self, cell: Cell, column: Column) -> str:
        """Where a cell stands, how it looks, and the number that rows are sorted by."""
        long = column.kind == "text" and len(cell.text)
        classes = {
            "n": column.kind == "number",
            "t": long > SENTENCE,
            "s": PHRASE < long <= SENTENCE,
            "strong": cell.strong,
            "faint": cell.faint,
            "missing": cell.text == MISSING,
            "d": column.key in DATES,
        }
        shown = " ".join(name for name, holds in classes.items() if holds)
        found = f' class="{shown}"' if shown else ""
        if isinstance(cell.value, int | float):
            number = f"{float(cell.value):.{SORTED_DIGITS}g}"
            found += "" if number == cell.text else f' data-value="{number}"'
        return found

    def _text(self, cell: Cell, column: Column) -> str:
        """A name keeps its direction, an English sentence its language, an interval its line."""
        text = str(escape(cell.text))
        if cell.text == MISSING:
            return f'{text}<span class="unseen">{escape(self.words("page.missing"))}</span>'
        if column.key in NAMES:
            return f"<bdi>{text}</bdi>"
        if len(cell.parts) == SPAN:
            return _hold_together(text)
        if column.kind == "number":
            return _BRACKETS.sub(lambda found: _hold_together(found[0]), text)
        return f'<span lang="en">{text}</span>' if cell.english and self.words.lang != ENGLISH else text


def _hold_together(text: str) -> str:
    """An interval in one line: neither spaces nor a wave dash break it."""
    return text.replace(" ", "\u00a0").replace("\u301c", "\u2060\u301c\u2060")


def _leave_style(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A chart without its style, which all have in common: the page has it once, and the script puts it back."""
    return {name: value for name, value in spec.items() if name != "config"}


def _group_hypotheses(document: Document) -> Mapping[str, Sequence[HypothesisPart]]:
    """Each hypothesis with its verdict under every preset."""
    found: dict[str, list[HypothesisPart]] = {}
    for one in document.hypotheses:
        found.setdefault(one.code, []).append(one)
    return found


def _list_script_words(words: Words) -> dict[str, str]:
    """The few texts that the script says, by their short names."""
    return {
        key.removeprefix(_SCRIPT_WORDS): text for key, text in words.texts.items() if key.startswith(_SCRIPT_WORDS)
    }
