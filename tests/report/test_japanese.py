"""The Japanese page: no English sentence in any text that a reader sees or hears, in tables, figures and scripts."""

import csv
import json
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from network_cases import fill_document
from page_cases import uncertify
from table_cases import failed_document, plain_document

import rekka
from rekka.core.language import load_words
from rekka.report.networks import find_network
from rekka.report.page import render_page
from rekka.report.summarize import summarize
from rekka.report.text import ENGLISH

EN, JA = load_words(ENGLISH), load_words("ja")
RUN = re.compile(r"(?<![\w./@=`+-])[a-z]+(?:'[a-z]+)?(?:,? [a-z]+(?:'[a-z]+)?)+(?![\w/=(])")  # of English words
JAPANESE = re.compile(r"[ぁ-ヿ一-鿿]")
SHOWN = ("title", "aria-label", "placeholder", "alt", "data-label", "label")  # attributes that are read
PROGRAM = (
    "expr",
    "calculate",
    "test",
    "filter",
    "signal",
    "labelExpr",
    "update",
)  # code within a chart: its texts
NOT_READ = ("code", "style", "bdi")  # commands; names that data gave
VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
ALLOWED = (
    r"rekka (?:checks?|compare|confirm|fit|forecast|backtest|report|stability|show|verify)",  # commands to type
    r"a district's bridges|Bridges of a district",  # titles of studies, which their users gave
)
# Texts of the language files without a Japanese letter: symbols, names of methods and criteria.
SYMBOLS = {
    "column.aic", "column.bic", "column.sha256", "method.boxcox", "method.yeojohnson", "sentence.cause.p",
    "unit.metres", "unit.square_metres",
}  # fmt: skip


class _Texts(HTMLParser):
    """Texts that a page shows, with the elements around them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.around: list[tuple[str, dict[str, str | None]]] = []
        self.found: list[tuple[str, str]] = []
        self.feed(page)

    @property
    def _is_read(self) -> bool:
        return not any(tag in NOT_READ for tag, _ in self.around)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        if self._is_read:
            self.found += [(f"{tag} {name}", own[name] or "") for name in SHOWN if name in own]
        if tag not in VOID:
            self.around.append((tag, own))

    def handle_endtag(self, tag: str) -> None:
        places = [place for place, (name, _) in enumerate(self.around) if name == tag]
        if places:
            del self.around[places[-1] :]

    def handle_data(self, data: str) -> None:
        tag, own = self.around[-1] if self.around else ("", {})
        if tag != "script" and self._is_read:
            self.found.append((" ".join(name for name, _ in self.around[-3:]), data))
        elif own.get("type") == "application/json":
            self.found += list_json(json.loads(data))


def list_json(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Texts of a chart, of the words of the scripts, of the members."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from list_json(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from list_json(inner, key)
    elif isinstance(value, str):
        parts = re.findall(r"'([^']*)'", value) if key in PROGRAM else [value]
        yield from (("script " + key, part) for part in parts)


def find_english(page: str) -> dict[str, str]:
    """Runs of English words, each with the first text that has it."""
    found: dict[str, str] = {}
    for where, text in _Texts(page).found:
        left = re.sub("|".join(ALLOWED), "", text)
        for run in RUN.finditer(left):
            found.setdefault(run[0], f"{where}: {text.strip()[:200]}")
    return found


def render(document: Any) -> str:
    return render_page(document, "ja", reader="full")


def test_a_page_with_everything(document):
    page = render(fill_document(document))
    assert find_english(page) == {}
    assert 'lang="en"' not in page


@pytest.mark.parametrize("make", [plain_document, failed_document], ids=["plain", "failed"])
def test_other_pages(make):
    assert find_english(render(make())) == {}


def test_a_page_without_certified_fits(document):
    assert find_english(render(uncertify(document))) == {}


# Judgements of Japan, from a table in Japanese, with a component that no fit suits


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    file = tmp_path_factory.mktemp("judged") / "点検.csv"
    draw = random.Random(1)
    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(["橋梁番号", "部材種別", "点検日", "判定区分", "竣工年", "橋長", "備考"])
        for bridge in range(160):
            built, length = draw.randint(1950, 1995), round(draw.uniform(5, 120), 1)
            for case in ("床版", "支承") if bridge % 4 == 0 else ("床版",):
                state = draw.randint(0, 2)
                for year in (2004, 2009, 2014, 2019, 2024):
                    label = "不明" if draw.random() < 0.01 else "ⅠⅡⅢⅣ"[state]
                    table.writerow([f"橋{bridge:03}", case, f"{year}-06-01", label, built, length, ""])
                    state = min(state + (case == "床版" and draw.random() < 0.35), 3)
    study = rekka.compare(file, methods=["zscore", "boxcox"], guard={"resamples": 2, "ladder": False})
    assert study.ratings.labels == ("Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ")
    refits = rekka.stability(study, resamples=2, workers=1)
    found = summarize(
        study, calibrations=study.calibrations(), stability=refits, network=find_network(study).network
    )
    assert [one.method is None for one in found.answers] == [False, True]
    return found


def test_a_table_of_japan(judged):
    page = render(judged)
    assert find_english(page) == {}
    assert 'lang="en"' not in page
    assert "判定区分Ⅲ以上" in page
    assert "健全度Ⅲ" not in page


def test_a_text_of_an_earlier_version_stays_english_and_says_so(judged):
    audit = judged.audit.model_copy(update={"notes": ("the tables were read by hand",)})
    page = render(judged.model_copy(update={"audit": audit}))
    assert '<span lang="en">the tables were read by hand</span>' in page
    assert list(find_english(page)) == ["the tables were read by hand"]


# The language files


def test_every_text_has_japanese_letters():
    fixed = {key: re.sub(r"\{[^}]*\}", "", text) for key, text in JA.texts.items()}
    assert {key for key, text in fixed.items() if re.search(r"\w", text) and not JAPANESE.search(text)} == SYMBOLS


def test_no_text_has_english_words():
    fixed = {key: re.sub(rf"\{{[^}}]*\}}|{'|'.join(ALLOWED)}", "", text) for key, text in JA.texts.items()}
    assert {key: text for key, text in fixed.items() if RUN.search(text)} == {}
