import datetime
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from test_cli import call

from rekka.core.errors import InputError, MissingColumns, UnreadableTable
from rekka.data.nbi import CASES, NEEDED, NbiProblem, read_nbi
from rekka.data.transitions import pair_visits

SHARED = Path(__file__).parents[3] / "shared"
# The needed items in the order of the real header, and some beside them, text among these.
COLUMNS = (
    "STATE_CODE_001", "STRUCTURE_NUMBER_008", "RECORD_TYPE_005A", "ROUTE_PREFIX_005B", "FEATURES_DESC_006A",
    "FACILITY_CARRIED_007", "LOCATION_009", "YEAR_BUILT_027", "ADT_029", "YEAR_ADT_030", "STRUCTURE_LEN_MT_049",
    "DECK_WIDTH_MT_052", "DECK_COND_058", "SUPERSTRUCTURE_COND_059", "SUBSTRUCTURE_COND_060", "CULVERT_COND_062",
    "DATE_OF_INSPECT_090", "YEAR_RECONSTRUCTED_106", "FUTURE_ADT_114",
)  # fmt: skip
ROW = dict.fromkeys(COLUMNS, "") | {
    "STATE_CODE_001": "24", "STRUCTURE_NUMBER_008": "100000010001", "RECORD_TYPE_005A": "1",
    "FEATURES_DESC_006A": "'PATUXENT RIVER          '", "FACILITY_CARRIED_007": "'MD 36             '",
    "LOCATION_009": "'0.12 MI N, OF MD 35      '", "YEAR_BUILT_027": "1957", "ADT_029": "8000",
    "YEAR_ADT_030": "2015", "STRUCTURE_LEN_MT_049": "24.7", "DECK_WIDTH_MT_052": "10", "DECK_COND_058": "7",
    "SUPERSTRUCTURE_COND_059": "6", "SUBSTRUCTURE_COND_060": "5", "CULVERT_COND_062": "N",
    "DATE_OF_INSPECT_090": "617", "YEAR_RECONSTRUCTED_106": "0",
}  # fmt: skip
TRANSITION = (
    "bridge_id", "case", "state_1", "state_2", "interval_years", "age_at_inspection_1", "bridge_length",
    "bridge_area", "traffic_mean", "date_1", "date_2",
)  # fmt: skip


@pytest.fixture
def maryland() -> Path:
    file = SHARED / "data" / "nbi" / "MD18_head.txt"
    if not file.exists():
        pytest.skip("the head of Maryland's file of 2018 is not beside the repository")
    return file


def write(file, rows, columns=COLUMNS, end="\n", encoding="utf-8"):
    """A file in the inventory's format; each row is ROW but for what is given."""
    lines = [",".join(columns), *(",".join((ROW | row).get(name, "") for name in columns) for row in rows)]
    file.write_text(end.join(lines) + end, encoding=encoding, newline="")
    return file


def read_one(tmp_path, rows, **options):
    """The visits of a single file, in the order of the input."""
    return read_nbi(write(tmp_path / "MD18.txt", rows, **options)).visits.collect()


def month(year, number):
    return datetime.date(year, number, 1)


# The real file


def test_the_head_of_a_real_file(maryland):
    panel = read_nbi(maryland)
    visits = panel.visits.collect()
    assert panel.records == len(visits) == 12
    assert panel.columns == tuple(visits.columns)
    assert panel.scale.names == tuple("9876543210")
    bridges = visits.unique("row", maintain_order=True)
    assert bridges["row"].to_list() == [2, 3, 4, 5]
    assert bridges["bridge_id"].to_list() == [
        "24-1MD0071",
        "24-1MD0265",
        "24-000051640-00010",
        "24-100000010004010",
    ]
    assert bridges["date"].to_list() == [month(2017, 6), month(2017, 6), month(2017, 8), month(2018, 2)]
    assert bridges["completed"].dt.year().to_list() == [1980, 1975, 1907, 1957]
    assert bridges["repair_1"].dt.year().to_list() == [2014, None, 2014, 1985]
    assert bridges["bridge_length"].to_list() == [202.8, 7.9, 27.4, 24.7]
    # the file's own deck areas, its column CAT29, are 1845.48, 71.1 (a culvert, by its approach's width), 120.56, 397.67
    assert bridges["bridge_area"].round(6).to_list() == [1845.48, None, 120.56, 397.67]
    assert bridges["traffic"].to_list() == [200, 500, 25, None]
    assert visits["case"].to_list() == list(CASES) * 4
    assert visits["state_text"].to_list() == list("666NNN876777")
    assert visits["state"].to_list() == [4, 4, 4, None, None, None, 2, 3, 4, 3, 3, 3]
    assert visits["problem"].to_list() == [0] * 3 + [NbiProblem.NOT_APPLICABLE] * 3 + [0] * 6
    assert visits["column"][4] == "MD18_head.txt SUPERSTRUCTURE_COND_059"
    assert panel.notes == (
        "MD18_head.txt: 4 rows of the National Bridge Inventory, each a record of Deck, Superstructure, Substructure",
        "MD18_head.txt: states are from 9, the best, to 0, the worst; dates are months, and years built or "
        "reconstructed their first days",
        "MD18_head.txt: area is STRUCTURE_LEN_MT_049 times DECK_WIDTH_MT_052; a length, width or ADT_029 of 0 is "
        "taken as missing, and ADT_029 too where YEAR_ADT_030 is blank, 0 or 9",
    )


@pytest.mark.parametrize(
    ("text", "stray"),
    [
        ("'MD 36             '", "'O'NEIL, ST JOHN'S'"),
        ("'MD 36             '", "O'NEIL RD"),
        ("'MD 36             '", "'THE BOYS''"),
        ("'MD 36             '", "'MD 36' "),
        ("'MD 36             '", "', O'MALLEY'"),
        ("\n24,100000010004010", "\n\n24,100000010004010"),
    ],
)
def test_fields_taken_apart_by_us_are_those_that_polars_finds(maryland, tmp_path, text, stray):
    """The stray apostrophe or blank row is one; all other values of the file must survive it."""
    whole = maryland.read_text()
    assert text in whole
    dirty = tmp_path / maryland.name
    dirty.write_text(whole.replace(text, stray))
    ours, theirs = read_nbi(dirty), read_nbi(maryland)
    assert ours.notes[-1] == ("MD18_head.txt: stray apostrophes or commas, or blank rows; read field by field")
    assert ours.records == theirs.records
    moved = pl.col("row") - (pl.col("row") > 5) if stray.startswith("\n") else pl.col("row")
    assert_frame_equal(ours.visits.collect().with_columns(moved), theirs.visits.collect())


# Yearly files as the inventory has them, from histories that are known


class Inventory:
    """Bridges inspected once a year at most; each year's file tells of the last inspection of each."""

    years = range(2008, 2019)

    def __init__(self, seed, bridges=40):
        self.rng = random.Random(seed)
        self.files = {year: [] for year in self.years}
        self.transitions = []
        self.reasons = Counter()
        for number in range(bridges):
            self.live(number)
        for rows in self.files.values():
            self.rng.shuffle(rows)

    def count(self, reason):
        self.reasons[reason] += len(CASES)

    def live(self, number):
        """One bridge: every fifth is a culvert, some are rebuilt, of some the traffic is not known."""
        rng = self.rng
        bridge = {
            "number": f"1000{number:04d}0",
            "culvert": number % 5 == 4,
            "rebuilt": rng.choice(self.years) if number % 4 == 1 else None,
            "counted": number % 7 != 3,
            "built": rng.randrange(1900, 2005),
            "length": rng.randrange(60, 9000) / 10,
            "width": 0 if number % 5 == 4 else rng.randrange(30, 300) / 10,
        }
        visits, told = self.inspect(bridge["rebuilt"]), []
        for year, rows in self.files.items():
            known = [visit for visit in visits if visit["date"].year <= year]
            if not known:
                continue
            repeated = bool(told) and told[-1] is known[-1]
            told += [] if repeated else known[-1:]
            if bridge["culvert"]:
                self.count("not applicable (N)")
            elif repeated:
                self.count("the same inspection, repeated in another year's file")
            known[-1]["traffic"] = rng.randrange(1, 90_000)  # the last file's counts
            rows.append(self.tell(bridge, known[-1], year))
            if number % 3 == 0:
                rows.append(rows[-1] | {"RECORD_TYPE_005A": rng.choice("2A"), "ADT_029": "77"})
                self.count("not the route on the bridge (RECORD_TYPE_005A)")
        if not bridge["culvert"]:
            self.pair(bridge, told)

    def inspect(self, rebuilt):
        """Visits one to three years apart; the state never improves, but for 1 after the bridge is rebuilt."""
        state = {case: self.rng.randrange(1, 5) for case in CASES}
        visits, year = [], self.rng.randrange(2005, 2009)
        while year <= self.years[-1]:
            visits.append({"date": month(year, self.rng.randrange(1, 13)), "state": dict(state)})
            after = year + self.rng.randrange(1, 4)
            for case in CASES:
                between = rebuilt is not None and year < rebuilt <= after
                state[case] = 1 if between else min(state[case] + self.rng.choice([0, 0, 1, 2]), 10)
            year = after
        return visits

    def tell(self, bridge, visit, year):
        """The row of a year's file."""
        rebuilt, date = bridge["rebuilt"], visit["date"]
        is_rebuilt = rebuilt is not None and rebuilt <= year
        row = {
            "STRUCTURE_NUMBER_008": self.pad(bridge["number"]),
            "YEAR_BUILT_027": str(bridge["built"]),
            "ADT_029": str(visit["traffic"]) if bridge["counted"] else "0",
            "YEAR_ADT_030": str(year),
            "STRUCTURE_LEN_MT_049": str(bridge["length"]),
            "DECK_WIDTH_MT_052": str(bridge["width"]),
            "DATE_OF_INSPECT_090": f"{date.month:{self.rng.choice(['', '02'])}}{date:%y}",
            "YEAR_RECONSTRUCTED_106": str(rebuilt) if is_rebuilt else self.rng.choice(["0", "", "0000"]),
        }
        return row | {
            item: "N" if bridge["culvert"] else str(10 - visit["state"][case]) for case, item in CASES.items()
        }

    def pad(self, text):
        text = self.rng.choice([f"{text:>15}", f"{text:<15}", text])
        return f"'{text}'" if self.rng.random() < 0.5 else text

    def pair(self, bridge, told):
        """What is to come back: the transitions, and the outcome of every record."""
        rebuilt, length = bridge["rebuilt"], bridge["length"]
        self.count("the member's last visit" if len(told) > 1 else "the member's only visit")
        for first, second in pairwise(told):
            if rebuilt is not None and first["date"] < month(rebuilt, 1) <= second["date"]:
                self.count("a repair lies between the two visits")
                continue
            if not bridge["counted"]:
                self.count("traffic_mean is missing")
                continue
            self.count("kept")
            months = [12 * visit["date"].year + visit["date"].month - 1 for visit in (first, second)]
            self.transitions += [
                (
                    f"24-{bridge['number']}", case, first["state"][case], second["state"][case],
                    (months[1] - months[0]) / 12, (months[0] - 12 * bridge["built"]) / 12, length,
                    length * bridge["width"], (first["traffic"] + second["traffic"]) / 2, first["date"],
                    second["date"],
                )
                for case in CASES
            ]  # fmt: skip

    def write(self, folder):
        """A file a year, each with its own order of columns and end of lines; some with stray apostrophes."""
        for year, rows in self.files.items():
            columns = self.rng.sample(COLUMNS, len(COLUMNS))
            if self.rng.random() < 0.3:
                rows[0] = rows[0] | {"LOCATION_009": "'ST JOHN'S, E'"}
            write(folder / f"MD{year % 100:02d}.txt", rows, columns, end=self.rng.choice(["\n", "\r\n"]))
        return folder

    @property
    def expected(self):
        return pl.DataFrame(self.transitions, schema=list(TRANSITION), orient="row").sort(
            "bridge_id", "case", "date_1"
        )


@pytest.mark.parametrize("seed", range(6))
def test_simulated_histories_come_back_from_yearly_files(tmp_path, seed):
    inventory = Inventory(seed)
    panel = read_nbi(inventory.write(tmp_path))
    found = pair_visits(panel)
    ours = found.frame.select(TRANSITION).sort("bridge_id", "case", "date_1")
    assert len(ours) > 100
    assert_frame_equal(ours, inventory.expected, rel_tol=1e-14, check_dtypes=False)
    rows = sum(map(len, inventory.files.values()))
    assert panel.records == found.audit.records == 3 * rows
    counts = dict(found.audit.table.select("reason", "count").iter_rows())
    assert counts == inventory.reasons
    assert sum(counts.values()) == 3 * rows


def test_blocks_of_bridges_give_the_same_transitions(tmp_path):
    panel = read_nbi(Inventory(7).write(tmp_path))
    whole, blocks = pair_visits(panel), pair_visits(panel, rows_at_once=200)
    order = ["bridge_id", "case", "date_1"]
    assert_frame_equal(blocks.frame.sort(order), whole.frame.sort(order))
    assert_frame_equal(blocks.audit.table.drop("rows"), whole.audit.table.drop("rows"))


def test_each_record_set_aside_names_its_file_and_item(tmp_path):
    for year in (17, 18):
        write(tmp_path / f"MD{year}.txt", [{}])
    aside = pair_visits(read_nbi(tmp_path)).audit.set_aside
    assert aside["column"].to_list() == sorted(f"MD17.txt {item}" for item in CASES.values())
    assert aside["row"].to_list() == [2, 2, 2]
    assert set(aside["reason"]) == {"the same inspection, repeated in another year's file"}


# Which file speaks last


def kept(files):
    """The text of the deck's rating that is used."""
    visits = read_nbi(files).visits.filter(case="Deck", problem=0).collect()
    return visits["state_text"].to_list()


@pytest.mark.parametrize(
    "names",
    [
        ("MD99.txt", "MD00.txt"),
        ("2017MD_DelimitedFile.txt", "2018MD_DelimitedFile.txt"),
        ("MD17.csv", "2018AllRecordsDelimitedAllStates.txt"),
        ("24_2017.txt", "24_2018.txt"),
        ("2017/MD.txt", "2018/MD.txt"),
    ],
)
def test_a_later_year_corrects_an_inspection(tmp_path, names):
    files = []
    for name, rating in zip(names, "64", strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        files.append(write(tmp_path / name, [{"DECK_COND_058": rating}]))
    assert kept(files) == kept(files[::-1]) == ["4"]


def test_without_years_the_last_file_given_corrects_the_others(tmp_path):
    files = [
        write(tmp_path / f"{name}.txt", [{"DECK_COND_058": rating}])
        for name, rating in zip("ab", "64", strict=True)
    ]
    assert kept(files) == ["4"]
    assert kept(files[::-1]) == ["6"]
    assert read_nbi(files).notes[0] == (
        "a.txt to b.txt: 2 files in the order given; an inspection in several files is taken from the last of them"
    )


def test_states_of_one_year_stand_beside_each_other(tmp_path):
    """Structure numbers are unique within a state only; a third digit of the state's code is the region's."""
    rows = [{"STATE_CODE_001": code, "DECK_COND_058": rating} for code, rating in (("24", "6"), ("51", "4"))]
    files = [write(tmp_path / f"{name}18.txt", [row]) for name, row in zip(("MD", "VA"), rows, strict=True)]
    files.append(write(tmp_path / "MD09.txt", [{"STATE_CODE_001": "243", "DATE_OF_INSPECT_090": "0607"}]))
    bridges = read_nbi(files).visits.filter(case="Deck", problem=0).collect()
    assert bridges["bridge_id"].to_list() == ["24-100000010001", "24-100000010001", "51-100000010001"]


def test_a_route_under_the_bridge_corrects_nothing(tmp_path):
    write(tmp_path / "MD17.txt", [{}])
    write(tmp_path / "MD18.txt", [{"RECORD_TYPE_005A": "2"}])
    assert kept(tmp_path) == ["7"]


# Values


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"DECK_COND_058": "N"}, "not applicable (N)"),
        ({"DECK_COND_058": " "}, "not inspected: the state is blank"),
        ({"DECK_COND_058": "X"}, "the state is not understood"),
        ({"DECK_COND_058": "10"}, "the state is outside the scale"),
        ({"DATE_OF_INSPECT_090": ""}, "the date is blank"),
        ({"DATE_OF_INSPECT_090": "1317"}, "the date is not understood"),
        ({"STRUCTURE_NUMBER_008": "'    '"}, "the bridge is blank"),
        ({"STATE_CODE_001": ""}, "the bridge is blank"),
        ({"RECORD_TYPE_005A": "2", "DECK_COND_058": ""}, "not the route on the bridge (RECORD_TYPE_005A)"),
        ({"RECORD_TYPE_005A": ""}, "not the route on the bridge (RECORD_TYPE_005A)"),
        ({"ROUTE_PREFIX_005B": "1,2"}, "the row has more or fewer fields than the header"),
        ({"STRUCTURE_NUMBER_008": "'1"}, "the row has more or fewer fields than the header"),
    ],
)
def test_records_that_cannot_be_used(tmp_path, row, reason):
    file = write(tmp_path / "MD18.txt", [{}, row, {"STRUCTURE_NUMBER_008": "2"}])
    panel = read_nbi(file)
    decks = panel.visits.filter(case="Deck").collect()
    assert [panel.problems.get(code) for code in decks["problem"]] == [None, reason, None]
    audit = pair_visits(panel).audit
    assert audit.records == 9
    assert audit.set_aside.filter(case="Deck")["reason"].to_list() == [reason]


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ({"DATE_OF_INSPECT_090": "0105"}, "date", month(2005, 1)),
        ({"DATE_OF_INSPECT_090": "105"}, "date", month(2005, 1)),
        ({"DATE_OF_INSPECT_090": "1298"}, "date", month(1998, 12)),
        ({"YEAR_BUILT_027": "0"}, "completed", None),
        ({"YEAR_RECONSTRUCTED_106": "1985"}, "repair_1", month(1985, 1)),
        ({"YEAR_RECONSTRUCTED_106": "0000"}, "repair_1", None),
        ({"YEAR_RECONSTRUCTED_106": ""}, "repair_1", None),
        ({"STRUCTURE_LEN_MT_049": "000024.7"}, "bridge_length", 24.7),
        ({"STRUCTURE_LEN_MT_049": "0"}, "bridge_length", None),
        ({"DECK_WIDTH_MT_052": "0"}, "bridge_area", None),
        ({"DECK_WIDTH_MT_052": "2"}, "bridge_area", 49.4),
        ({"ADT_029": "000250"}, "traffic", 250),
        ({"ADT_029": "0"}, "traffic", None),
        ({"ADT_029": ""}, "traffic", None),
        ({"YEAR_ADT_030": "9"}, "traffic", None),
        ({"YEAR_ADT_030": "0009"}, "traffic", None),
        ({"YEAR_ADT_030": ""}, "traffic", None),
        ({"YEAR_ADT_030": "0"}, "traffic", None),
        ({"YEAR_ADT_030": "2009"}, "traffic", 8000),
        ({"STRUCTURE_NUMBER_008": "'  B 17-A  '"}, "bridge_id", "24-B 17-A"),
        ({"STATE_CODE_001": "1"}, "bridge_id", "01-100000010001"),
    ],
)
def test_what_a_value_means(tmp_path, row, column, value):
    assert read_one(tmp_path, [row])[column][0] == value


def test_values_that_mean_nothing_are_told(tmp_path):
    rows = [{"YEAR_BUILT_027": "19x5"}, {"ADT_029": "many"}, {"ADT_029": "some"}, {"YEAR_RECONSTRUCTED_106": "12"}]
    assert read_nbi(write(tmp_path / "MD18.txt", rows)).notes[-3:] == (
        "MD18.txt: 1 value of YEAR_BUILT_027 taken as missing, such as '19x5'",
        "MD18.txt: 1 value of YEAR_RECONSTRUCTED_106 taken as missing, such as '12'",
        "MD18.txt: 2 values of ADT_029 taken as missing, such as 'many'",
    )


def test_names_in_latin_1_and_a_header_in_its_own_way(tmp_path):
    river = {"FEATURES_DESC_006A": "'CAÑON CREEK'"}
    file = write(tmp_path / "CO18.txt", [river, river], encoding="latin-1")
    header, rest = file.read_bytes().split(b"\n", 1)
    file.write_bytes(b"\xef\xbb\xbf" + header.lower().replace(b",", b" , ") + b"\r\n" + rest)
    assert read_nbi(file).visits.collect()["state"].to_list() == [3, 4, 5, 3, 4, 5]


def test_brackets_in_a_name_are_no_pattern(tmp_path):
    assert read_nbi(write(tmp_path / "MD18[1].txt", [{}])).records == 3


# Wrong input


def test_missing_columns_are_named_with_the_file(tmp_path):
    write(tmp_path / "MD17.txt", [{}])
    columns = ["DECK_COND_58" if name == "DECK_COND_058" else name for name in COLUMNS]
    write(tmp_path / "MD18.txt", [{}], columns)
    with pytest.raises(MissingColumns) as caught:
        read_nbi(tmp_path)
    assert str(caught.value) == (
        f"DECK_COND_058 is not in MD18.txt. Columns there: {', '.join(columns)}. Did you mean DECK_COND_58?"
    )
    assert caught.value.missing == ["DECK_COND_058"]
    assert set(NEEDED) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("MD18.txt", b"", "MD18.txt is empty. A header and at least one row are needed."),
        (
            "MD18.txt",
            b"PK\x03\x04\x14\x00\x06\x00",
            "MD18.txt is not text: it holds zero bytes. Save it as comma-separated text.",
        ),
        ("MD18.txt", ",".join(COLUMNS).encode() + b"\n", "MD18.txt has a header and no rows below it."),
        ("MD18.txt", ",".join(COLUMNS).encode() + b"\n\n", "MD18.txt has a header and no rows below it."),
        (
            "MD18.xlsx",
            b"PK\x03\x04",
            "MD18.xlsx ends in .xlsx; the inventory's delimited files end in .txt or .csv. Save it as "
            "comma-separated text.",
        ),
        (
            "MD18",
            b"a",
            "MD18 ends in nothing; the inventory's delimited files end in .txt or .csv. Save it as "
            "comma-separated text.",
        ),
    ],
)
def test_files_that_are_not_of_the_inventory(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableTable) as caught:
        read_nbi([tmp_path / name])
    assert str(caught.value) == message
    assert caught.value.file == name


def test_no_files(tmp_path):
    with pytest.raises(UnreadableTable) as caught:
        read_nbi([])
    assert str(caught.value) == "No files were given. Give the paths of yearly files, or a folder of them."
    folder = tmp_path / "empty"
    folder.mkdir()
    with pytest.raises(UnreadableTable) as caught:
        read_nbi(folder)
    assert str(caught.value) == "The folder empty holds no files that end in .txt or .csv."
    with pytest.raises(UnreadableTable) as caught:
        read_nbi(folder / "MD18.txt")
    assert str(caught.value) == f"There is no file {folder / 'MD18.txt'}."


@pytest.mark.parametrize(
    ("given", "kind"), [(7, "int"), ([None], "NoneType"), (pl.DataFrame({"a": [1]}), "Series")]
)
def test_what_is_no_path(given, kind):
    with pytest.raises(InputError) as caught:
        read_nbi(given)
    assert str(caught.value) == f"A {kind} is not a path. Give the paths of yearly files, or a folder."


@pytest.mark.parametrize(("options", "state"), [((), 1), (("--keep-ratings",), 3)], ids=["merged", "kept"])
def test_a_model_of_such_files_reads_the_next_ones_by_itself(tmp_path, options, state):
    Inventory(7).write(tmp_path)
    files, model = sorted(tmp_path.glob("*.txt")), tmp_path / "deck.json"
    done = call(
        "fit",
        *files,
        "--nbi",
        "--no-test-fit",
        "--only",
        "Deck",
        "--use",
        "bridge_length",
        "--out",
        model,
        *options,
    )
    assert model.exists(), done.output
    quick = ("--years", 2, "--intervals", "none", "--allow", "R109", "--out")
    told = call("forecast", model, *files, "--nbi", *quick, tmp_path / "told")
    alone = call("forecast", model, *files, *quick, tmp_path / "alone")
    assert (told.exit_code, alone.exit_code) == (0, 0), told.output + alone.output
    kept = [(tmp_path / name / "network.csv").read_bytes() for name in ("told", "alone")]
    assert kept[0] == kept[1]
    pl.DataFrame({"bridge": ["A"], "case": ["Deck"], "rating": [7], "bridge_length": [30.0]}).write_csv(
        tmp_path / "list.csv"
    )
    call("forecast", model, tmp_path / "list.csv", *quick, tmp_path / "list")
    assert pl.read_csv(tmp_path / "list" / "members.csv")["state"].to_list() == [state]
