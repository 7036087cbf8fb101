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
from rekka.report.naming import name_components
from rekka.report.networks import find_network
from rekka.report.page import render_page
from rekka.report.report import Report
from rekka.report.summarize import summarize
from rekka.report.tables.catalog import list_tables
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
    r"rekka (?:app|checks?|compare|confirm|demo|fit|forecast|backtest|repairs|report|stability|show|verify)",  # commands to type
    r"a district's bridges|Bridges of a district",  # titles of studies, which their users gave
)
# Latin words that stay: methods, criteria, codes and ends of files, units, commands and options, symbols.
LATIN = re.compile(
    r"Box-Cox|zスコア|Yeo-Johnson|Newton|L-BFGS-B|AIC|BIC|SHA-256|CSV|SVG|PNG|Excel|Parquet|p値|R\d{3}|H\d|exp"
    r"|English|log\+zscore|utf-8|study\.toml|[\w/-]+\.(?:csv|toml|md)|1e-\d+|\d+ ?k?m²?|--[\w-]+(?: \w+)?"
    r"|rekka(?: [a-z]+)?(?: RUN)?(?: TABLE)?(?: --[\w-]+ \w+)?|guarded|pareto|pooled|ridge|solver='newton'|decrement"
)
# Words that a reader of the page found wrong, and what stands for them.
NOT_SAID = {
    "ランク確率": "順位確率スコア",
    "期待数": "期待値",
    "実数": "実際の数",
    "一つの部材（": "個々の部材",
    "検証用の行": "検証用データ",
    "今後の見通し」": "a section that the page has not",
    "ハザード率": "劣化速度（ハザード）",
    "推移確率": "遷移確率",
    "平均滞在": "平均滞留年数",
    "劣化した確率": "劣化する確率",
    "全データ（": "全部材",
}
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


def find_latin(page: str, names: str) -> dict[str, str]:
    """Latin words in what a reader reads outside names that data gave, each with the first text that has it."""
    found: dict[str, str] = {}
    for where, text in _Texts(page).found:
        if where.startswith("script") or "math" in where or "machine" in where:
            continue
        for word in re.findall("[A-Za-z]{2,}", LATIN.sub("", re.sub(names, "", text))):
            found.setdefault(word, f"{where}: {text.strip()[:200]}")
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
    assert "判定区分Ⅲ・Ⅳ" in page
    assert "Ⅲ以上" not in page  # which may be read as the better side
    assert "健全度Ⅲ" not in page


def test_a_text_of_an_earlier_version_stays_english_and_says_so(judged):
    audit = judged.audit.model_copy(update={"notes": ("the tables were read by hand",)})
    page = render(judged.model_copy(update={"audit": audit}))
    assert '<span lang="en">the tables were read by hand</span>' in page
    assert list(find_english(page)) == ["the tables were read by hand"]


# Bands of an index, no column of components, improvements, elements that the study chose


@pytest.fixture(scope="module")
def banded(tmp_path_factory):
    file = tmp_path_factory.mktemp("banded") / "点検.csv"
    draw = random.Random(1)
    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(["橋梁番号", "点検日", "評点", "竣工年", "橋長"])
        for bridge in range(150):
            built, length = draw.randint(1950, 1995), round(draw.uniform(5, 120), 1)
            state = draw.randint(0, 2)
            for year in range(2002, 2024, 3):
                seen = max(0, min(3, state + (draw.random() < 0.1) - (draw.random() < 0.1)))
                value = "" if draw.random() < 0.02 else (95, 80, 70, 50)[seen]
                table.writerow([f"橋{bridge:03}", f"{year}-06-01", value, built, length])
                state = min(state + (draw.random() < 0.3), 3)
    columns = {"bridge": "橋梁番号", "date": "点検日", "state": "評点", "completed": "竣工年", "length": "橋長"}
    study = rekka.compare(
        file, mapping={"columns": columns, "state": {"bands": [90, 75, 60]}}, methods=["zscore", "boxcox"],
        guard={"resamples": 2, "ladder": False}, partition="date", until="2016-12-31",
    )  # fmt: skip
    made = summarize(study, calibrations=study.calibrations(), network=find_network(study).network)
    return choose_elements(fill_document(made))


def choose_elements(document):
    """The document as if the study had chosen elements, with the notes that the program then writes."""
    assert document.network is not None
    network = document.network
    elements = "improvements common, trend common"
    notes = (
        f"fitted to all visits of 点検.csv with the elements that the study chose: all: {elements}",
        "small repairs without a record go on as before, unless it says without them",
        "all: after 30 years 70 of 150 members are expected in rating below 60; without small repairs there would be 90",
        "repairs to come are not counted, but small ones without a record as said above",
    )
    models = tuple(one.model_copy(update={"elements": "improvements+trend"}) for one in document.models)
    backtests = tuple(one.model_copy(update={"model": "improvements+trend"}) for one in document.backtests)
    members = network.every.model_copy(update={"remarks": ({"say": "sentence.excluded.upward"},)})
    unseen = tuple(one.model_copy(update={"rank": None}) for one in network.risks[:2])
    network = network.model_copy(
        update={"notes": (*network.notes, *notes), "every": members, "long_unseen": unseen, "unseen": len(unseen)}
    )
    return document.model_copy(update={"models": models, "backtests": backtests, "network": network})


@pytest.fixture(scope="module")
def banded_page(banded):
    return render(banded)


def test_a_page_of_bands_without_components_has_no_english(banded, banded_page):
    outcomes = {one.reason for one in banded.audit.outcomes}
    assert {"upward move: the condition improved", "not inspected: the state is blank"} <= outcomes
    assert [one.case for one in banded.cases] == ["all"]
    assert find_english(banded_page) == {}
    versions = "|".join(
        map(re.escape, (*banded.provenance.versions, *map(str, banded.provenance.machine.values())))
    )
    assert find_latin(banded_page, rf"{versions}|B-\d+|M-\d|python") == {}
    assert 'lang="en"' not in banded_page


def test_a_page_of_bands_names_everything_as_people_do(banded_page):
    texts = [text for _, text in _Texts(banded_page).found]
    assert any("要素は全部材：小規模補修（全健全度に共通）、経年変化（全健全度に共通）" in text for text in texts)
    assert any("改善方向の推移：健全度が良くなった：" in text for text in texts)
    assert any("1は90以上、2は75～90、3は60～75、4は60未満" in text for text in texts)
    assert any("指標値を区分したもの（90以上；75～90；60～75；60未満）" in text for text in texts)
    assert any("一つの部材種別「全部材」とする" in text for text in texts)
    for name in ("age_at_inspection_1", "bridge_length", "90 and above", "below 60", "全データ（"):
        assert [text for text in texts if name in text] == [], name
    assert [text for text in texts if re.search("[01]部材種別のうち", text)] == []


def test_members_that_were_not_seen_for_long_have_their_band(banded):
    table = {one.name: one for one in list_tables(banded, JA)}["unseen"]
    place = [one.key for one in table.columns].index("state_seen")
    assert {row.cells[place].text for row in table.rows} <= {"90以上", "75～90", "60～75", "60未満"}
    assert table.rows


def test_other_reports_name_the_unnamed_component_too(banded):
    report = Report(banded, "ja")
    for table in report.tables:
        assert "all" not in [cell.text for row in table.rows for cell in row.cells], table.name
    assert "全部材" in report.to_markdown()
    assert name_components(banded, EN) is banded


# The language files


def test_texts_have_no_word_that_readers_found_wrong():
    found = {(key, word) for key, text in JA.texts.items() for word in NOT_SAID if word in text}
    assert found == set()


def test_a_part_of_the_page_that_a_text_names_is_there():
    titles = {text for key, text in JA.texts.items() if key.endswith(".title")}
    for key, text in JA.texts.items():
        named = set(re.findall("「([^」]+)」(?:の節|の章|の表|に示す)", text))
        assert named <= titles, key


def test_every_text_has_japanese_letters():
    fixed = {key: re.sub(r"\{[^}]*\}", "", text) for key, text in JA.texts.items()}
    assert {key for key, text in fixed.items() if re.search(r"\w", text) and not JAPANESE.search(text)} == SYMBOLS


def test_no_text_has_english_words():
    fixed = {key: re.sub(rf"\{{[^}}]*\}}|{'|'.join(ALLOWED)}", "", text) for key, text in JA.texts.items()}
    assert {key: text for key, text in fixed.items() if RUN.search(text)} == {}
