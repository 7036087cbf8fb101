r"""Tables as LaTeX in the manner of the paper: booktabs, a caption, a label, numbers to the right.

Characters that LaTeX would act on are escaped; signs such as a true minus or a raised 2 become commands, so that
pdflatex takes them. Names in scripts beyond Latin stand as they are, for lualatex, xelatex or uplatex.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable

from rekka.report.views import Cell, Column, Row, TableView

LONGEST_FLOAT = 30  # rows of a table that fits a page; a longer one is a longtable
LONG_TEXT = 36  # characters of a column from which it is set as paragraphs
MANY_COLUMNS, VERY_MANY_COLUMNS = 5, 9  # from here on a table is set smaller
NARROW_COLUMN = 0.08  # of the line's width; what is left is shared by columns of paragraphs
LEAST_PARAGRAPH, MOST_PARAGRAPH = 0.12, 0.6  # of the line's width
HEAD_WIDTH = 14  # characters of a line of a heading
HEAD = r"""% Tables of a rekka report. In the preamble:
%   \usepackage[T1]{fontenc}
%   \usepackage[utf8]{inputenc}
%   \usepackage{array,booktabs,longtable}
% and in the text \input{tables}, or any of the tables below. Wide ones want landscape (package pdflscape).
"""
OTHER_SCRIPTS = "% Some names are in scripts that pdflatex has no letters for: use lualatex, xelatex or uplatex.\n"

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after \\ or \midrule they would be an option
    "-": "-{}", "'": "'{}", ",": ",{}",  # see _escape_piece
    "\u2212": "$-$", "\u2013": "--", "\u2014": "---", "\u2026": r"\dots{}", "\u00d7": r"$\times$",
    "\u221e": r"$\infty$", "\u2264": r"$\leq$", "\u2265": r"$\geq$", "\u2248": r"$\approx$", "\u00b1": r"$\pm$",
    "\u2192": r"$\rightarrow$", "\u00b0": r"\textdegree{}", "\u00b5": r"$\mu$", "\u03bc": r"$\mu$",
    "\u2018": "`{}", "\u2019": "'{}", "\u201c": "``", "\u201d": "''", "\u2022": r"\textbullet{}",
    "\u00a0": "~", "\u202f": r"\,", "\u2009": r"\,", "\u20ac": r"\texteuro{}",
}  # fmt: skip
_RAISED = dict(
    zip("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789", strict=True)
)
_RAISED_RUN = re.compile(f"[{''.join(_RAISED)}]+")
_NO_LETTERS = re.compile("[^\x00-\u017f]")  # beyond Latin, Latin-1 and Latin Extended-A


def render_latex(tables: Iterable[TableView]) -> str:
    """All tables, one after the other, with what the preamble needs in a comment."""
    text = "\n".join(latex_table(table) for table in tables)
    return HEAD + (OTHER_SCRIPTS if _NO_LETTERS.search(text) else "") + "\n" + text


def latex_table(table: TableView) -> str:
    """One table: a float, or a longtable where it is long."""
    head = " & ".join(_title(column) for column in table.columns) + r" \\"
    body = [" & ".join(_cell(cell) for cell in row.cells) + r" \\" for row in table.rows]
    caption = rf"\caption{{{escape_latex(table.title)}}}\label{{tab:{_label(table.name)}}}"
    note = [rf"\par\smallskip\footnotesize {escape_latex(table.note)}"] if table.note else []
    size = _size(table)
    columns = _columns(table)
    if len(table.rows) > LONGEST_FLOAT:
        lines = ["{" + size, rf"\begin{{longtable}}{{{columns}}}", caption + r" \\", r"\toprule", head]
        lines += [r"\midrule", r"\endfirsthead", r"\toprule", head, r"\midrule", r"\endhead"]
        lines += [*body, r"\bottomrule", r"\end{longtable}", *note, "}"]
    else:
        lines = [r"\begin{table}[htbp]", r"\centering" + size, caption, rf"\begin{{tabular}}{{{columns}}}"]
        lines += [r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", *note, r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Any text as LaTeX sets it, on one line."""
    plain = _clean(text)
    raised = _RAISED_RUN.split(plain)
    powers = [f"$^{{{''.join(map(_RAISED.__getitem__, run))}}}$" for run in _RAISED_RUN.findall(plain)]
    pieces = [_escape_piece(raised[0])]
    for power, piece in zip(powers, raised[1:], strict=True):
        pieces += [power, _escape_piece(piece)]
    return "".join(pieces)


def _clean(text: str) -> str:
    """One line, composed letters, no control characters: pdflatex has none of these."""
    blanks = re.sub(r"[^\S\u00a0\u2009\u202f]+", " ", unicodedata.normalize("NFC", text))
    return "".join(
        letter for letter in blanks if unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )


def _escape_piece(text: str) -> str:
    """Letter by letter; the group after - ' and , stands only where a twin follows: two would be a ligature."""
    found = []
    for place, letter in enumerate(text):
        escaped = _SPECIAL.get(letter, letter)
        if letter in "-'," and text[place + 1 : place + 2] != letter:
            escaped = letter
        found.append(escaped)
    return "".join(found)


def _cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.strong and text else text


def _title(column: Column) -> str:
    """In bold; a long one in several lines, since a number's column is narrow."""
    title = f"{column.title} ({column.unit})" if column.unit else column.title
    lines = textwrap.wrap(title, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
    escaped = r"\\".join(escape_latex(line) for line in lines)
    side = "r" if column.kind == "number" else "l"
    return rf"\textbf{{\shortstack[{side}]{{{escaped}}}}}" if len(lines) > 1 else rf"\textbf{{{escaped}}}"


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", name)


def _columns(table: TableView) -> str:
    long = [column.kind == "text" and _widest(table.rows, n) > LONG_TEXT for n, column in enumerate(table.columns)]
    left = (1.0 - NARROW_COLUMN * (len(long) - sum(long))) / max(sum(long), 1)
    width = min(max(left, LEAST_PARAGRAPH), MOST_PARAGRAPH)
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{width:.2f}\linewidth}}"
    kinds = {"text": "l", "number": "r", "mark": "l"}
    return "".join(
        paragraph if is_long else kinds[column.kind] for column, is_long in zip(table.columns, long, strict=True)
    )


def _widest(rows: Iterable[Row], place: int) -> int:
    return max((len(row.cells[place].text) for row in rows), default=0)


def _size(table: TableView) -> str:
    count = len(table.columns)
    if count > VERY_MANY_COLUMNS:
        return r"\scriptsize\setlength{\tabcolsep}{3pt}"
    return r"\footnotesize" if count > MANY_COLUMNS else ""
