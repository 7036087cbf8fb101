"""Pictures: well-formed, many in one page, the same bytes for the same chart; and a script safe in a page."""

import re
from xml.etree import ElementTree

import pytest
import vl_convert

import sharing
from rekka.report.charts.drawing import (
    POINTS_PER_INCH,
    VERSION,
    bundle_script,
    draw_pdf,
    draw_png,
    draw_svg,
    draw_svg_file,
)

NAMES = [
    "plain",
    '" role="x" </text><script>alert(1)</script> url(#clip1)',
    "bell \x07 and half \ud83d of a pair",
    "橋",
]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _drawn_anew(monkeypatch):
    for name in sharing.PICTURES:
        monkeypatch.setattr(vl_convert, name, getattr(vl_convert, name).__wrapped__)


@pytest.fixture(scope="module")
def spec():
    """A chart with a clip path, a gradient and names that would do harm."""
    gradient = {
        "gradient": "linear",
        "stops": [{"offset": 0, "color": "var(--ink)"}, {"offset": 1, "color": "red"}],
    }
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VERSION}.json",
        "data": {"values": [{"x": place, "case": name} for place, name in enumerate(NAMES)]},
        "mark": {"type": "bar", "clip": True, "color": gradient},
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "case", "type": "nominal", "axis": {"labelLimit": 0}},
        },
        "config": {"background": "transparent"},
    }


def identifiers(svg):
    return [one.attrib["id"] for one in ElementTree.fromstring(svg).iter() if "id" in one.attrib]


def test_identifiers_have_their_prefix_and_are_referred_to(spec):
    svg = draw_svg(spec, "figure-1")
    found = identifiers(svg)
    assert len(found) >= 2
    assert found == [f"figure-1-{number}" for number in range(1, len(found) + 1)]
    marks = ElementTree.fromstring(svg).iter()
    referred = {
        name for one in marks for value in one.attrib.values() for name in re.findall(r"^url\(#(.*)\)$", value)
    }
    assert referred == set(found)
    assert not set(found) & set(identifiers(draw_svg(spec, "figure-2")))


def test_nothing_speaks_to_a_screen_reader_but_the_page(spec):
    for element in ElementTree.fromstring(draw_svg(spec, "a")).iter():
        assert not [name for name in element.attrib if name == "role" or name.startswith("aria")]
    assert "aria-label" in draw_svg_file(spec)


def test_names_are_text_in_the_picture(spec):
    root = ElementTree.fromstring(draw_svg(spec, "a"))
    told = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert NAMES[1] in told
    assert "bell \N{REPLACEMENT CHARACTER} and half \N{REPLACEMENT CHARACTER} of a pair" in told
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_a_picture_scales_and_lets_the_page_shine_through(spec):
    root = ElementTree.fromstring(draw_svg(spec, "a"))
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
    assert root.attrib["class"] == "chart"
    assert not [one for one in root if one.tag.endswith("rect")]  # no background
    assert "var(--ink)" in draw_svg(spec, "a")


def test_the_same_chart_is_the_same_bytes(spec):
    other = spec | {"mark": "point"}
    first = draw_svg(spec, "a")
    draw_svg(other, "b")  # Vega counts its clip paths on
    assert draw_svg(spec, "a") == first
    assert draw_png(spec, 1) == draw_png(spec, 1)
    # the objects of a PDF come in any order
    assert len(draw_pdf(spec)) == pytest.approx(len(draw_pdf(spec)), rel=0.01)


def test_files_have_their_size(spec):
    root = ElementTree.fromstring(draw_svg_file(spec))
    png = draw_png(spec, 2)
    assert png.startswith(PNG)
    assert int.from_bytes(png[16:20], "big") == pytest.approx(2 * float(root.attrib["width"]), abs=2)
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) [\d.]+\]", draw_pdf(spec))
    assert float(box[1]) == pytest.approx(float(root.attrib["width"]) * POINTS_PER_INCH / 96, abs=1)


def test_the_script_can_stand_in_a_page_and_gives_one_name():
    script = bundle_script()
    assert not re.search(r"</script|<!--|<script", script, flags=re.IGNORECASE)
    assert script.startswith("(()=>{")
    assert script.endswith("})();")
    assert set(re.findall(r"window\.(vega\w*)=", script)) == {"vegaEmbed"}
    assert not re.search(r"^(import|export)\b", script, flags=re.MULTILINE)
    assert bundle_script() is script
