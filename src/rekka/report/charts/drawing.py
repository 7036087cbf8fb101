"""Charts as pictures: Vega-Lite -> SVG for the page and for files, PNG, PDF; and the script that draws them live.

All by vl-convert, without a browser and without the network. Pictures and script have the Vega-Lite whose schema
Altair writes. SVG and PNG are the same bytes for the same chart. A PDF shows the same, but vl-convert leaves the
order of the objects in the file to chance.

Files are set in Liberation Sans, which vl-convert has with it. It has no Japanese: for that, PNG and PDF need a
font with Japanese installed on the machine that writes them (Debian: fonts-noto-cjk), else these letters are left
blank. SVG files take whatever font the reader has. ``combine`` lays the panels of a figure side by side.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import altair as alt
import vl_convert

from rekka.report.charts.base import (
    FRAME,
    KEY,
    LESS,
    PICKED,
    SPACING,
    STAMP,
    TITLE_FONT,
    Spec,
    break_text,
    cut_text,
)
from rekka.report.views import FigureView

PICTURE_MARK = b"drawn by rekka"  # in every picture file, by which an earlier one is known

SVG = "http://www.w3.org/2000/svg"
PIXELS_PER_INCH, POINTS_PER_INCH = 96, 72  # a chart's pixel is that of CSS; vl-convert takes it for a point
VERSION = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
# Drawn live, the page asks for vegaEmbed and nothing else.
SNIPPET = "window.vegaEmbed=vegaEmbed;"
# XML 1.0 has no place for these, not even escaped. A name may have them, and vl-convert 1.9 aborts the process on
# one: "Failed to parse text SVG: NonXmlChar".
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Much of what Vega writes has no effect in a picture that nobody points at; a page names its font once.
_TAG = re.compile(r"<[^>]*>")
_USELESS = re.compile(
    r'^<path class="foreground" d="" [^>]*/>|^<path class="background" d="M0,0h0v0h0Z" [^>]*/>'
    r'| class="(?:mark|role|background)[^"]*"| pointer-events="none"| (?:fill-|stroke-)?opacity="1"'
    r'| font-family="[^"]*"| stroke-width="1"| [xy]2="0"| transform="translate\(0,0\)"'
)
_UNSEEN = ' opacity="0"'  # of what answers a pointer, where there is one
_LONG_DECIMAL = re.compile(r"\d+\.\d{3,}")
_PATH = re.compile(r' d="[^"]*"')
_PATH_DECIMAL = re.compile(r"\d+\.\d{2,}")
_REFERRING = ("clip-path", "fill", "stroke")  # attributes in which Vega refers to a clip path or a gradient
_PNG_HEAD = 33  # bytes: the signature and the first chunk, which must stay the first
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def draw_svg(spec: Spec, prefix: str) -> str:
    """A chart to stand inside a page: identifiers begin with ``prefix``, so that many charts can.

    Roles and labels for screen readers are taken out: the page says in one sentence what a chart shows. It has its
    size and a view box, so that a style sheet can make it narrower.
    """
    root = ElementTree.fromstring(draw_svg_file(spec))
    for element in root.iter():
        for name in [name for name in element.attrib if name == "role" or name.startswith("aria-")]:
            del element.attrib[name]
        _take_styles(element)
    _rename(root, prefix)
    root.set("class", "chart")
    # The reader's font may be wider than the one that was measured here.
    root.set("overflow", "visible")
    return _write(root)


def _take_styles(element: ElementTree.Element) -> None:
    """Write a style as attributes: a page may forbid styles within its elements (Content-Security-Policy)."""
    for one in element.attrib.pop("style", "").split(";"):
        name, _, value = one.partition(":")
        if value:
            element.set(name.strip(), value.strip())


def slim_svg(svg: str) -> str:
    """Drop what has no effect in a picture, and round its paths to a tenth of a pixel: a page has many."""
    return _TAG.sub(_shorten_tag, svg)


def _shorten_tag(tag: re.Match[str]) -> str:
    if tag[0].endswith("/>") and _UNSEEN in tag[0]:
        return ""
    short = _PATH.sub(lambda path: _PATH_DECIMAL.sub(_round_tenth, path[0]), _USELESS.sub("", tag[0]))
    return _LONG_DECIMAL.sub(lambda found: f"{float(found[0]):.2f}", short)


def _round_tenth(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def draw_svg_file(spec: Spec) -> str:
    """A chart as an SVG file."""
    return vl_convert.vegalite_to_svg(_clean(spec), vl_version=VERSION)


def draw_png(spec: Spec, scale: float = 3.0) -> bytes:
    """A chart as a PNG file; 3 times is about 300 dots an inch."""
    png: bytes = vl_convert.vegalite_to_png(_clean(spec), vl_version=VERSION, scale=scale)
    return png


def draw_pdf(spec: Spec) -> bytes:
    """A chart as a PDF file in its natural size: 96 pixels an inch."""
    root = ElementTree.fromstring(draw_svg_file(spec))
    for name in ("width", "height"):
        root.set(name, f"{float(root.attrib[name]) * POINTS_PER_INCH / PIXELS_PER_INCH:g}")
    pdf: bytes = vl_convert.svg_to_pdf(_write(root))
    return pdf


def mark_picture(content: bytes, kind: str) -> bytes:
    """Add a remark that rekka drew it to a picture file: an SVG or PDF comment, a text chunk of PNG."""
    if kind != "png":
        return content + (b"<!-- %s -->\n" if kind == "svg" else b"%% %s\n") % PICTURE_MARK
    body = b"tEXtSoftware\0" + PICTURE_MARK
    chunk = (len(body) - 4).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)
    return content[:_PNG_HEAD] + chunk + content[_PNG_HEAD:]


@cache
def bundle_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that sets ``window.vegaEmbed`` and no other name.

    With its option ``ast`` Vega interprets the expressions of charts and evaluates no code: a page may forbid
    that (Content-Security-Policy without 'unsafe-eval'). It can stand inside <script>: what would end or confuse
    that element is escaped as strings and patterns allow. The notices that its licences ask for come first: the
    bundle has none.
    """
    notices = (files("rekka.report") / "templates" / "third_party.txt").read_text(encoding="utf-8")
    script = f"/*!\n{notices}*/\n{vl_convert.javascript_bundle(SNIPPET, vl_version=VERSION)}"
    return "(()=>{" + script.replace("</script", "<\\/script").replace("<!--", "<\\!--") + "\n})();"


def _write(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(value: Any) -> Any:
    """Put a replacement character in place of each that no picture can show."""
    if isinstance(value, str):
        return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {name: _clean(inner) for name, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Number identifiers anew, from 1: Vega counts on from chart to chart, and a chart must stay the same."""
    found = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    names = {old: f"{prefix}-{number}" for number, old in enumerate(found, start=1)}
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, names[value])
            elif name in _REFERRING:
                element.set(name, _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value))


OWN_SCALES = ("color", "fill", "shape", "stroke", "strokeDash", "xOffset", "yOffset")  # else panels share them
LETTERS = "abcdefghijklmnopqrstuvwxyz"
COLUMNS = 2
SQUARE = 230  # pixels, of a plot as wide as high on paper
SMALL = 200  # pixels of a plot: such panels stand three beside each other, as they are


def combine(figure: FigureView) -> Spec:
    """The panels of a figure side by side, as wide as a printed page, marked (a), (b) before their titles.

    Their plots are aligned, and as wide as those above and below. A page has room for two panels, or three small
    ones; further panels go below. A lone panel stays as it is.
    """
    # not deepcopy, which would keep rows that two layers share, so that a key would be moved twice
    panels = [json.loads(json.dumps(panel.spec)) for panel in figure.panels]
    config, schema = panels[0]["config"], panels[0]["$schema"]
    small = len(panels) > 1 and max(spec["width"] for spec in panels) < SMALL
    for n, (spec, panel) in enumerate(zip(panels, figure.panels, strict=True)):
        spec["title"] = f"({_number(n)}) {panel.title}" if len(panels) > 1 else panel.title
        for name in ("config", "$schema", "params"):
            spec.pop(name, None)
    if len(panels) > 1 and not small:
        _narrow(panels)
        for column in (panels[::COLUMNS], panels[1::COLUMNS]):
            _align(column)
    for spec in panels:
        spec["title"] = _break_title(spec["title"], _find_frame(spec))
    together: Spec = {"$schema": schema, "config": config, "spacing": SPACING}
    if any(PICKED in repr(spec) for spec in panels):
        together["params"] = [{"name": PICKED, "value": ""}]
    return together | {
        "concat": panels,
        "columns": 3 if small else COLUMNS,
        "align": "each",
        "resolve": {"scale": dict.fromkeys(OWN_SCALES, "independent")},
    }


def _number(place: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    before, letter = divmod(place, len(LETTERS))
    return (_number(before - 1) if before else "") + LETTERS[letter]


def _break_title(title: str, frame: Spec) -> str | list[str]:
    """A title as wide as its panel, in two lines at most."""
    width = frame["x2"]["value"] - frame["x"]["value"]
    first = break_text(title, width, TITLE_FONT).split("\n")[0]
    rest = title[len(first) :].strip()
    lines = [cut_text(line, width, TITLE_FONT) for line in (first, rest)]
    return lines if rest else lines[0]


def _narrow(panels: Sequence[Spec]) -> None:
    """Make panels fit half of a page. What is square stays square, and what was as high beside it stays so."""
    squares = {spec["height"] for spec in panels if _is_square(spec)}
    for spec in panels:
        less = spec["width"] - SQUARE if _is_square(spec) else LESS
        _find_frame(spec)["x2"]["value"] -= less
        _resize(spec, spec["width"] - less, SQUARE if spec["height"] in squares else spec["height"])


def _align(column: Sequence[Spec]) -> None:
    """Give plots above each other the same sides: labels of axes and lines are wider in one than in another."""
    specs = [spec for spec in column if not _is_square(spec)]
    frames = [_find_frame(spec) for spec in specs]
    left = min((frame["x"]["value"] for frame in frames), default=0.0)
    widths = [spec["width"] + left - frame["x"]["value"] for spec, frame in zip(specs, frames, strict=True)]
    for spec, frame in zip(specs, frames, strict=True):
        frame["x2"]["value"] += left - frame["x"]["value"]
        frame["x"]["value"] = left
        _resize(spec, min(widths), spec["height"])


def _is_square(spec: Spec) -> bool:
    return bool(spec["width"] == spec["height"])


def _find_frame(spec: Spec) -> Spec:
    """Where the edges of a panel are, in pixels from the upper left corner of its plot."""
    frame: Spec = next(layer["encoding"] for layer in spec["layer"] if layer["mark"].get("style") == FRAME)
    return frame


def _resize(spec: Spec, width: float, height: float) -> None:
    """Set the size of a plot; what stands below it or across it keeps its place."""
    lower = spec["height"] - height
    spec |= {"width": width, "height": height}
    for layer in spec["layer"]:
        kind, encoding = layer["mark"].get("style"), layer["encoding"]
        if kind == STAMP:
            encoding["x"]["value"], encoding["y"]["value"] = width / 2, height / 2
        elif kind == FRAME:
            encoding["y2"]["value"] = height
        elif kind == KEY:
            for row in layer["data"]["values"]:
                row["y"] -= lower
