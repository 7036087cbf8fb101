"""The whole report as Markdown: what the page says, in its order, with the tables and the figures' captions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from markupsafe import Markup

from rekka.report.document import Document, FindingPart, PresetPart
from rekka.report.markdown_text import escape_markdown, markdown_table
from rekka.report.outline import ANYTHING_ELSE, SECTIONS
from rekka.report.sentences import (
    Teller,
    list_banners,
    list_headlines,
    name_study,
    split_findings,
    tell_eligible,
    tell_guard,
    tell_headline,
    tell_run,
    tell_shown,
)
from rekka.report.table_cells import coded_cell, join
from rekka.report.table_data import fixed_cell
from rekka.report.views import FigureView, TableView
from rekka.report.words import Words

_FENCE = re.compile(r"`+")
TOLD = ("findings", "hypotheses")  # as lists, since their cells are sentences
STEPS = ("certified", "stable", "accuracy", "log_loss", "replaced", "cost")  # of the guarded rule
RULE = "---"
SCORES = ("accuracy", "log_loss", "recall", "brier", "persistence", "baseline", "interval")
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
    parts = [*_open(document, words)]
    for section in SECTIONS:
        own = [table for table in tables if _find_section(table.name) == section and table.name not in TOLD]
        drawn = [figure for figure in figures if _find_section(figure.name) == section]
        body = [*_tell_section(section, document, words)]
        lead = words.get(f"section.{section}.lead", "")
        body += [f"### {escape_markdown(table.title)}\n\n{markdown_table(table)}" for table in own]
        body += [_render_figure(figure, pictures or {}, words) for figure in drawn]
        if body:
            head = f"## {escape_markdown(words(f'section.{section}.title'))}\n"
            parts += [head, *([_say(lead)] if lead and "{" not in lead else []), *body]
    return "\n".join(parts)


def _open(document: Document, words: Words) -> Iterator[str]:
    """The title, what a reader must know before the answer, what was run."""
    tell = Teller(words)
    yield f"# {escape_markdown(words('page.title', title=name_study(document, words)))}\n"
    yield f"{escape_markdown(words('page.kicker', version=document.rekka))}\n"
    for banner in list_banners(document, tell):
        yield f"> {_say(banner)}"
    yield f"**{_say(tell_headline(document, tell)).strip()}**\n"
    yield _list(list_headlines(document, tell))
    shown = tell_shown(document, tell)
    if shown:
        yield _say(shown.lead)
        yield _list(shown.lines)
        yield _say(shown.meaning)
    yield f"{RULE}\n"  # else two lists are one
    yield _list(tell_run(document, tell))


def _tell_section(section: str, document: Document, words: Words) -> Iterator[str]:
    """What a section says in sentences."""
    if section == "findings":
        found, _ = split_findings(document.findings)
        yield from (_render_finding(one, words) for one in found)
        if not found:
            yield _paragraph(words("section.findings.none"))
    elif section == "hypotheses":
        yield from _render_hypotheses(document, words)
    elif section == "stability" and document.stability:
        yield _list(document.stability.remarks)
    elif section == "audit" and document.audit.notes:
        yield f"### {escape_markdown(words('section.audit.notes'))}\n\n{_list(document.audit.notes)}"
    elif section == "method":
        yield from _render_notes(document, words)
    elif section == "provenance":
        yield from _render_provenance(document, words)


def _render_finding(finding: FindingPart, words: Words) -> str:
    title, remedy = (fixed_cell(finding, "check", part, words).text for part in ("title", "remedy"))
    verdict = coded_cell(finding.verdict, "verdict", words).text
    head = f"- **{finding.code} {escape_markdown(verdict)}: {escape_markdown(title)}**"
    cases = f"\n  ({escape_markdown(join(finding.cases, words))})" if finding.cases else ""
    todo = escape_markdown(words("section.findings.remedy"))
    return f"{head}{cases}\n  {escape_markdown(finding.explanation)}\n  *{todo}*: {escape_markdown(remedy)}\n"


def _render_hypotheses(document: Document, words: Words) -> Iterator[str]:
    for preset in dict.fromkeys(one.preset for one in document.hypotheses):
        name = words.get(f"preset.{preset}", preset)
        yield f"### {escape_markdown(words('section.hypotheses.preset', preset=name))}\n"
        for one in document.hypotheses:
            if one.preset == preset:
                verdict = coded_cell(one.verdict, "hypothesis", words).text
                claim = words.get(f"claim.{one.code.lower()}", one.claim)
                head = f"- **{one.code} {escape_markdown(verdict)}**: {escape_markdown(claim)}"
                yield f"{head}\n  {escape_markdown(one.evidence)}\n"


def _render_notes(document: Document, words: Words) -> Iterator[str]:
    """The method notes: model, erratum, rule, scores, what converged means, presets, limits."""
    tell = Teller(words)
    for note, texts in (("model", ("text", "text_2", "text_3")), ("erratum", ("text", "text_2", "text_3"))):
        yield _title_note(note, words)
        for place, text in enumerate(texts):
            yield _say(words(f"note.{note}.{text}"))
            yield from (f"$${formula}$$\n" for formula in FORMULAS[note][place : place + 1])
    yield _say(words("note.erratum.medians"))
    yield _title_note("rule", words)
    yield _say(words(f"note.rule.{document.study.rule}"))
    yield "".join(f"{number}. {_say(words(f'note.rule.{step}'))}" for number, step in enumerate(STEPS, start=1))
    guard = tell_guard(document, tell)
    yield "\n".join(_say(one) for one in (guard, words("note.rule.rows"), words("note.rule.none")) if one)
    yield _title_note("scores", words)
    yield "".join(
        f"- **{escape_markdown(words(f'note.scores.{score}_term'))}**: {_say(words(f'note.scores.{score}'))}"
        for score in SCORES
    )
    yield _title_note("converged", words)
    sentences = (words("note.converged.converged"), words("note.converged.certified"))
    yield _list([*sentences, tell_eligible(document, tell)])
    yield _title_note("presets", words)
    yield _list(_tell_preset(one, words) for one in document.study.presets)
    yield _title_note("limits", words)
    yield _list(text for key, text in words.texts.items() if key.startswith("note.limits.list_"))


def _title_note(note: str, words: Words) -> str:
    return f"### {escape_markdown(words(f'note.{note}.title'))}\n"


def _tell_preset(preset: PresetPart, words: Words) -> str:
    name, cost = words.get(f"preset.{preset.name}", preset.name), words.get(f"cost.{preset.cost}", preset.cost)
    return words("note.presets.text", preset=name, words=preset.words, cost=cost)


def _render_provenance(document: Document, words: Words) -> Iterator[str]:
    known = document.provenance
    for key, text in (("begun", known.begun), ("command", known.command), ("again", known.again)):
        if text:
            yield f"{escape_markdown(words(f'section.provenance.{key}'))}:\n\n{_fence(text)}"
    yield f"### {escape_markdown(words('section.provenance.plan'))}\n\n{_fence(known.plan, 'toml')}"


def _render_figure(figure: FigureView, pictures: Mapping[str, str], words: Words) -> str:
    """Its title, its picture or what it would show, its caption."""
    alt = escape_markdown(" ".join(panel.alt for panel in figure.panels))
    path = pictures.get(figure.name)
    shown = f"![{alt}](<{_quote_path(path)}>)" if path else alt
    return f"### {escape_markdown(figure.title)}\n\n{shown}\n\n{escape_markdown(figure.caption)}\n"


def _find_section(name: str) -> str:
    found = (key for key, patterns in SECTIONS.items() if any(fnmatchcase(name, one) for one in patterns))
    return next(found, ANYTHING_ELSE)


def _say(sentence: str) -> str:
    """A sentence of the page without its HTML."""
    plain = sentence.striptags() if isinstance(sentence, Markup) else sentence
    return escape_markdown(plain) + "\n"


def _paragraph(sentence: str) -> str:
    return escape_markdown(sentence) + "\n"


def _list(sentences: Iterable[str]) -> str:
    return "".join(f"- {_say(one)}" for one in sentences)


def _fence(text: str, language: str = "") -> str:
    """A block of code; its fence is longer than any in it."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _quote_path(path: str) -> str:
    return re.sub(r"[<>\\\s]", lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), path)
