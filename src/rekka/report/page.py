"""The page: one HTML file that needs nothing else, for a director, an engineer, a researcher, and a printer.

    Document -> tables, figures, sentences -> templates -> HTML

It asks the network for nothing and says so to the browser (Content-Security-Policy); scripts and styles run by
their digests alone, so that nothing else can. Without scripts everything can be read; with them charts answer, a
component can be followed through the page, and every member has a card. The same document gives the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rekka.core.errors import bad_option
from rekka.report import statements
from rekka.report.charts.base import PAGE, colour_state, shade, style
from rekka.report.charts.drawing import bundle_script, draw_svg, slim_svg
from rekka.report.charts.figures import list_figures
from rekka.report.colours import COLOURS, CSS_VARIABLES, write_style
from rekka.report.document import CasePart, Document, HypothesisPart, MembersPart, NetworkPart
from rekka.report.naming import name_components
from rekka.report.outline import (
    DIRECTOR,
    PAPER,
    READERS,
    CaseOutline,
    ShownFigure,
    ShownTable,
    lay_under,
    leave_figures,
    list_cases,
    list_parts,
    list_sections,
    list_variants,
)
from rekka.report.overview import (
    Card,
    Overview,
    describe_reasons,
    list_components,
    make_overview,
    name_level,
)
from rekka.report.statements import CaseStatements, Wording
from rekka.report.tables.catalog import list_tables
from rekka.report.tables.models import list_members, tabulate_first
from rekka.report.tables.overview import tabulate_components
from rekka.report.tables.study import select_as_paper
from rekka.report.text import ENGLISH, LANGUAGES, MISSING, Words, load_words, show_share, slug
from rekka.report.views import Cell, Column, FigureView, PanelView, TableView

SCRIPTS = ("page.js", "members.js")  # in this order
ASSETS = ("rekka.css", "rekka.js", "vega.js")  # names of the files that a page may refer to
TABS = {
    "there": 1,
    "next": 0,
    "outside": 2,
}  # of members in the order of the page, and in a document
MOST_LISTED = 20  # members of a tab that can be read without a script
STRONGEST = 3  # effects that have a sentence in sight
HEATS = 9  # shades of a cell of a matrix
DIGITS = 4  # significant, of values in the list of members
SHORT = 4  # letters of a heading that stays in one line
PHRASE, SENTENCE = 20, 60  # letters above which a cell of a table needs some width, and more
# Columns with names that data gave.
NAMES = ("case", "cases", "constant", "covariate", "term", "file", "bridge", "member")
DATES = ("seen",)  # columns with days, which stay in one line
NAME = 12  # letters of a member's name that stays in one line
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
    "good": "\u2713",
    "caution": "\u25cf",
    "do_not_use": "\u25b2",
    "not supported": "\u2717",
}
Explain = Callable[[Document, CasePart, Wording], CaseStatements]

_BRACKETS = re.compile(r"\([^()]*\)|\uff08[^\uff08\uff09]*\uff09")
_DASH = re.compile("[\u301c\uff5e]")  # wave dash, and the full-width tilde in its place
_SCRIPT_WORDS = "page.script."
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # embeddings, overrides, isolates
_SET_APART = {0x2068: "<bdi>", 0x2069: "</bdi>"}  # isolates, which captions have
# What would end a script element, or a line of JavaScript, is written as JSON allows.
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


@dataclass(frozen=True)
class Links:
    """Files beside a page that it can lead to: pages in other languages by their language, and a workbook."""

    languages: Mapping[str, str] = field(default_factory=dict)
    workbook: str = ""


class HeatMatrix(NamedTuple):
    """A matrix of probabilities as cells: number, text, shade."""

    id: str
    title: Markup
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[float, str, int], ...]], ...]


class Trust(NamedTuple):
    """How far forecasts of a component can be trusted, in words."""

    level: str
    name: str
    reasons: tuple[str, ...]  # the one that decided first


class Screen(NamedTuple):
    """The first screen, of all components (``place`` is "all") or of one."""

    place: str
    overview: Overview
    first: ShownTable | None


def render_page(
    document: Document,
    lang: str = "en",
    *,
    reader: str = DIRECTOR,
    assets: str | None = None,
    links: Links | None = None,
    printed: bool = False,
) -> str:
    """The report as one HTML file: the same bytes for the same document.

    ``reader`` is who prints it, and for "paper" also what comes first. With ``assets`` styles and scripts are not
    in the page but at that address (``list_assets``). A ``printed`` page is unfolded and has no script.
    """
    if reader not in READERS:
        raise bad_option("reader", reader, READERS)
    words = load_words(lang)
    say = Wording(words)
    document = select_as_paper(document) if reader == PAPER else document
    overview, document = document, name_components(document, words)
    names = [case.case for case in document.cases]
    tables = tuple(map(_hold_headings, list_tables(document, words)))
    figures = leave_figures(list_figures(document, words, PAGE), len(names), reader)
    places = {name: number for number, name in enumerate(names)}
    sections = list_sections(tables, figures, names, words, reader)
    by_id = {section.id: section for section in sections}
    fits, futures = (list_cases(tables, figures, names, section) for section in ("models", "forecast"))
    uses = [statements.explain_use(answer, say) for answer in document.answers]
    members = None if document.network is None else document.network.every
    shown = {
        "document": document,
        "words": words,
        "say": say,
        "statements": statements,
        "cell": CellWriter(words, members is not None and not printed),
        "anchors": {outline.case: outline.id for outline in fits},
        "parts": list_parts(reader),
        "reader": reader,
        "assets": assets,
        "links": links or Links(),
        "languages": {one: load_words(one)("page.language") for one in LANGUAGES},
        "printed": printed,
        "by_id": by_id,
        "places": places,
        "place": lambda cases: " ".join(str(places[case]) for case in cases if case in places),
        "title": statements.name_study(document, words),
        "screens": [*_list_screens(overview, words)],
        "components": show_components(overview, words),
        "variants": list_variants(figures, names),
        "extended": [one.case for one in document.models if one.elements is not None],
        "trust": {one.case: _describe_trust(one, words) for one in document.trust},
        "answers": [lay_under(one, uses) for one in by_id["answer"].tables],
        "hypotheses": _group_hypotheses(document),
        "own_calibration": [one for one in by_id["calibration"].figures if one.view.case in places],
        "cases": _explain_each(fits, document, statements.explain_case, say),
        "futures": _explain_each(futures, document, statements.explain_forecast, say),
        "matrices": {one.case: show_matrices(one.case, one.id, document, say) for one in futures},
        "strongest": STRONGEST,
        "tabs": [] if members is None else _show_tabs(document, words),
        "labels": None if members is None else _label_members(document, words),
        "members": None if members is None or printed else pack_members(document, members, places, words),
        "script_words": {
            "texts": _list_script_words(words),
            "cases": names,
            "style": style(PAGE),
            "light": {name: light for name, (light, _) in (CSS_VARIABLES | COLOURS).items()},
        },
        **_list_code(assets),
    }
    return _environment().get_template("page.html").render(**shown) + "\n"


@dataclass(frozen=True)
class PartWriter:
    """Tables and figures of the page by themselves, for other pages that have its style sheet."""

    words: Words

    def write_table(self, shown: ShownTable) -> Markup:
        """A table as HTML."""
        return Markup(self._macros.table(shown))

    def write_figure(self, view: FigureView | None) -> Markup:
        """A figure as HTML, drawn; nothing where nothing is drawn."""
        if view is None:
            return Markup("")
        return Markup(self._macros.figure(ShownFigure(view, f"figure-{slug(view.name)}")))

    def write_matrix(self, matrix: HeatMatrix, heading: str) -> Markup:
        """A matrix as HTML; its name is that of the heading with this anchor, or of several, and its own."""
        return Markup(self._macros.matrix(matrix, heading))

    def write_cards(self, cards: Sequence[Card]) -> Markup:
        """The figures of the first screen as HTML."""
        return Markup(self._macros.numbers(cards))

    @cached_property
    def _macros(self) -> Any:
        known = {"words": self.words, "cell": CellWriter(self.words), "places": {}, "anchors": {}, "printed": True}
        return _environment().get_template("macros.html").make_module(known)


def list_assets() -> dict[str, str]:
    """The style and the scripts of every page as files, by name: for a server that sends them by themselves."""
    code = (write_style(), "".join(map(_read, SCRIPTS)), bundle_script())
    return dict(zip(ASSETS, code, strict=True))


def _list_code(assets: str | None) -> dict[str, Any]:
    """Style and scripts, and the policy that allows these and nothing else."""
    style_text, script, bundle = (Markup(text) for text in list_assets().values())
    if assets is None:
        scripts, styles = " ".join(map(name_digest, (bundle, script))), name_digest(style_text)
    else:
        scripts = styles = "'self'"
    return {
        "policy": f"script-src {scripts}; style-src {styles}",
        "style": style_text,
        "script": script,
        "bundle": bundle,
    }


def name_digest(text: str) -> str:
    """A source expression of a Content-Security-Policy: what has this digest may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The first screen


def _list_screens(document: Document, words: Words) -> list[Screen]:
    """First screens: of all components, and of each where there are several."""
    cases = [case.case for case in document.cases]
    asked = [("all", None), *((str(n), case) for n, case in enumerate(cases) if len(cases) > 1)]
    return [_make_screen(document, place, case, words) for place, case in asked]


def _make_screen(document: Document, place: str, case: str | None, words: Words) -> Screen:
    found = make_overview(document, words, case)
    if not found.first:
        return Screen(place, found, None)
    view = tabulate_first(document, found.first, words)
    return Screen(place, found, ShownTable(_hold_headings(view), f"first-{place}", quiet=True))


def show_components(document: Document, words: Words) -> ShownTable:
    """Each component with its members, counts, years and trust."""
    rows = list_components(document, words)
    trust = ["" if row.trust is None else describe_reasons(row.trust, words)[0] for row in rows]
    view = _hold_headings(tabulate_components(rows, trust, words))
    return ShownTable(view, "table-components", links=True)


def _describe_trust(part: Any, words: Words) -> Trust:
    return Trust(part.level, name_level(part.level, words), describe_reasons(part, words))


# Members


def _show_tabs(document: Document, words: Words) -> list[tuple[str, int, ShownTable]]:
    """Tabs with their number of members, and a table of the first of them."""
    network, found = document.network, []
    assert network is not None
    assert network.every is not None
    for name, tab in TABS.items():
        rows = list_members(network, tab, MOST_LISTED, words)
        view = tabulate_first(document, rows, words, f"members_{name}")
        shown = ShownTable(_hold_headings(view), f"members-{name}", quiet=True)
        found.append((name, network.every.tab.count(tab), shown))
    return found


def pack_members(
    document: Document, members: MembersPart, places: Mapping[str, int], words: Words
) -> dict[str, Any]:
    """All members by columns, as the script draws them; numbers have the digits that are shown."""
    network = document.network
    assert network is not None
    ratings, worst = network.ratings, max((len(one.expected) for one in network.years), default=1)
    units = {one.name: one.unit for one in document.study.covariates}
    states = range(1, worst + 1)
    whole = members.model_dump(exclude={"remarks", "soon", "median", "values", "ratios", "frailty"})
    return whole | {
        "soon": [_round(one) for one in members.soon],
        "median": [_round(one) for one in members.median],
        "values": [[one if isinstance(one, str) else _round(one) for one in column] for column in members.values],
        "ratios": [[_round(one) for one in column] for column in members.ratios],
        "frailty": [_round(one) for one in members.frailty],
        "remarks": [words.format(one) for one in members.remarks],
        "covariates": [words.covariate(name) for name in members.covariates],
        "units": [words.get(f"unit.{units.get(name)}", "") for name in members.covariates],
        "places": [places.get(case, -1) for case in members.cases],
        "ratings": [ratings.name(state, words) for state in states],
        "rated": [ratings.phrase(state, words) for state in states],
        "worse": [ratings.phrase_or_worse(state, words) for state in states],
        "late": [shade(share / 8) for share in range(9)],
        "colours": [colour_state(state, worst, PAGE) for state in states],
        "base": _count_years(network),
        "soon_years": network.soon,
    }


def _label_members(document: Document, words: Words) -> dict[str, str]:
    """Headings and sentences of the list of members."""
    assert document.network is not None
    assert document.network.every is not None
    dated = any(one is not None for one in document.network.every.calendar)
    return {
        **{key: words(f"column.{key}") for key in ("bridge", "case", "member", "seen", "remark")},
        "state": words("column.state_seen"),
        "soon": words("column.chance_in", years=document.network.soon),
        "when": words("column.expected_year" if dated else "column.median_until"),
        "caption": words("part.members.title"),
        "between": words.join(("", ""), "semicolon"),
        **{name: words(f"page.members.{name}") for name in TABS},
    }


def _count_years(network: NetworkPart) -> float | None:
    """The base date as a year with its fraction."""
    if network.base is None:
        return None
    day = date.fromisoformat(network.base)
    return round(day.year + (day.timetuple().tm_yday - 1) / 365.25, 2)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


# Components


def show_matrices(case: str, id: str, document: Document, say: Wording) -> list[HeatMatrix]:  # noqa: A002
    """Matrices of a typical member; the darker a cell, the more probable."""
    model = next((one for one in document.models if one.case == case), None)
    if model is None or model.forecast is None:
        return []
    words, ratings = say.words, document.ratings
    found = []
    for number, part in enumerate(model.forecast.matrices, 1):
        names = tuple(ratings.name(state, words) for state in range(1, len(part.probability) + 1))
        rows = tuple(
            (name, tuple(_shade_cell(one, better=n < start) for n, one in enumerate(row)))
            for start, (name, row) in enumerate(zip(names, part.probability, strict=True))
        )
        title = say("page.matrix.title", years=say.count("years", int(part.years)))
        found.append(HeatMatrix(f"{id}-matrix-{number}", title, names, rows))
    return found


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
    found.filters["live"] = lambda view: getattr(view, "live", True)
    found.globals |= {
        "draw": _draw,
        "isolate": _isolate,
        "icons": ICONS,
        "json": _write_json,
        "json_text": partial(json.dumps, ensure_ascii=False),
        "pack": _pack,
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


def _draw(panel: PanelView, prefix: str) -> Markup:
    """A chart as a picture; draw_svg writes XML, so that nothing in it needs escaping."""
    return Markup(slim_svg(draw_svg(panel.spec, prefix)))


def _isolate(text: str) -> Markup:
    """A sentence whose names of another direction are set apart, as HTML sets them apart."""
    return Markup(str(escape(text)).translate(_SET_APART))


def _write_json(value: Any) -> Markup:
    """JSON that can stand inside a script element."""
    return Markup(_dump(value).translate(_UNSAFE))


def _pack(value: Any) -> Markup:
    """JSON in a sixth of its length: compressed by gzip, in letters of base64. A browser can unpack it."""
    return Markup(base64.b64encode(gzip.compress(_dump(value).encode(), mtime=0)).decode())


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class CellWriter:
    """Cells of tables as HTML. A page has a hundred thousand of them: a template would take its time.

    Where every member has a ``card`` the names of bridges lead to it.
    """

    words: Words
    cards: bool = False

    def __call__(
        self,
        cell: Cell,
        column: Column,
        *,
        head: bool,
        under: Sequence[Markup] = (),
        to: str = "",
        label: bool = False,
    ) -> Markup:
        """A cell, or a row's head; ``under`` stands below it in small type, ``to`` is an address to go to.

        With ``label`` it has its heading, for screens on which a row is a card.
        """
        tag, scope = ("th", ' scope="row"') if head else ("td", "")
        text = self._text(cell, column)
        text = f'<a href="{escape(to)}">{text}</a>' if head and to else text
        lines = "".join(f' <small class="under">{line}</small>' for line in under)
        title = f' data-label="{escape(_strip(column.title))}"' if label and not head else ""
        return Markup(f"<{tag}{scope}{title}{self._look(cell, column)}>{text}{lines}</{tag}>")

    def _look(self, cell: Cell, column: Column) -> str:
        """Where a cell stands, how it looks, and its numbers with all their digits."""
        long = column.kind == "text" and len(cell.text)
        classes = {
            "n": column.kind == "number",
            "t": long > SENTENCE,
            "s": PHRASE < long <= SENTENCE,
            "strong": cell.strong,
            "faint": cell.faint,
            "missing": cell.text == MISSING,
            "d": column.key in DATES or (column.key == "member" and len(cell.text) <= NAME),
            "bridge": column.key == "bridge" and self.cards,
        }
        shown = " ".join(name for name, holds in classes.items() if holds)
        found = f' class="{shown}"' if shown else ""
        if isinstance(cell.value, int | float):
            number = repr(cell.value + 0)  # of a truth value, too
            found += "" if number == cell.text else f' data-value="{number}"'
        if column.parts and cell.parts:
            found += f' data-parts="{escape(json.dumps(cell.parts, ensure_ascii=False, allow_nan=False))}"'
        return found

    def _text(self, cell: Cell, column: Column) -> str:
        """A name keeps its direction, an English sentence its language, an interval its line."""
        text = str(escape(cell.text))
        if cell.text == MISSING:
            return f'{text}<span class="unseen">{escape(self.words("page.missing"))}</span>'
        if column.key == "trust" and cell.value:
            level = str(cell.value)
            name = escape(name_level(level, self.words))
            return (
                f'<span class="level {level}"><span aria-hidden="true">{ICONS[level]}</span> {name}</span> {text}'
            )
        if column.key in NAMES:
            return f"<bdi>{text}</bdi>"
        if len(cell.parts) == SPAN:
            return _hold_together(text)
        if column.kind == "number":
            return _BRACKETS.sub(lambda found: f"{_may_break(found[0])}{_hold_together(found[0])}", text)
        return f'<span lang="en">{text}</span>' if cell.english and self.words.lang != ENGLISH else text


def _strip(title: str) -> str:
    """A heading without what holds it together."""
    return title.striptags() if isinstance(title, Markup) else title


def _hold_headings(view: TableView) -> TableView:
    """The table with short Japanese headings in one line each: a browser breaks such a word at any letter."""
    columns = [
        replace(one, title=Markup('<span class="d">{}</span>').format(one.title))
        if len(one.title) <= SHORT and not one.title.isascii()
        else one
        for one in view.columns
    ]
    return replace(view, columns=tuple(columns))


def _hold_together(text: str) -> str:
    """An interval in one line: neither spaces nor a wave dash break it."""
    return _DASH.sub("\u2060\\g<0>\u2060", text.replace(" ", "\u00a0"))


def _may_break(bracket: str) -> str:
    """A line may break before a wide bracket; between a per cent sign and a number in it no browser does."""
    return "<wbr>" if bracket[0] == "\uff08" else ""


def _shade_cell(probability: float, *, better: bool) -> tuple[float, str, int]:
    """A cell of a matrix; ratings better than now stay blank where nothing improves."""
    return (
        probability,
        "" if better and not probability else show_share(probability, 1),
        round(probability * HEATS),
    )


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
