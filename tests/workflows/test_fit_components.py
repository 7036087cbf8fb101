"""fit_components: the models of all components of a table in one call."""

import polars as pl
import pytest
from study_cases import draw_rows, write_rows

import rekka
from rekka.core.errors import BadOption
from rekka.data.transitions import ReadingOptions
from rekka.fleet.models import load_folder


@pytest.fixture(scope="module")
def fits():
    return rekka.fit_components(draw_rows(n=200), test_fit=False)


def test_every_component_has_a_model(fits):
    assert list(fits.models) == ["Deck slab", "Pier"]
    assert fits.reasons == {}
    rows = draw_rows(n=200).filter(case="Pier")
    alone = rekka.ExponentialHazardMarkovModel(covariates=list(fits.models["Pier"].covariates_))
    alone.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
    assert fits.models["Pier"].log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=1e-9)


def test_the_coefficients_stand_in_one_table(fits):
    assert fits.coefficients["case"].unique().sort().to_list() == ["Deck slab", "Pier"]
    own = [row for row in fits.coefficients.to_dicts() if row["case"] == "Pier"]
    assert [row["estimate"] for row in own] == fits.models["Pier"].summary()["estimate"].to_list()


def test_a_component_that_cannot_be_fitted_has_a_reason_and_the_others_go_on(tmp_path):
    rows = draw_rows()
    stuck = pl.col("case") == "Pier"
    rows = rows.with_columns(state_1=pl.when(stuck).then(1).otherwise("state_1"))
    rows = rows.with_columns(state_2=pl.when(stuck).then(1).otherwise("state_2"))
    found = rekka.fit_components(rows, test_fit=False, out=tmp_path / "models")
    assert list(found.models) == ["Deck slab"]
    assert found.reasons["Pier"].startswith("Every row stays in rating 1")
    assert [one.failed for one in found.components] == [False, True]
    assert found.components[1].to_dict() == {"case": "Pier", "reason": found.reasons["Pier"]}
    assert found.coefficients["case"].unique().to_list() == ["Deck slab"]
    assert sorted(file.name for file in (tmp_path / "models").iterdir()) == ["coefficients.csv", "deck-slab.json"]


def test_files_read_back_as_the_same_models(tmp_path):
    found = rekka.fit_components(write_rows(tmp_path), only=["Pier"], bootstrap=3, seed=1, out=tmp_path / "models")
    (one,) = found.components
    assert one.file == tmp_path / "models" / "pier.json"
    assert found.table == tmp_path / "models" / "coefficients.csv"
    read = rekka.ExponentialHazardMarkovModel.from_json(one.file.read_text())
    assert (read.case_, read.resampled_.asked) == ("Pier", 3)
    assert read.coef_.tolist() == one.model.coef_.tolist()
    assert found.tested
    assert one.to_dict()["fit_test"]["p_value"] == read.fit_test_.p_value
    assert pl.read_csv(found.table)["estimate"].to_list() == found.coefficients["estimate"].to_list()
    theirs, ours = load_folder(tmp_path / "models").models[0], found.to_models().models[0]
    assert (theirs.name, theirs.labels, theirs.fit.beta.tolist()) == ("Pier", None, ours.fit.beta.tolist())


def test_progress_names_the_stages_in_order():
    told = []
    rekka.fit_components(
        draw_rows(("Pier",)), bootstrap=2, on_progress=lambda *one: told.append(one), test_fit=True
    )
    assert told[0] == ("Reading", "the table", 0, None)
    assert list(dict.fromkeys(stage for stage, *_ in told)) == ["Reading", "Fitting", "Refits", "Testing the fit"]
    assert [one[1:] for one in told if one[0] == "Refits"] == [("Pier", 1, 2), ("Pier", 2, 2)]


def test_an_input_is_never_written_over(tmp_path):
    rows = write_rows(tmp_path)
    rows.rename(tmp_path / "one.coefficients.csv")
    with pytest.raises(BadOption, match=r"one\.coefficients\.csv is one of the files that are read"):
        rekka.fit_components(tmp_path / "one.coefficients.csv", only=["Pier"], out=tmp_path / "one.json")
    assert not (tmp_path / "one.json").exists()


def test_one_file_is_not_for_several_components(tmp_path):
    with pytest.raises(BadOption, match=r"models\.json is one file, and there are 2 components"):
        rekka.fit_components(draw_rows(), out=tmp_path / "models.json")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"only": ["Peer"]}, "no component 'Peer'"),
        ({"covariates": ["nonsense"]}, "nonsense"),
        ({"scaling": "nonsense"}, "nonsense"),
    ],
)
def test_what_is_wrong_for_every_component_raises(options, error):
    with pytest.raises(rekka.InputError, match=error):
        rekka.fit_components(draw_rows(), **options)


def test_a_table_without_pairs_has_no_components(tmp_path):
    (tmp_path / "t.csv").write_text("bridge,date,state\nA,2001-05-01,a\nB,2001-05-01,c\n")
    assert rekka.fit_components(tmp_path / "t.csv").components == ()


def test_reading_options_say_how_a_table_is_read(tmp_path):
    rows = draw_rows(("Pier",), n=60)
    seen = enumerate(rows.select("state_1", "state_2").rows())
    lines = [(f"B{number}", 2000 + 5 * visit, states[visit]) for number, states in seen for visit in (0, 1)]
    table = pl.DataFrame(lines, schema=["ID", "when", "grade"], orient="row")
    reading = ReadingOptions(changes={"columns": {"bridge": "ID", "date": "when", "state": "grade"}})
    found = rekka.fit_components(table, reading, test_fit=False)
    assert [one.rows for one in found.components] == [60]
    assert found.reading.mapping["columns"]["bridge"] == "ID"
    table.write_csv(tmp_path / "t.csv")
    with pytest.raises(BadOption, match="one table is read at a time"):
        rekka.fit_components([tmp_path / "t.csv", tmp_path / "t.csv"], reading)
    with pytest.raises(BadOption, match="such files need no mapping"):
        rekka.fit_components([tmp_path / "t.csv"], ReadingOptions(changes=reading.changes, nbi=True))
