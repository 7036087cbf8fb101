"""Draws: the same whoever makes them, taken up where they stopped, counted as a person would count them."""

import dataclasses
import json
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from study_cases import draw_rows, log_of

import rekka
from rekka.core.errors import BadOption, InputError, OutsideTrainingRange, RunFolderError
from rekka.core.folders import hold
from rekka.core.numerics import generator
from rekka.evaluation.resampling import Sample
from rekka.model.fit import Options, fit_rows, refit_rows
from rekka.scaling.registry import fit_scaling
from rekka.study import stability as module
from rekka.study.draws import (
    SCHEMA,
    Attempt,
    Draw,
    Unit,
    apply_to_draw,
    attempt,
    draw_start,
    refit_draws,
)
from rekka.study.explanations import find_levels
from rekka.study.runner import open_cases
from rekka.study.stability import Stability, find_wilson, stability
from rekka.study.trial import Key, Status, refitting

METHODS = ("max", "zscore", "boxcox")
KINDS = ("bootstrap", "splits", "seeds")


def compare(rows: pl.DataFrame, **options: Any) -> rekka.Study:
    given: dict[str, Any] = {"methods": METHODS, "confirm": False, "guard": {"resamples": 0}}
    return rekka.compare(rows, **given | options)


@pytest.fixture(scope="module")
def study() -> rekka.Study:
    """Two cases, about three rows a bridge."""
    return compare(draw_rows(n=240))


@pytest.fixture(scope="module")
def drawn(study) -> Stability:
    return stability(study, resamples=6, workers=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The same study in a run folder."""
    out = tmp_path_factory.mktemp("finished") / "run"
    compare(draw_rows(n=240), out=out)
    return out


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def made(monkeypatch) -> list[Unit]:
    """The units that were really made."""
    units = []

    def noted(rows: Any, plan: Any, unit: Unit, seed: int) -> pl.DataFrame:
        units.append(unit)
        return refit_draws(rows, plan, unit, seed)

    monkeypatch.setattr(module, "refit_draws", noted)
    return units


def case_rows(study: rekka.Study, case: str) -> Any:
    return open_cases(study.plan.study, study.read_rows())(case)


class TestDeterminism:
    def test_by_blocks_and_by_how_many_draws(self, study, drawn, monkeypatch):
        monkeypatch.setattr(module, "BLOCK", 4)
        found = stability(study, kinds=["splits"], resamples=9, cases=["Pier"], workers=1).refits
        assert found["draw"].to_list() == [number for number in range(9) for _ in METHODS]
        theirs = drawn.refits.filter(kind="splits", case="Pier")
        assert found.filter(pl.col("draw") < 6).equals(theirs)

    def test_by_the_order_in_which_things_are_named(self, study, drawn):
        found = stability(study, kinds=KINDS[::-1], resamples=2, cases=["Deck slab", "Pier"][::-1], workers=1)
        assert found.kinds == KINDS
        assert found.refits.equals(drawn.refits.filter(pl.col("draw") < 2))

    def test_another_seed_gives_other_draws(self, study, drawn):
        found = stability(study, kinds=["bootstrap"], resamples=2, seed=1, workers=1)
        same = drawn.refits.filter((pl.col("draw") < 2) & (pl.col("kind") == "bootstrap"))
        assert found.seed == 1
        assert not found.refits["log_loss"].equals(same["log_loss"])
        assert drawn.seed == study.plan.study.seed


def test_counts_against_a_plain_account(study, drawn):
    """Bridges drawn, fitted and scored by hand, for one case and method; shares counted in Python."""
    rows = study.read_rows().frame.filter((pl.col("case") == "Pier") & (pl.col("part") != "golden"))
    rows = pl.concat([rows.filter(part="train"), rows.filter(part="validation")])
    covariates = study.read_rows().covariates
    n_states = int(rows.filter(part="train")["state_2"].max())
    sample = Sample.of(rows.filter(pl.col("state_2") <= n_states), covariates, n_states)
    names = sorted(set(sample.bridge.tolist()))
    for draw in range(6):
        times = Counter(
            generator(drawn.seed, "Pier", "bootstrap", draw).integers(0, len(names), len(names)).tolist()
        )
        inside = [i for i, name in enumerate(sample.bridge) for _ in range(times[names.index(name)])]
        outside = [i for i, name in enumerate(sample.bridge) if not times[names.index(name)]]
        one, other = sample.take(np.array(inside)), sample.take(np.array(outside))
        fit = fit_rows(one.rows, one.x, covariates, Options(scaling="zscore"))
        p = fit.probabilities(other.rows.start, other.rows.dt, other.x)
        seen = p[np.arange(len(outside)), other.rows.end]
        ours = drawn.refits.filter(case="Pier", kind="bootstrap", draw=draw, method="zscore").row(0, named=True)
        assert ours["scored"] == ours["held_out"] == len(outside)
        assert ours["certified"] == fit.certificate.certified
        assert ours["log_likelihood"] == pytest.approx(fit.inference.log_likelihood, rel=1e-9)
        assert ours["accuracy"] == pytest.approx(np.mean(p.argmax(axis=1) == other.rows.end))
        assert ours["log_loss"] == pytest.approx(-np.mean(np.log(np.maximum(seen, 1e-12))))
    lines = drawn.refits.filter(case="Pier", kind="bootstrap", method="zscore").to_dicts()
    table = drawn.methods.filter(case="Pier", kind="bootstrap", method="zscore").row(0, named=True)
    accuracies = [line["accuracy"] for line in lines]
    assert table["refits"] == 6
    assert table["certified"] == sum(line["certified"] for line in lines) / 6
    assert table["accuracy_mean"] == pytest.approx(sum(accuracies) / 6)
    assert table["accuracy_sd"] == pytest.approx(np.std(accuracies, ddof=1))
    assert (table["accuracy_low"], table["accuracy_high"]) == pytest.approx(np.quantile(accuracies, (0.05, 0.95)))
    assert table["evaluations_median"] == np.median([line["evaluations"] for line in lines])
    chosen = drawn.selection.filter(case="Pier", kind="bootstrap", method="zscore").row(0, named=True)
    assert chosen["chosen"] == sum(line["chosen"] for line in lines) / 6
    assert chosen["kept"] == sum(line["kept"] for line in lines) / 6


class TestSelection:
    def test_shares_add_up(self, drawn):
        for _, rows in drawn.selection.group_by("preset", "case", "kind"):
            assert rows["none"].n_unique() == 1
            assert rows["chosen"].sum() + rows["none"][0] == pytest.approx(1)
            assert (rows["kept"] >= rows["chosen"]).all()
            assert rows["in_study"].sum() <= 1
            assert rows["draws"].to_list() == [6, 6, 6]
        by_draw = drawn.refits.group_by("case", "kind", "draw").agg(pl.col("chosen").sum())
        assert by_draw["chosen"].max() == 1

    def test_methods_that_are_one_model_are_fitted_once(self, study, monkeypatch):
        fitted = []

        def counted(*given: Any, **more: Any) -> Any:
            fitted.append(1)
            return refit_rows(*given, **more)

        monkeypatch.setattr("rekka.study.trial.refit_rows", counted)
        found = stability(study, kinds=["splits"], resamples=3, cases=["Pier"], workers=1).refits
        assert len(fitted) == 6  # max and zscore together, boxcox
        own = [name for name in SCHEMA if name not in ("method", "chosen", "kept")]
        assert found.filter(method="max").select(own).equals(found.filter(method="zscore").select(own))

    @pytest.mark.parametrize("rule", ["guarded", "pareto"])
    @pytest.mark.parametrize("preset", ["exact", "paper"])
    def test_the_rule_is_the_study_s_own(self, rule, preset):
        """On the study's own fits and judged rows it chooses and keeps what the study does."""
        done = compare(draw_rows(n=400), rule=rule, preset=preset, select_on="validation", cost="evaluations")
        for case in ("Pier", "Deck slab"):
            rows = case_rows(done, case)
            draw = Draw(0, rows.training, rows.judged[0])
            keys = {method: Key(case=case, preset=preset, method=method) for method in METHODS}
            fits = {method: refitting(rows, key, done.plan.study.seed) for method, key in keys.items()}
            attempts = {name: attempt(lambda d, fit=fit: fit(d.inside), draw) for name, fit in fits.items()}
            found = apply_to_draw(done.plan, preset, attempts)
            kept, chosen = tuple(name for name, one in found.rule_verdicts.items() if one.kept), found.chosen
            assert (kept, chosen) == (done.choice(case).kept, done.choice(case).chosen)

    def test_golden_rows_are_not_looked_at(self, study, drawn):
        """Not even where they are all that methods are judged on."""
        rows = study.read_rows()
        golden = pl.col("part") == "golden"
        spoiled = [pl.when(golden).then(math.nan).otherwise(pl.col(name)).alias(name) for name in rows.covariates]
        states = [pl.when(golden).then(99).otherwise(pl.col(name)).alias(name) for name in ("state_1", "state_2")]
        poisoned = dataclasses.replace(rows, table=rows.frame.with_columns(*spoiled, *states))
        found = stability(dataclasses.replace(study, read_rows=lambda: poisoned), resamples=2, workers=1)
        assert found.refits.equals(drawn.refits.filter(pl.col("draw") < 2))
        by_paper = compare(draw_rows(n=240), rule="pareto")
        assert by_paper.choices[0].judged_on == "golden"
        poisoned_too = dataclasses.replace(by_paper, read_rows=lambda: poisoned)
        assert stability(poisoned_too, resamples=1, workers=1).refits["scored"].min() > 0


class TestSeeds:
    def test_newton_ends_at_the_trial_s_maximum_from_any_start(self, study, drawn):
        trials = {(trial.key.case, trial.key.method): trial for trial in study.results}
        seeds = drawn.refits.filter(kind="seeds")
        for row in seeds.iter_rows(named=True):
            trial = trials[row["case"], row["method"]]
            assert row["certified"] == trial.certified
            assert row["log_likelihood"] == pytest.approx(trial.log_likelihood, abs=1e-6)
            assert row["scored"] == row["held_out"]
            assert row["evaluations"] > trial.outcome.evaluations  # crude rates are a better start
        assert not any("the start alone decides" in line for line in drawn.remarks())

    def test_starts_are_one_point_for_one_model(self, study):
        sample = case_rows(study, "Pier").training
        hazards = []
        for method in ("max", "zscore"):
            z = fit_scaling(method, sample.x, sample.covariates).transform(sample.x)
            beta = draw_start(4, z.mean(axis=0), z.std(axis=0), 5)
            hazards.append(beta[:, 0] + z @ beta[:, 1:].T)
        np.testing.assert_allclose(*hazards, atol=1e-12)
        assert (draw_start(3, np.ones(1), np.zeros(1), 5)[:, 1] == 0).all()  # a constant covariate has no slope

    def test_the_paper_s_start(self):
        done = compare(draw_rows(n=160), preset="paper", cases=["Pier"], methods=["zscore", "boxcox"])
        found = stability(done, kinds=["seeds"], resamples=3, workers=1)
        sample = case_rows(done, "Pier").training
        seed = int(generator(found.seed, "Pier", "seeds", 2).integers(2**32))
        given = {"solver": "lbfgs", "gradient": "numeric", "likelihood": "paper", "clock": "start", "threads": 1}
        fit = refit_rows(sample.rows, sample.x, sample.covariates, Options(scaling="zscore", seed=seed, **given))
        ours = found.refits.filter(draw=2, method="zscore").row(0, named=True)
        assert ours["log_likelihood"] == fit.log_likelihood
        assert ours["evaluations"] == fit.outcome.evaluations
        assert found.refits.filter(method="boxcox")["log_likelihood"].n_unique() > 1
        said = " ".join(found.remarks())
        assert "seeds: the start alone decides where a fit ends, in log-likelihoods: boxcox in Pier (" in said
        assert "the draws against evaluations" in said

    def test_penalties_and_priors_are_refitted_too(self):
        done = compare(draw_rows(n=100), methods=["zscore", "ridge", "pooled"], select_on="validation")
        found = stability(done, kinds=["splits", "seeds"], resamples=1, cases=["Pier"], workers=1)
        assert found.refits.filter(method="pooled")["certified"].all()
        likelihoods = found.refits.pivot("method", index="kind", values="log_likelihood")
        assert (likelihoods["pooled"] < likelihoods["zscore"]).all()  # a prior only takes from the likelihood


class TestSmall:
    def test_exploratory_by_rule(self):
        still = pl.when(pl.int_range(pl.len()) % 4 == 0).then("state_2").otherwise("state_1")
        poor = draw_rows(("Poor",), n=240).with_columns(state_2=still)
        rows = pl.concat([draw_rows(("Pier",), n=240), draw_rows(("Small",), n=120), poor])
        done = compare(rows, methods=["zscore"], select_on="validation")
        found = stability(done, kinds=["seeds"], resamples=1, workers=1)
        assert found.cases.columns == ["case", "train", "bridges", "events_per_parameter", "exploratory"]
        why = dict(found.cases.select("case", "exploratory").rows())
        assert why["Pier"] is None
        assert why["Small"].startswith("72 training rows, fewer than 100")
        assert "events per parameter, fewer than 5" in why["Poor"]
        said = next(line for line in found.remarks() if line.startswith("exploratory"))
        assert "Poor (" in said
        assert "Small (" in said
        assert "Pier" not in said

    def test_every_method_fails(self):
        done = rekka.compare(cases=["Slope protection"], confirm=False, guard={"resamples": 0})
        found = stability(done, kinds=["bootstrap"], resamples=4, workers=1)
        assert set(found.statuses["status"]) <= {"no finite maximum", "not determined", "solver failed"}
        assert found.methods["certified"].to_list() == [0.0] * 4
        assert found.selection["none"].to_list() == [1.0] * 4
        assert found.selection["draws"].to_list() == [4] * 4
        said = " ".join(found.remarks())
        assert "exploratory, too small to conclude from: Slope protection (27 training rows" in said
        assert "Slope protection (max, minmax, zscore, boxcox 0%)" in said

    def test_two_bridges_and_one(self):
        two = draw_rows(("Two",), n=40).with_columns(
            bridge_id=pl.Series([f"B{row % 2}" for row in range(40)]), part=pl.lit("train")
        )
        one = two.with_columns(case=pl.lit("One"), bridge_id=pl.lit("B0"))
        done = compare(pl.concat([two, one]), methods=["zscore"], select_on="validation")
        found = stability(done, resamples=12, workers=1)
        bootstrap = found.refits.filter(case="Two", kind="bootstrap")
        assert set(bootstrap["held_out"]) == {0, 20}
        assert bootstrap.filter(held_out=0)["accuracy"].null_count() == len(bootstrap.filter(held_out=0))
        draws = dict(found.selection.filter(kind="bootstrap").select("case", "draws").rows())
        assert draws == {"Two": len(bootstrap.filter(held_out=20)), "One": 0}
        shares = found.selection.filter(kind="bootstrap", case="One").row(0, named=True)
        assert (shares["chosen"], shares["kept"], shares["none"]) == (None, None, None)
        assert set(found.refits.filter(case="One", kind="splits")["status"]) == {"not fitted"}  # nothing is inside
        said = " ".join(found.remarks())
        assert "bootstrap: not every draw leaves rows to score" in said
        assert "seeds: not every draw leaves rows to score" in said

    def test_a_case_without_training_rows(self):
        rows = draw_rows(("Pier", "Late"), n=60).with_columns(
            part=pl.when(pl.col("case") == "Late").then(pl.lit("golden")).otherwise(pl.col("part"))
        )
        found = stability(compare(rows, methods=["zscore"]), resamples=2, workers=1)
        late = found.refits.filter(case="Late")
        assert set(late["status"]) == {"not fitted"}
        assert late["held_out"].to_list() == [0] * 6
        assert found.cases.filter(case="Late")["events_per_parameter"].to_list() == [None]
        assert "0 training rows" in " ".join(found.remarks())


class TestAttempt:
    draw = Draw(
        0,
        Sample.of(draw_rows(("Pier",)), ("bridge_length",), 4),
        Sample.of(draw_rows(("Pier",)), ("bridge_length",), 4),
    )

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (OutsideTrainingRange("x"), Status.TRANSFORM_FAILED),
            (InputError("x"), Status.NOT_FITTED),
            (np.linalg.LinAlgError("x"), Status.SOLVER_FAILED),
            (FloatingPointError("x"), Status.SOLVER_FAILED),
        ],
    )
    def test_what_cannot_be_fitted_is_a_value(self, error, status):
        def fit(_: Draw) -> Any:
            raise error

        assert attempt(fit, self.draw) == Attempt(status)

    def test_what_cannot_be_scored_is_certified_and_not_chosen(self, study):
        """Box-Cox fitted on lengths from 3 m on cannot take one below its shift."""
        inside, outside = self.draw.inside, dataclasses.replace(self.draw.outside, x=-self.draw.outside.x)

        def fit(draw: Draw) -> Any:
            options = Options(scaling="boxcox", threads=1)
            return refit_rows(draw.inside.rows, draw.inside.x, draw.inside.covariates, options)

        found = attempt(fit, Draw(0, inside, outside))
        assert found.status is Status.TRANSFORM_FAILED
        assert found.certified
        ruled = apply_to_draw(study.plan, "exact", {"boxcox": found})
        assert (ruled.rule_verdicts["boxcox"].kept, ruled.chosen) == (False, None)

    def test_other_errors_are_not_swallowed(self):
        def fit(_: Draw) -> Any:
            raise MemoryError

        with pytest.raises(MemoryError):
            attempt(fit, self.draw)


def files(run: Path) -> list[Path]:
    return sorted((run / "stability").glob("draws-*/*.json"))


class TestRunFolder:
    def test_same_as_in_memory_and_kept(self, run, drawn, made):
        found = stability(run, resamples=6, workers=1)
        assert found.refits.equals(drawn.refits)
        assert len(made) == len(files(run)) == 6
        assert "stability: done: 108 refits; tables written" in log_of(run)
        for name, table in found.tables().items():
            text = (run / "stability" / f"{name}.csv").read_bytes()
            assert text.startswith(b"\xef\xbb\xbf")
            assert len(pl.read_csv(text)) == len(table)
        made.clear()
        assert stability(run, resamples=6, workers=1).refits.equals(drawn.refits)
        assert stability(run, resamples=4, workers=1).refits.equals(drawn.refits.filter(pl.col("draw") < 4))
        assert made == []
        assert rekka.load_study(run).choices  # the study beside it is as it was

    def test_more_resamples_make_only_the_new_ones(self, run, made, monkeypatch):
        monkeypatch.setattr(module, "BLOCK", 4)
        options: dict[str, Any] = {"kinds": ["splits"], "cases": ["Pier"], "workers": 1}
        stability(run, resamples=2, **options)
        found = stability(run, resamples=7, **options)
        assert [unit.draws for unit in made] == [(0, 1), (2, 3), (4, 5, 6)]
        assert found.refits["draw"].to_list() == [number for number in range(7) for _ in METHODS]
        whole = stability(rekka.load_study(run), resamples=7, **options)
        assert found.refits.equals(whole.refits)

    def test_stopped_by_hand_and_gone_on_with(self, run, drawn, made):
        def stop(unit: Unit, done: int, planned: int) -> None:
            assert planned == 36
            if done == 12:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            stability(run, resamples=6, workers=1, on_unit=stop)
        assert log_of(run).endswith("stability: stopped: KeyboardInterrupt\n")
        assert len(files(run)) == 2
        found = stability(run, resamples=6, workers=1)
        assert len(made) == 6
        assert found.refits.equals(drawn.refits)

    def test_damaged_files_are_made_again(self, run, drawn, made):
        stability(run, resamples=6, workers=1)
        gone, cut, changed, foreign, left = files(run)[:5]
        gone.unlink()
        cut.write_bytes(cut.read_bytes()[:300])
        changed.write_text(changed.read_text().replace("true", "false", 1))
        foreign.write_bytes(left.read_bytes())
        (run / "stability" / "methods.csv").write_text("spoiled")
        litter = left.with_name(f"{left.name}.123.unfinished")
        litter.write_text("half")
        made.clear()
        found = stability(run, resamples=6, workers=1)
        assert len(made) == 4
        assert found.refits.equals(drawn.refits)
        assert not litter.exists()
        assert log_of(run).count("stability: recomputed: ") == 3
        assert (run / "stability" / "methods.csv").read_bytes().startswith(b"\xef\xbb\xbfpreset,case,kind,method")

    def test_seeds_are_kept_apart(self, run, made):
        options: dict[str, Any] = {"kinds": ["splits"], "cases": ["Pier"], "resamples": 1, "workers": 1}
        for seed in (1, 2, 1):
            stability(run, seed=seed, **options)
        assert len(made) == 2

    def test_draws_of_another_study_are_not_taken(self, run, made, tmp_path):
        options: dict[str, Any] = {"kinds": ["splits"], "resamples": 1, "workers": 1}
        stability(run, **options)
        compare(draw_rows(n=100, seed=8), methods=["zscore"], select_on="validation", out=tmp_path / "other")
        (run / "stability").rename(tmp_path / "other" / "stability")
        made.clear()
        stability(tmp_path / "other", **options)
        assert len(made) == 2

    @pytest.mark.slow  # starts processes; two workers of a comparison are tested each time
    def test_side_by_side_and_the_same(self, run, drawn):
        seen = []
        found = stability(run, resamples=6, workers=2, on_unit=lambda *told: seen.append(told[1:]))
        assert found.refits.equals(drawn.refits)
        assert seen == [(done, 36) for done in range(6, 37, 6)]

    def test_one_process_at_a_time(self, run):
        with hold(run), pytest.raises(RunFolderError, match="Another process is working on run"):
            stability(run, resamples=1, workers=1)

    def test_a_study_that_is_not_finished(self, run):
        next((run / "choices").iterdir()).unlink()
        message = r"run is not finished: it has 6 of 6 trials and 1 of 2 choices. Continue with rekka compare --resume run"
        with pytest.raises(RunFolderError, match=message):
            stability(run, resamples=1, workers=1)
        with pytest.raises(RunFolderError, match="is not finished"):
            stability(rekka.load_study(run), resamples=1, workers=1)
        assert not (run / "stability").exists()

    def test_no_run_folder(self, tmp_path):
        with pytest.raises(RunFolderError, match="There is no run folder nowhere"):
            stability(tmp_path / "nowhere")
        with pytest.raises(RunFolderError, match="is not a run folder"):
            stability(tmp_path)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ["boot"]}, "kinds is 'boot'; it can be bootstrap, splits, seeds. Did you mean bootstrap?"),
        ({"kinds": "splits"}, "kinds is the text 'splits'; a list of names is needed"),
        ({"kinds": []}, "kinds is empty"),
        ({"resamples": 0}, "resamples is 0; a whole number of at least 1 is needed"),
        ({"resamples": 2.5}, "resamples is 2.5"),
        ({"resamples": True}, "resamples is True"),
        ({"seed": -1}, "seed is -1; a whole number of at least 0 is needed"),
        ({"cases": ["Peer"]}, "There is no component 'Peer'. Components there: Deck slab, Pier. Did you mean Pier?"),
        ({"cases": []}, "cases is empty"),
        ({"workers": 0}, "workers is 0"),
    ],
)  # fmt: skip
def test_options_that_mean_nothing(study, options, message):
    with pytest.raises(BadOption) as caught:
        stability(study, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(("certified", "n"), [(0, 5), (3, 7), (200, 200), (199, 200), (1, 1)])
def test_wilson_is_scipy_s(certified, n):
    theirs = stats.binomtest(certified, n).proportion_ci(method="wilson")
    assert find_wilson(certified / n, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_levels():
    assert find_levels([-3.0]) == (1, 0.0)
    assert find_levels([-3.0, -3.001, -3.002]) == (1, pytest.approx(0.002))
    assert find_levels([-10.0, -3.0, -3.005, -7.0]) == (3, 7.0)


class TestRemarks:
    def pretend(self, drawn: Stability, kind: str, chosen: list[str | None], **columns: Any) -> str:
        """What is said if Pier's draws had chosen so."""
        rows = drawn.refits.filter(case="Pier", kind=kind).with_columns(
            chosen=pl.struct("draw", "method").map_elements(
                lambda row: chosen[row["draw"]] == row["method"], return_dtype=pl.Boolean
            ),
            **columns,
        )
        return " ".join(dataclasses.replace(drawn, refits=rows.select(list(SCHEMA))).remarks())

    def test_a_choice_that_most_draws_do_not_make(self, drawn):
        mine = drawn.study.choice("Pier").chosen
        other = "boxcox" if mine != "boxcox" else "zscore"
        said = self.pretend(drawn, "bootstrap", [mine, None, other, other, other, mine])
        message = f"bootstrap: what the study chose is chosen in fewer than half of the draws: Pier ({mine} 33%, {other} 50%)"
        assert message in said

    def test_one_model_under_two_names_is_one_choice(self, drawn):
        assert drawn.study.choice("Pier").chosen in ("zscore", "boxcox")
        mine = drawn.study.choice("Pier").chosen
        names = ["max", "zscore"] * 3 if mine == "zscore" else ["boxcox"] * 6
        said = self.pretend(drawn, "splits", names)
        assert "splits: what the study chose is chosen in at least 100% of the draws (Pier)" in said

    def test_a_start_that_changes_the_choice(self, drawn):
        said = self.pretend(drawn, "seeds", ["zscore", "zscore", "boxcox", "zscore", "zscore", None])
        message = "seeds: the start alone changes what is chosen, by the evaluations it takes: Pier (zscore 67%, boxcox 17%, nothing 17%)"
        assert message in said

    def test_fits_that_are_seldom_certified(self, drawn):
        half = pl.col("draw") < 3
        said = self.pretend(drawn, "splits", ["zscore"] * 6, certified=half, status=pl.when(half).then(pl.lit("certified")).otherwise(pl.lit("solver failed")))  # fmt: skip
        message = "splits: a maximum reached in fewer than 90% of the draws: Pier (max, zscore, boxcox 50%); most of the others: solver failed"
        assert message in said

    def test_of_very_many_cases_the_first(self, drawn):
        rows = drawn.refits.filter(case="Pier", kind="splits").with_columns(certified=False)
        many = pl.concat([rows.with_columns(case=pl.lit(f"Case {number}")) for number in range(8)])
        study = dataclasses.replace(
            drawn.study,
            choices=tuple(
                drawn.study.choice("Pier").model_copy(update={"case": f"Case {number}"}) for number in range(8)
            ),
        )
        said = " ".join(dataclasses.replace(drawn, study=study, refits=many).remarks())
        assert "Case 5 (max, zscore, boxcox 0%); and 2 others" in said


def test_tables_are_plain_data(drawn):
    assert repr(drawn) == "<Stability: 108 refits of 2 cases: bootstrap, splits, seeds>"
    assert list(drawn.tables()) == ["cases", "selection", "methods", "statuses", "refits"]
    for table in drawn.tables().values():
        json.dumps(table.to_dicts(), allow_nan=False)
    assert drawn.statuses["refits"].sum() == len(drawn.refits) == 108
    assert drawn.methods["certified_low"].is_between(0, 1).all()
    assert (drawn.methods["certified_low"] <= drawn.methods["certified"]).all()
    assert (drawn.methods["certified_high"] >= drawn.methods["certified"] - 1e-12).all()
