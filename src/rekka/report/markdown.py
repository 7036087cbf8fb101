"""The report as Markdown, of the kind that GitHub, GitLab and pandoc read: sentences, tables, captions of figures.

Names from data are escaped: a case called ``<script>`` or ``a | b`` is shown as it is spelt, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

from rekka.report import statements as sentences
from rekka.report.document import Document, FindingPart
from rekka.report.naming import name_components
from rekka.report.outline import SECTIONS, find_section
from rekka.report.overview import describe_trust, list_components, make_overview
from rekka.report.statements import (
    Wording,
    explain_case,
    explain_forecast,
    explain_headline,
    explain_network,
    explain_run,
    explain_scores,
    list_alerts,
    list_doubts,
    list_headlines,
    list_warnings,
)
from rekka.report.tables.cells import coded_cell
from rekka.report.tables.models import tabulate_first
from rekka.report.tables.overview import tabulate_components
from rekka.report.tables.study import finding_cell
from rekka.report.text import Words, join_names, join_sentences
from rekka.report.views import Cell, FigureView, TableView

_ACTIVE = re.compile(r"([\\`*_{}\[\]|~$#])")
_FIRST = re.compile(r"^(\d{0,9})([-+.)=])(?=\s|$|[-=]+$)")  # a list or a rule, where a line begins so
_LINK = re.compile(r"(?i)(:)(?=//)|(?<=www)(\.)|(@)")  # GitHub makes links of these by itself
_TAGS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape_markdown(text: str) -> str:
    """Any text on one line, shown as it is spelt: no markup, no HTML, no link, no column of a table."""
    line = " ".join(_drop_controls(text).split())
    line = _ACTIVE.sub(r"\\\1", line.translate(_TAGS))
    line = _LINK.sub(lambda found: "\\" + found.group(), line)
    return _FIRST.sub(r"\1\\\2", line)


def _drop_controls(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter.isspace() else "" for letter in text)


def markdown_table(table: TableView) -> str:
    """Rows under headings; the note alone where there are none."""
    if not table.rows:
        return escape_markdown(table.note) + "\n"
    rules = ["---:" if column.kind == "number" else "---" for column in table.columns]
    lines = [[escape_markdown(column.heading) for column in table.columns], rules]
    lines += [[_cell(cell) for cell in row.cells] for row in table.rows]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + (f"\n{escape_markdown(table.note)}\n" if table.note else "")


def render_tables(tables: Iterable[TableView]) -> str:
    """All tables, each under its title."""
    return "\n".join(f"## {escape_markdown(table.title)}\n\n{markdown_table(table)}" for table in tables)


def _cell(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    return f"**{text}**" if cell.strong and text else text


_FENCE = re.compile(r"`+")
LISTED = ("findings", "hypotheses")  # not as tables, since their cells are sentences
DRAWN = ("tradeoff", "heat")  # sections of figures alone
RULE = "---"
FORMULAS = {  # that follow the texts of a note, as on the page
    "model": (
        r"\theta_k(x) = \exp(\beta_{k0} + \beta_{k1} x_1 + \cdots + \beta_{kp} x_p), \quad k = 1, \ldots, K-1",
        r"\pi_{ij}(\Delta t) = [\exp(Q\, \Delta t)]_{ij}",
    ),
    "erratum": (
        r"\sum_{k=i}^{j} \prod_{m \neq k} \frac{\theta_m}{\theta_m - \theta_k}\, e^{-\theta_k \Delta t}",
        r"\pi_{ij}(\Delta t) = \prod_{l=i}^{j-1} \theta_l \sum_{k=i}^{j} "
        r"\frac{e^{-\theta_k \Delta t}}{\prod_{m \neq k} (\theta_m - \theta_k)}, \quad \theta_K = 0",
    ),
}


def render_markdown(
    document: Document,
    tables: Sequence[TableView],
    figures: Sequence[FigureView],
    words: Words,
    pictures: Mapping[str, str] | None = None,
) -> str:
    """The report: what the page says, in its order. ``pictures`` are paths of figures, by name."""
    overview, document = document, name_components(document, words)
    parts = [*_open(overview, words)]
    can_draw = any(trial.eligible and trial.accuracy is not None for trial in document.trials)
    for section in SECTIONS:
        own = [table for table in tables if find_section(table) == section and table.name not in LISTED]
        drawn = [figure for figure in figures if find_section(figure) == section]
        body = [*_explain_section(section, document, words)]
        body += [f"### {escape_markdown(table.title)}\n\n{markdown_table(table)}" for table in own]
        body += [_render_figure(figure, pictures or {}, words) for figure in drawn]
        if section in DRAWN and not drawn and not own and can_draw:
            continue  # it was asked for without figures
        head = f"## {escape_markdown(words(f'section.{section}.title'))}\n"
        lead = _find_lead(section, document, words, empty=not own and not drawn)
        parts += [head, *([_say(lead)] if lead else []), *body]
    return "\n".join(parts)


def _open(document: Document, words: Words) -> Iterator[str]:
    """The title, what a reader must know of the whole, and the headline."""
    tell = Wording(words)
    yield f"# {escape_markdown(words('page.title', title=sentences.name_study(document, words)))}\n"
    yield f"{escape_markdown(words('page.kicker', version=document.rekka))}\n"
    for line in list_alerts(document, tell):
        yield f"> {_say(line)}"
    made = make_overview(document, words)
    yield f"**{_say(made.headline).strip()}**\n"
    yield from (f"{_say(line)}\n" for line in made.notes)


def _render_answer(document: Document, tell: Wording) -> Iterator[str]:
    """How many components have a model, by which methods, how well they did, what was run."""
    yield f"**{_say(explain_headline(document, tell)).strip()}**\n"
    yield _list(list_headlines(document, tell))
    yield from (f"> {_say(line)}" for line in list_doubts(document, tell))
    shown = explain_scores(document, tell)
    if shown:
        yield _say(shown.lead)
        yield _list(shown.lines)
        yield _say(shown.meaning)
    yield f"{RULE}\n"  # else two lists are one
    yield _list(explain_run(document, tell))


def _find_lead(section: str, document: Document, words: Words, *, empty: bool) -> str:
    """The first sentences of a section; in their place, where it has nothing, that it has nothing."""
    tell = Wording(words)
    if section == "backtests" and not document.backtests:
        return tell("section.backtests.none", command=sentences.BACKTEST_COMMAND)
    if section == "stability":
        return sentences.explain_stability(document, tell)
    if section == "presets" and not document.presets:
        return tell("section.presets.one", preset=tell.preset(document.study.preset))
    if section == "hypotheses" and document.hypotheses:
        return join_sentences((words("section.hypotheses.lead"), words("section.hypotheses.meaning")), words)
    if section == "calibration" and not document.calibration:
        return sentences.explain_no_calibration(document, tell)
    nothing = {
        **dict.fromkeys(DRAWN, empty),
        "hypotheses": True,
        "heldout": empty,
        "models": not document.cases,
        "forecast": not document.cases,
    }
    return words.get(f"section.{section}.{'none' if nothing.get(section) else 'lead'}", "")


def _explain_section(section: str, document: Document, words: Words) -> Iterator[str]:
    """Sentences of a section."""
    tell = Wording(words)
    if section == "findings":
        yield from _render_findings(document, words)
    elif section == "network":
        yield from _render_overview(document, words)
        yield from _render_network(document, tell)
    elif section == "answer":
        yield from _render_answer(document, tell)
    elif section == "backtests":
        yield _list(sentences.explain_backtest(one, tell) for one in document.backtests)
    elif section == "presets":
        yield _list(sentences.list_causes(document, tell))
    elif section == "hypotheses":
        yield from _render_hypotheses(document, words)
    elif section == "stability" and document.stability:
        yield _list(map(words.say_text, document.stability.remarks))
    elif section == "models":
        yield from _render_cases(document, tell)
    elif section == "forecast":
        yield from _render_future(document, tell)
    elif section == "certificates":
        yield _define("section.certificates", sentences.QUESTIONS, words)
    elif section == "audit":
        yield from _render_audit(document, tell)
    elif section == "method":
        yield from _render_notes(document, words)
    elif section == "provenance":
        yield from _render_provenance(document, words)


def _render_findings(document: Document, words: Words) -> Iterator[str]:
    found, passed = sentences.split_findings(document.findings)
    yield from (_render_finding(one, words) for one in found)
    if not found:
        yield _say(words("section.findings.none"))
    if passed:
        yield f"{escape_markdown(words('section.findings.passed', n=len(passed)))}\n"
        yield "".join(f"- {_name_finding(one, words)}\n" for one in passed)


def _name_finding(finding: FindingPart, words: Words) -> str:
    title = finding_cell(finding, "title", words).text
    verdict = coded_cell(finding.verdict, "verdict", words).text
    return f"{finding.code} {escape_markdown(verdict)}: {escape_markdown(title)}"


def _render_cases(document: Document, tell: Wording) -> Iterator[str]:
    """Each case: what was chosen, of what, and its certificate."""
    for case in document.cases:
        told = explain_case(document, case, tell)
        yield f"### {escape_markdown(case.case)}\n"
        yield f"**{_say(told.label).strip()}**\n"
        if told.warning:
            yield f"> {_say(told.warning)}"
        yield _list(told.lines)
        if told.certificate:
            yield f"#### {escape_markdown(tell.words('section.models.certificate.heading'))}\n"
            yield _list(told.certificate)


def _render_overview(document: Document, words: Words) -> Iterator[str]:
    """The first screen: counts, years, trust, the members to inspect first, what to do."""
    found = make_overview(document, words)
    rows = list_components(document, words)
    trust = ["" if row.trust is None else describe_trust(row.trust, words) for row in rows]
    yield from (f"> {_say(line)}" for line in found.missing)
    yield _list(f"{card.label}: {card.value}. {card.detail}" for card in found.cards)
    for table in (tabulate_components(rows, trust, words), tabulate_first(document, found.first, words)):
        if table.rows:
            yield f"### {escape_markdown(table.title)}\n\n{markdown_table(table)}"
    if found.actions:
        yield f"### {escape_markdown(words('page.overview.actions'))}\n\n{_list(found.actions)}"


def _render_network(document: Document, tell: Wording) -> Iterator[str]:
    """Where the numbers of the network come from."""
    words = tell.words
    network = explain_network(document, tell)
    yield from (f"> {_say(line)}" for line in network.warnings)
    yield f"### {escape_markdown(words('page.overview.numbers'))}\n"
    yield _list(network.lines)
    if network.notes:
        notes = _list(map(words.say_text, network.notes))
        yield f"#### {escape_markdown(words('section.network.notes'))}\n\n{notes}"


def _render_future(document: Document, tell: Wording) -> Iterator[str]:
    """Each case: how long it takes, what advances, what changes would do."""
    words = tell.words
    yield from (f"> {_say(line)}" for line in list_warnings(document, tell))
    yield f"### {escape_markdown(words('section.forecast.cases'))}\n\n{_say(words('section.forecast.cases_lead'))}"
    for case in document.cases:
        told = explain_forecast(document, case, tell)
        yield f"#### {escape_markdown(case.case)}\n"
        yield f"**{_say(told.label).strip()}**\n"
        if told.warning:
            yield f"> {_say(told.warning)}"
        yield _list((*told.lines, *told.effects))


def _render_audit(document: Document, tell: Wording) -> Iterator[str]:
    words = tell.words
    if document.audit.outcomes:
        yield _say(sentences.explain_records(document, tell))
    else:
        yield _say(words("section.audit.no_records"))
    if document.audit.notes:
        notes = _list(map(words.say_text, document.audit.notes))
        yield f"### {escape_markdown(words('section.audit.notes'))}\n\n{notes}"
    if not document.audit.findings:
        yield _say(words("section.audit.no_doctor"))


def _define(group: str, names: Iterable[str], words: Words) -> str:
    """Terms, each with what it means."""
    return "".join(
        f"- **{escape_markdown(words(f'{group}.{name}_term'))}**: {_say(words(f'{group}.{name}'))}"
        for name in names
    )


def _render_finding(finding: FindingPart, words: Words) -> str:
    found, remedy = (finding_cell(finding, part, words).text for part in ("explanation", "remedy"))
    head = f"- **{_name_finding(finding, words)}**"
    cases = f"\n  ({escape_markdown(join_names(finding.cases, words))})" if finding.cases else ""
    todo = escape_markdown(words("section.findings.remedy"))
    return f"{head}{cases}\n  {escape_markdown(found)}\n  *{todo}*: {escape_markdown(remedy)}\n"


def _render_hypotheses(document: Document, words: Words) -> Iterator[str]:
    for preset in dict.fromkeys(one.preset for one in document.hypotheses):
        name = words.get(f"preset.{preset}", preset)
        yield f"### {escape_markdown(words('section.hypotheses.preset', preset=name))}\n"
        for one in document.hypotheses:
            if one.preset == preset:
                verdict = coded_cell(one.verdict, "hypothesis", words).text
                claim = words.get(f"claim.{one.code.lower()}", one.claim)
                head = f"- **{one.code} {escape_markdown(verdict)}**: {escape_markdown(claim)}"
                yield f"{head}\n  {escape_markdown(words.say_text(one.evidence))}\n"


def _render_notes(document: Document, words: Words) -> Iterator[str]:
    """The method notes: model, methods, erratum, rule, scores, what converged means, presets, limits."""
    tell = Wording(words)
    for note, texts in (("model", ("text", "text_2", "text_3")), ("erratum", ("text", "text_2", "text_3"))):
        yield _title_note(note, words)
        for place, text in enumerate(texts):
            yield _say(words(f"note.{note}.{text}"))
            yield from (f"$${formula}$$\n" for formula in FORMULAS[note][place : place + 1])
        if note == "model":
            yield _title_note("methods", words)
            yield _list(sentences.list_methods(document, tell))
    yield _say(words("note.erratum.medians"))
    yield _title_note("rule", words)
    yield _say(words(f"note.rule.{document.study.rule}"))
    steps = enumerate(sentences.STEPS, start=1)
    yield "".join(f"{number}. {_say(words(f'note.rule.{step}'))}" for number, step in steps)
    guard = sentences.explain_guard(document, tell)
    yield "\n".join(_say(one) for one in (guard, words("note.rule.rows"), words("note.rule.none")) if one)
    yield _title_note("scores", words)
    yield _define("note.scores", sentences.SCORES, words)
    yield _title_note("converged", words)
    meanings = (words("note.converged.converged"), words("note.converged.certified"))
    yield _list([*meanings, sentences.explain_eligible(document, tell)])
    yield _title_note("presets", words)
    yield _list(sentences.list_presets(document, tell))
    yield _title_note("limits", words)
    yield _list(sentences.list_limits(words))


def _title_note(note: str, words: Words) -> str:
    return f"### {escape_markdown(words(f'note.{note}.title'))}\n"


def _render_provenance(document: Document, words: Words) -> Iterator[str]:
    known = document.provenance
    for key, text in (("begun", known.begun), ("command", known.command), ("again", known.again)):
        if text:
            yield f"{escape_markdown(words(f'section.provenance.{key}'))}:\n\n{_fence(text)}"
    yield f"### {escape_markdown(words('section.provenance.plan'))}\n\n{_fence(known.plan, 'toml')}"


def _render_figure(figure: FigureView, pictures: Mapping[str, str], words: Words) -> str:
    """Title, picture or its description, caption."""
    alt = escape_markdown(" ".join(panel.alt for panel in figure.panels))
    path = pictures.get(figure.name)
    shown = f"![{alt}](<{_quote_path(path)}>)" if path else alt
    return f"### {escape_markdown(figure.title)}\n\n{shown}\n\n{escape_markdown(figure.caption)}\n"


def _say(sentence: str) -> str:
    """A sentence of the page without its HTML."""
    plain = sentence.striptags() if isinstance(sentence, Markup) else sentence
    return escape_markdown(plain) + "\n"


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {_say(one)}" for one in lines)


def _fence(text: str, language: str = "") -> str:
    """A block of code; its fence is longer than any in it."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _quote_path(path: str) -> str:
    return re.sub(r"[<>\\\s]", lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), path)
