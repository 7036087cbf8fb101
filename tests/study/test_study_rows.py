"""The rows of a study: what may come in, what is refused, and a digest that no other rows have."""

import datetime
import hashlib
import os
import struct
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_cases import COVARIATES, draw_rows

import rekka
from rekka.core.errors import BadOption, BadStates, BadValues, InputError, MissingColumns
from rekka.core.folders import locate, relate
from rekka.study.plan import DataPlan, PartitionPlan, TrialPlan
from rekka.study.rows import StudyRows, read_source, split_rows

AUTO = PartitionPlan()
ALL = TrialPlan()


def digest(column: pl.Series) -> str:
    return StudyRows(pl.DataFrame([column.rename("a")]), (), "").digest()


def changed(row: int, **values: object) -> pl.DataFrame:
    """The small rows with another value in one row."""
    rows = draw_rows()
    columns = [
        pl.Series(name, [value if place == row else old for place, old in enumerate(rows[name])], strict=False)
        for name, value in values.items()
    ]
    return rows.with_columns(columns)


class TestDigest:
    @settings(deadline=None, max_examples=200)
    @given(*[st.lists(st.none() | st.text(st.sampled_from("\0\1\n,ab\"'ü🌉"), max_size=3), max_size=4)] * 2)
    def test_texts(self, one, other):
        ours = digest(pl.Series(one, dtype=pl.String)) == digest(pl.Series(other, dtype=pl.String))
        assert ours == (one == other)

    @pytest.mark.parametrize(
        ("one", "other", "kind"),
        [
            ([None, 1], [-(2**15), 1], pl.Int64),
            ([None, 1], [0, 1], pl.Int64),
            ([None], [0.0], pl.Float64),
            ([0.0], [-0.0], pl.Float64),
            ([0.1], [0.1 + 1e-17 + 2e-17], pl.Float64),
            ([None], [datetime.date(1970, 1, 1)], pl.Date),
            ([True], [None], pl.Boolean),
            ([True], [False], pl.Boolean),
            ([2**63], [2**63 + 1], pl.UInt64),
            ([1, 2], [2, 1], pl.Int64),
            ([1], [1, 1], pl.Int64),
        ],
    )
    def test_other_values_have_another_digest(self, one, other, kind):
        same = one == other and [str(v) for v in one] == [str(v) for v in other]
        assert (digest(pl.Series(one, dtype=kind)) == digest(pl.Series(other, dtype=kind))) == same

    def test_kinds_are_told_apart_and_widths_are_not(self):
        number = pl.Series([1, 2])
        assert digest(number) == digest(number.cast(pl.UInt32)) == digest(number.cast(pl.Int8))
        assert digest(number.cast(pl.Float64)) == digest(number.cast(pl.Float32))
        others = [
            number.cast(kind) for kind in (pl.Float64, pl.String, pl.Date, pl.Datetime("us"), pl.Datetime("ms"))
        ]
        assert len({digest(column) for column in (number, *others)}) == 6

    def test_names_go_in(self):
        frames = [pl.DataFrame({name: [1], "b": [2]}) for name in ("a", 'a", "whole', "a:Int64:1;")]
        assert len({StudyRows(frame, (), "").digest() for frame in frames}) == 3

    def test_it_is_the_same_after_parquet(self, tmp_path):
        rows = split_rows(draw_rows().with_columns(date_1=datetime.date(2010, 5, 4)), AUTO, ALL)
        rows.frame.write_parquet(tmp_path / "a.parquet")
        again = pl.read_parquet(tmp_path / "a.parquet")
        assert StudyRows(again, rows.covariates, rows.scheme).digest() == rows.digest()

    def test_it_is_the_same_on_any_machine(self):
        """Byte by byte: a digest that moved would refuse every run begun before."""
        days = (datetime.date(2020, 1, 2) - datetime.date(1970, 1, 1)).days
        columns = {
            "case": ["Pier", None],
            "x": [0.5, None],
            "n": [7, None],
            "d": [datetime.date(2020, 1, 2), None],
        }
        spelled = b"".join([
            b'["case", "text", 2]', b"\0\1", struct.pack("<qq", 4, 0), b"Pier",
            b'["x", "float", 2]', b"\0\1", struct.pack("<dd", 0.5, 0.0),
            b'["n", "whole", 2]', b"\0\1", struct.pack("<qq", 7, 0),
            b'["d", "Date ", 2]', b"\0\1", struct.pack("<qq", days, 0),
        ])  # fmt: skip
        assert StudyRows(pl.DataFrame(columns), (), "").digest() == hashlib.sha256(spelled).hexdigest()


class TestWhatComesIn:
    def test_frames_of_every_kind_give_the_same_rows(self):
        polars = draw_rows()
        first = split_rows(polars, AUTO, ALL)
        assert first.covariates == COVARIATES
        assert first.scheme == "as the column part says"
        assert first.cases == ("Deck slab", "Pier")
        for same in (polars.to_pandas(), polars.to_arrow(), polars.lazy(), rekka.read_transitions(polars)):
            assert split_rows(same, AUTO, ALL).digest() == first.digest()

    def test_types_do_not_matter(self):
        rows = draw_rows()
        first = split_rows(rows, AUTO, ALL)
        others = rows.with_columns(
            pl.col("state_1").cast(pl.Float64), pl.col("state_2").cast(pl.UInt8), pl.col("traffic_mean").cast(pl.Int64),
            pl.col("bridge_length").cast(pl.Decimal(20, 4)), pl.col("case").cast(pl.Categorical),
            pl.col("bridge_id").cast(pl.Categorical),
        )  # fmt: skip
        assert split_rows(others, AUTO, ALL).digest() == first.digest()

    def test_a_partition_is_taken_as_it_is(self):
        parts = rekka.partition_by_bridge(draw_rows().drop("part"), seed=5)
        rows = split_rows(parts, PartitionPlan(scheme="given"), ALL)
        assert rows.scheme == parts.scheme
        assert rows.frame.group_by("part").len().sort("part")["len"].to_list() == [
            len(parts.golden), len(parts.train), len(parts.validation),
        ]  # fmt: skip

    def test_a_partition_made_by_hand_must_hold_together(self):
        rows = draw_rows()
        with pytest.raises(InputError, match=r"cannot be put together.*Polars frames of the same columns"):
            split_rows(rekka.Partition(rows, rows.drop("case"), rows, "mine"), AUTO, ALL)
        with pytest.raises(InputError, match="cannot be put together"):
            split_rows(rekka.Partition(rows.to_pandas(), rows, rows, "mine"), AUTO, ALL)
        bare = rows.drop("bridge_id")
        with pytest.raises(MissingColumns, match="bridge_id is not in the table"):
            split_rows(rekka.Partition(bare, bare, bare, "mine"), AUTO, ALL)

    def test_a_partition_with_nameless_rows_is_refused_with_its_rows(self):
        rows = changed(3, case=None).with_row_index("row_1", offset=100)
        parts = rekka.Partition(rows, rows.head(0), rows, "mine")
        with pytest.raises(BadValues, match=r"case is missing in 2 of 480 rows \(rows 103, 103\)"):
            split_rows(parts, AUTO, ALL)

    def test_cases_of_numbers_are_names(self):
        rows = draw_rows().with_columns(case=pl.when(pl.col("case") == "Pier").then(1).otherwise(2))
        assert split_rows(rows, AUTO, ALL).cases == ("1", "2")

    def test_rows_without_bridge_and_case(self):
        rows = split_rows(draw_rows(("Pier",)).drop("bridge_id", "case"), AUTO, ALL)
        assert rows.cases == ("all",)
        assert rows.frame["bridge_id"].n_unique() == len(rows.frame)

    def test_nothing_that_is_no_table(self):
        with pytest.raises(InputError, match="type int, not a table"):
            split_rows(3, AUTO, ALL)

    def test_rows_from_a_program_cannot_be_read_again(self):
        with pytest.raises(InputError, match="came from a program"):
            read_source(DataPlan(kind="given"), Path())

    def test_a_split_that_is_given_needs_a_partition(self):
        with pytest.raises(BadOption, match="needs rows that are split already"):
            split_rows(draw_rows(), PartitionPlan(scheme="given"), ALL)

    def test_by_date(self):
        rows = (
            draw_rows()
            .drop("part")
            .with_columns(date_2=pl.date(2010, 1, 1) + pl.duration(days=pl.int_range(pl.len())))
        )
        split = PartitionPlan(scheme="date", until=datetime.date(2010, 3, 1))
        assert (split_rows(rows, split, ALL).frame["part"] == "train").sum() == 60


class TestChoices:
    def test_covariates(self):
        assert split_rows(draw_rows(), AUTO, TrialPlan(covariates=("traffic_mean",))).covariates == (
            "traffic_mean",
        )
        assert split_rows(draw_rows(), AUTO, TrialPlan(covariates=())).covariates == ()

    def test_covariates_that_are_not_there(self):
        with pytest.raises(MissingColumns, match="Did you mean traffic_mean"):
            split_rows(draw_rows(), AUTO, TrialPlan(covariates=("traffic_men",)))

    @pytest.mark.parametrize("name", ["state_2", "part", "bridge_id"])
    def test_covariates_that_play_another_part(self, name):
        with pytest.raises(BadOption, match=f"{name} cannot be a covariate"):
            split_rows(draw_rows(), AUTO, TrialPlan(covariates=(name,)))

    def test_cases(self):
        assert split_rows(draw_rows(), AUTO, TrialPlan(cases=("Pier",))).cases == ("Pier",)
        with pytest.raises(
            BadOption, match=r"There is no component 'Peer'. Components there: Deck slab, Pier. Did you mean Pier"
        ):
            split_rows(draw_rows(), AUTO, TrialPlan(cases=("Peer",)))


class TestWhatIsRefused:
    def test_missing_values_with_the_tables_rows(self):
        """Row 17 of the table is golden, and stands elsewhere once the rows are split."""
        rows = changed(17, traffic_mean=None)
        with pytest.raises(BadValues, match=r"traffic_mean is missing in 1 of 240 rows \(row 17\)") as caught:
            split_rows(rows, AUTO, ALL)
        assert caught.value.rows == [17]
        assert caught.value.column == "traffic_mean"

    def test_missing_values_of_a_file_with_its_lines(self, tmp_path):
        changed(17, traffic_mean=None).write_csv(tmp_path / "a.csv")
        with pytest.raises(BadValues, match=r"\(row 19\)"):  # the header is line 1
            split_rows(rekka.read_transitions(tmp_path / "a.csv"), AUTO, ALL)

    def test_values_that_are_none(self):
        with pytest.raises(BadValues, match=r"interval_years is -2 in row 9 "):
            split_rows(changed(9, interval_years=-2.0), AUTO, ALL)
        with pytest.raises(BadStates, match=r"^row 9 .*end state 1 is below start state 3"):
            split_rows(changed(9, state_1=3, state_2=1), AUTO, ALL)

    def test_objects_of_pandas(self):
        frame = draw_rows().to_pandas()
        frame["traffic_mean"] = pd.Series([Decimal(int(v)) for v in frame["traffic_mean"]], dtype=object)
        assert split_rows(frame, AUTO, ALL).digest() == split_rows(draw_rows(), AUTO, ALL).digest()

    def test_no_row_that_trains(self):
        with pytest.raises(InputError, match=r"No row trains: as the column part says. 96 rows are held out"):
            split_rows(draw_rows().filter(pl.col("part") != "train"), AUTO, ALL)


class TestPaths:
    def test_there_and_back(self, tmp_path):
        run, file = tmp_path / "runs" / "one", tmp_path / "data" / "a.csv"
        assert relate(file, run) == "../../data/a.csv"
        assert locate(run, "../../data/a.csv") == file.resolve()

    def test_a_folder_that_is_a_link(self, tmp_path):
        (tmp_path / "deep" / "er").mkdir(parents=True)
        try:
            (tmp_path / "link").symlink_to(tmp_path / "deep" / "er", target_is_directory=True)
        except OSError:
            pytest.skip("links are not allowed here")
        file = tmp_path / "a.csv"
        file.write_text("x")
        name = relate(file, tmp_path / "link" / "run")
        assert locate(tmp_path / "link" / "run", name).read_text() == "x"

    def test_from_another_drive(self, tmp_path, monkeypatch):
        def refuse(*_: object) -> str:
            raise ValueError("path is on mount 'D:'")

        monkeypatch.setattr(os.path, "relpath", refuse)
        assert relate(tmp_path / "a.csv", tmp_path / "run") == str(tmp_path.resolve() / "a.csv")

    def test_a_file_that_is_a_link_keeps_its_own_name(self, tmp_path):
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "v2.csv").write_text("x")
        try:
            (tmp_path / "data.csv").symlink_to(tmp_path / "files" / "v2.csv")
        except OSError:
            pytest.skip("links are not allowed here")
        assert relate(tmp_path / "data.csv", tmp_path) == "data.csv"
