"""The golden rows confirm once; a second look is refused, or marked."""

import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from study_cases import draw_rows, write_rows

import rekka
from rekka.core.errors import RunFolderError
from rekka.evaluation.scores import mean_interval
from rekka.scaling.registry import fit_scaling
from rekka.study.confirmation import Candidate, Seen, identify_model, look
from rekka.study.rows import StudyRows

OPTIONS = {"methods": ["zscore", "minmax"], "guard": {"resamples": 2}}


def rows() -> pl.DataFrame:
    return draw_rows(("Pier",), n=120)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("confirming")
    rekka.compare(rows(), out=folder / "run", **OPTIONS)
    return folder / "run"


@pytest.fixture
def run(done, tmp_path):
    shutil.copytree(done, tmp_path / "run")
    return tmp_path / "run"


def test_what_was_chosen_is_scored_on_golden_rows(done):
    study = rekka.load_study(done)
    golden = rows().filter(part="golden")
    found = study.confirmation.row(0, named=True)
    model = study.model("Pier")
    right = model.predict(golden) == golden["state_2"].to_numpy()
    loss = -model.log_probabilities(golden, golden["state_2"])
    bridge = golden["bridge_id"].to_numpy()
    accuracy, log_loss = mean_interval(right.astype(float), bridge), mean_interval(loss, bridge)
    assert (found["accuracy"], found["accuracy_low"], found["accuracy_high"]) == pytest.approx(accuracy[:3])
    assert (found["log_loss"], found["log_loss_low"], found["log_loss_high"]) == pytest.approx(log_loss[:3])
    same = (golden["state_1"] == golden["state_2"]).to_numpy()
    assert found["persistence_accuracy"] == pytest.approx(same.mean())
    assert found["persistence_difference"] == pytest.approx(right.mean() - same.mean())
    assert found["seen"] is None
    assert (done / "confirmation.json").exists()
    assert "looked at the confirmation rows" in (done / "log.txt").read_text()


def test_going_on_does_not_look_again(run):
    rekka.resume_study(run)
    assert len(rekka.load_study(run).looks) == 1


def test_a_second_look_is_refused(run):
    with pytest.raises(RunFolderError, match=r"looked at its confirmation rows already.*--force"):
        rekka.confirm(run)


def test_a_forced_second_look_is_marked(run):
    study = rekka.confirm(run, force=True)
    assert [look.forced for look in study.looks] == [False, True]
    assert rekka.load_study(run).confirmation["look"].to_list() == [1, 2]
    assert "forced" in (run / "log.txt").read_text()


def test_a_run_can_wait_with_its_look(tmp_path):
    study = rekka.compare(rows(), out=tmp_path / "run", confirm=False, **OPTIONS)
    assert study.looks == ()
    assert len(rekka.confirm(tmp_path / "run").confirmation) == 1


def test_another_model_of_the_same_golden_rows_is_refused_in_a_run_beside_it(run):
    other = rekka.compare(rows(), out=run.parent / "other", covariates=["traffic_mean"], **OPTIONS)
    assert other.confirmation.is_empty()
    assert "golden rows looked at with another model (run, " in other.looks[0].refused["Pier (exact)"]
    forced = rekka.confirm(run.parent / "other", force=True).confirmation.row(0, named=True)
    assert forced["seen"].startswith("run, ")
    assert forced["forced"]


def test_the_same_model_again_is_the_same_look(run):
    again = rekka.compare(rows(), out=run.parent / "again", **OPTIONS)
    first = rekka.load_study(run).confirmation.drop("made")
    assert again.confirmation.drop("made").equals(first)


def test_other_golden_rows_are_nobodys_business(run):
    other = rekka.compare(draw_rows(("Pier",), n=120, seed=99), out=run.parent / "other", **OPTIONS)
    assert len(other.confirmation) == 1


def test_a_damaged_record_beside_it_is_noted(run):
    file = run / "confirmation.json"
    file.write_text(file.read_text()[:-50])
    other = rekka.compare(rows(), out=run.parent / "other", covariates=["traffic_mean"], **OPTIONS)
    assert len(other.confirmation) == 1
    assert "not taken into account: run" in (run.parent / "other" / "log.txt").read_text()


def test_golden_rows_that_chose_cannot_confirm(tmp_path):
    study = rekka.compare(rows(), rule="pareto", out=tmp_path / "run", **OPTIONS)
    assert study.confirmation.is_empty()
    assert study.looks[0].refused == {"Pier (exact)": "the golden rows chose it, and cannot confirm it"}


def test_no_golden_rows_confirm_nothing():
    study = rekka.compare(rows().filter(pl.col("part") != "golden"), **OPTIONS)
    assert "can be scored" in study.looks[0].refused["Pier (exact)"]


def test_an_unfinished_run_is_not_confirmed(run):
    for file in (run / "choices").iterdir():
        file.unlink()
    with pytest.raises(RunFolderError, match="is not finished: 1 choice not made yet"):
        rekka.confirm(run)


def test_rows_are_known_whatever_their_order_and_covariates():
    golden = rows().filter(part="golden")
    shuffled = golden.sample(fraction=1.0, shuffle=True, seed=3).drop("traffic_mean")
    one, same, other = (
        StudyRows(frame, (), "").case("Pier").digest_golden() for frame in (golden, shuffled, golden.head(5))
    )
    assert one == same != other


def test_a_model_is_known_by_its_coefficients(done):
    study = rekka.load_study(done)
    one, same, other = (study.model("Pier", "zscore")._fit, study.model("Pier", "zscore")._fit,
                        study.model("Pier", "minmax")._fit)  # fmt: skip
    assert identify_model(one) == identify_model(same) != identify_model(other)


def test_from_a_table(tmp_path):
    study = rekka.compare(write_rows(tmp_path, rows()), out=tmp_path / "run", **OPTIONS)
    assert rekka.confirm(tmp_path / "run", force=True).choices == study.choices


def test_golden_rows_that_chose_are_spent(tmp_path):
    """Whoever selects on golden rows has seen every model on them."""
    for confirm in (True, False):
        folder = tmp_path / f"{confirm}"
        rekka.compare(rows(), out=folder / "gold", select_on="golden", confirm=confirm, **OPTIONS)
        after = rekka.compare(rows(), out=folder / "after", **OPTIONS)
        assert "golden rows that chose before cannot confirm (gold, " in after.looks[0].refused["Pier (exact)"]


def test_two_presets_are_two_models_on_the_same_rows(tmp_path):
    options = {"methods": ["zscore"], "rule": "pareto", "select_on": "validation", "preset": "both"}
    study = rekka.compare(rows(), out=tmp_path / "one", **options)
    assert study.confirmation["model_sha256"].n_unique() == 2
    assert set(study.confirmation["seen"]) == {"in this look, under another preset"}
    again = rekka.compare(rows(), out=tmp_path / "two", **options)
    assert len(again.confirmation) == len(study.confirmation)  # the same models: the same look


def test_what_cannot_be_read_beside_it_is_passed_over(run):
    (run.parent / "odd" / "confirmation.json").mkdir(parents=True)
    other = rekka.compare(rows(), out=run.parent / "again", **OPTIONS)
    assert len(other.confirmation) == 1
    assert "not taken into account: odd" in (run.parent / "again" / "log.txt").read_text()


def test_a_record_of_its_own_that_is_damaged_counts_as_a_look(run):
    file = run / "confirmation.json"
    file.write_text("[]")
    assert rekka.load_study(run).looks[0].unreadable
    assert len(rekka.resume_study(run).confirmation) == 0
    with pytest.raises(RunFolderError, match="looked at its confirmation rows already"):
        rekka.confirm(run)
    assert len(rekka.confirm(run, force=True).confirmation) == 1
    assert (run / "confirmation.json.damaged").exists()


def test_a_folder_that_is_gone_is_made_again(run):
    shutil.rmtree(run / "choices")
    assert len(rekka.resume_study(run).choices) == 1


def test_differences_have_their_intervals(done):
    """From saying that nothing changes, in accuracy; from the model without covariates, in log loss."""
    golden = rows().filter(part="golden")
    found = rekka.load_study(done).confirmation.row(0, named=True)
    right = rekka.load_study(done).model("Pier").predict(golden) == golden["state_2"].to_numpy()
    same = (golden["state_1"] == golden["state_2"]).to_numpy()
    expected = mean_interval(right.astype(float) - same, golden["bridge_id"].to_numpy())
    ends = [found[f"persistence_{name}"] for name in ("difference", "low", "high")]
    assert ends == pytest.approx(expected[:3])
    for name in ("persistence", "no_covariates"):
        assert found[f"{name}_low"] < found[f"{name}_difference"] < found[f"{name}_high"]


@pytest.fixture
def candidate(done):
    study = rekka.load_study(done)
    return Candidate(study.choices[0], study.read_rows().case("Pier", "validation"), study.model("Pier")._fit)


def test_a_forced_repeat_names_the_other_looks(candidate):
    """The same model again is the same look; forced, the look that another model has had is named all the same."""
    golden, model = candidate.rows.digest_golden(), identify_model(candidate.fitted)
    seen = [
        Seen(where, "2026-01-02 03:04:05", "Pier", golden, whose) for where, whose in (("a", model), ("b", "x"))
    ]

    def marks(**options):
        return [one.seen for one in look([candidate], seen, 0.95, 1, **options).results]

    assert marks() == [None]
    assert marks(force=True) == ["b, 2026-01-02"]


def test_a_model_is_known_by_its_scaling(candidate):
    """With the same coefficients: of other units."""
    fitted = candidate.fitted
    other = fit_scaling("minmax", np.arange(6.0).reshape(2, 3), fitted.covariates)
    assert other.method != fitted.scaling.method
    assert identify_model(replace(fitted, scaling=other)) != identify_model(fitted)
