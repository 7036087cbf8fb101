"""A forecast as files: whole or not there, and read back."""

import errno
import json
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter
from fleet_cases import draw_members, eligible_of, fit_short, make_model
from xlsxwriter.exceptions import FileCreateError

from rekka.core.errors import BadOption, DamagedFile, RunFolderError
from rekka.core.folders import hold
from rekka.fleet import store as module
from rekka.fleet.document import describe_fleet, load_forecast
from rekka.fleet.eligibility import InventoryOptions
from rekka.fleet.inventory import Fleet, forecast_fleet
from rekka.fleet.models import CaseModel
from rekka.fleet.store import choose_format, list_files, open_folder

ASK = InventoryOptions(years=3, member_intervals=False)


def inventory() -> pl.DataFrame:
    """One member is called like a formula, one has no traffic."""
    frame = draw_members(12)
    first, second = frame["bridge_id"][:2]
    return frame.with_columns(
        bridge_id=pl.col("bridge_id").replace(first, "=1+1"),
        traffic_mean=pl.when(pl.col("bridge_id") == second).then(None).otherwise("traffic_mean"),
    )


@cache
def make_fleet(*models: CaseModel) -> tuple[Fleet, list[pl.DataFrame]]:
    """The fleet, and its years as they are handed over."""
    years: list[pl.DataFrame] = []
    return forecast_fleet(eligible_of(inventory(), *models, ask=ASK), on_years=years.append), years


def write(folder: Path, form: str, models: tuple[CaseModel, ...] = (), **options):
    with open_folder(folder, form) as writer:
        fleet, years = make_fleet(*models)
        for rows in years:
            writer.add_years(rows)
        document = describe_fleet(fleet, "models", files=list_files(form), **options)
        return fleet, document, writer.finish(fleet, document)


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if not file.name.startswith(".")}


def test_parquet(tmp_path):
    fleet, _, files = write(tmp_path / "new" / "out", "parquet")
    folder = tmp_path / "new" / "out"
    assert names(folder) == set(list_files("parquet")) == {file.name for file in files}
    assert pl.read_parquet(folder / "members.parquet").equals(fleet.members)
    years = pl.read_parquet(folder / "years.parquet")
    assert len(years) == 11 * 4
    assert years["bridge_id"].n_unique() == 11
    assert years.schema["date"] == pl.Date


@pytest.mark.parametrize("name", ["two [2] of 3", "what?", "a*b"])
def test_a_folder_may_be_called_like_a_pattern(tmp_path, name):
    write(tmp_path / name, "parquet")
    assert len(pl.read_parquet(tmp_path / name / "years.parquet", glob=False)) == 11 * 4


def test_csv_is_for_spreadsheets(tmp_path):
    fleet, _, _ = write(tmp_path, "csv")
    assert names(tmp_path) == set(list_files("csv"))
    for name in ("members.csv", "years.csv", "network.csv", "set_aside.csv"):
        assert (tmp_path / name).read_bytes().startswith(b"\xef\xbb\xbf")
    members, years = pl.read_csv(tmp_path / "members.csv"), pl.read_csv(tmp_path / "years.csv")
    assert "'=1+1" in members["bridge_id"]
    assert years.filter(bridge_id="'=1+1")["year"].to_list() == [0, 1, 2, 3]
    assert years["reached"].sum() == pytest.approx(
        fleet.network.filter(what="in this state or worse")["expected"].sum()
    )
    assert members["mean_years"].to_list() == fleet.members["mean_years"].to_list()
    aside = pl.read_csv(tmp_path / "set_aside.csv")
    assert aside["reason"].to_list() == ["traffic_mean is missing"]
    assert aside["count"].to_list() == [1]


def test_a_workbook_has_four_sheets(tmp_path):
    fleet, _, _ = write(tmp_path, "xlsx", models=(make_model(fit=fit_short()),))
    assert names(tmp_path) == set(list_files("xlsx"))
    book = tmp_path / "forecast.xlsx"
    members, years, network = (pl.read_excel(book, sheet_name=name) for name in ("members", "years", "network"))
    assert members["bridge_id"].to_list() == fleet.members["bridge_id"].to_list()
    assert "=1+1" in members["bridge_id"]
    assert members["reached_3"].to_list() == pytest.approx(fleet.members["reached_3"].to_list())
    assert members["last_seen"].to_list() == fleet.members["last_seen"].to_list()
    assert (len(years), len(network)) == (44, len(fleet.network))
    assert not network["certified"].any()
    notes = dict(pl.read_excel(book, sheet_name="notes", has_header=False).rows())
    assert notes["NOT CERTIFIED"].startswith("NOT CERTIFIED: ")
    assert notes["set aside (members)"] == "traffic_mean is missing: 1"
    assert notes["column predicted_low, predicted_high"].startswith("interval of the number itself")


def test_the_same_forecast_is_the_same_bytes(tmp_path):
    for form in ("csv", "xlsx", "parquet"):
        for place in ("one", "two"):
            make_fleet.cache_clear()
            write(tmp_path / place, form)
        for name in list_files(form):
            one, two = ((tmp_path / place / name).read_bytes() for place in ("one", "two"))
            assert one == two, name


def test_forecast_json_is_read_back(tmp_path):
    _, document, _ = write(tmp_path, "csv", top=3, notes=["a note"], only=["Deck"], sources={"list.csv": "0" * 64})
    found = load_forecast(tmp_path)
    assert found == document == load_forecast(tmp_path / "forecast.json")
    assert (found.members, found.horizon, found.source) == (11, 3, "models")
    assert [risk.rank for risk in found.risks] == [1, 2, 3]
    assert len(found.risks[0].reached) == len(found.shown) == 2
    assert len(found.network) == 4 * 5
    assert [(one.reason, one.count, one.what) for one in found.aside] == [
        ("traffic_mean is missing", 1, "members")
    ]
    assert found.notes[0] == "a note"
    assert found.watermark is None
    assert found.versions["rekka"]
    text = (tmp_path / "forecast.json").read_text()
    json.loads(text, parse_constant=lambda word: pytest.fail(word))


def test_a_damaged_forecast_is_refused(tmp_path):
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(DamagedFile, match=r"There is no forecast nowhere/forecast.json\. Make one with rekka"):
        load_forecast(tmp_path / "nowhere")
    write(tmp_path / "out", "csv")
    file = tmp_path / "out" / "forecast.json"
    whole = file.read_text()
    file.write_text(whole[:300])
    with pytest.raises(DamagedFile, match=r"forecast\.json is not a forecast of version 1: the text itself"):
        load_forecast(tmp_path / "out")
    file.write_text(whole.replace('"version": 1', '"version": 2', 1))
    with pytest.raises(DamagedFile, match="not a forecast of version 1: version"):
        load_forecast(tmp_path / "out")


def test_an_earlier_forecast_is_written_over_whatever_its_format(tmp_path):
    write(tmp_path, "parquet")
    (tmp_path / "mine.txt").write_text("keep")
    write(tmp_path, "csv")
    assert names(tmp_path) == {*list_files("csv"), "mine.txt"}


@pytest.mark.parametrize("name", ["members.csv", "forecast.xlsx", "forecast.json", "network.csv"])
def test_files_of_others_are_not_written_over(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(BadOption, match=f"has a file {name} that is no forecast of rekka's"):
        write(tmp_path, "csv")
    assert names(tmp_path) == {name}
    assert (tmp_path / name).read_text() == "{}"


def test_places_that_are_none(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOption, match="file is a file; a folder is needed"):
        write(tmp_path / "file", "csv")
    (tmp_path / "study.toml").write_text("")
    with pytest.raises(BadOption, match=r"is a run folder\. Choose a folder for the forecast, such as"):
        write(tmp_path, "csv")
    with hold(tmp_path / "busy"), pytest.raises(RunFolderError, match="Another process is working on busy"):
        write(tmp_path / "busy", "csv")


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_what_is_stopped_leaves_nothing(tmp_path, monkeypatch, form, error):
    def fail(*_: object, **__: object) -> None:
        raise error

    write(tmp_path / "old", "parquet")
    before = {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()}
    monkeypatch.setattr(module, "tabulate_aside", fail)
    for place in ("old", "new/inner"):
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            write(tmp_path / place, form)
    assert {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_a_workbook_on_a_full_disk_is_an_error_of_the_disk(tmp_path, monkeypatch):
    close = xlsxwriter.Workbook.close

    def full(book: xlsxwriter.Workbook) -> None:
        close(book)
        raise FileCreateError(OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(xlsxwriter.Workbook, "close", full)
    with pytest.raises(OSError, match="No space left on device"):
        write(tmp_path / "out", "xlsx")
    assert not (tmp_path / "out").exists()


def test_what_a_crash_left_is_taken_away(tmp_path):
    (tmp_path / "forecast.123.unfinished" / "years").mkdir(parents=True)
    write(tmp_path, "csv")
    assert names(tmp_path) == set(list_files("csv"))


def test_formats():
    assert choose_format(None, 1_048_575) == "csv"
    assert choose_format(None, 1_048_576) == "parquet"
    assert choose_format("xlsx", 1_048_575) == "xlsx"
    with pytest.raises(
        BadOption, match=r"are 1,048,576 rows, and an Excel sheet has room for 1,048,575\. Use --format"
    ):
        choose_format("xlsx", 1_048_576)
    with pytest.raises(BadOption, match="format is 'excel'; it can be parquet, csv, xlsx"):
        choose_format("excel", 5)
