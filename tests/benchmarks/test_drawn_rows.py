import polars as pl
import pytest
from benchmarks.drawn_rows import write_transitions

import rekka


def test_files_hold_what_their_seeds_draw(tmp_path):
    files = write_transitions(tmp_path, 250, seed=3, rows_a_file=100)
    assert [file.name for file in files] == ["part-000.parquet", "part-001.parquet", "part-002.parquet"]
    for number, size in enumerate((100, 100, 50)):
        found = pl.read_parquet(files[number])
        drawn = rekka.simulate_transitions(size, seed=3 + number)
        assert found.drop("bridge_id").equals(drawn.drop("bridge_id"))
        assert found["bridge_id"].to_list() == [f"{number:03d}-{name}" for name in drawn["bridge_id"]]


def test_threads_change_nothing(tmp_path):
    for threads in (1, 3):
        (tmp_path / str(threads)).mkdir()
        write_transitions(tmp_path / str(threads), 1_000, rows_a_file=300, threads=threads)
    one, three = (pl.read_parquet(tmp_path / name / "*.parquet") for name in ("1", "3"))
    assert one.equals(three)


@pytest.mark.parametrize("options", [{"n_rows": 0}, {"n_rows": 5, "rows_a_file": 0}])
def test_nothing_to_write_is_refused(tmp_path, options):
    with pytest.raises(rekka.InputError, match="at least 1 row is needed"):
        write_transitions(tmp_path, **options)
    assert not list(tmp_path.iterdir())
