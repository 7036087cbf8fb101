"""Do forecasts of Ontario's bridges come true? ``python -m benchmarks.ontario``.

The model is chosen and fitted on the visits of 2000 to 2008 (``rekka.backtest(models="auto", until=2008)``) and
forecasts every visit of 2009 to 2013 that no recorded repair precedes. Nothing is chosen on those years; every
look at them is written into the log of ``results/ontario.json``, with what was looked at. Covariates: age and the
logarithm of the length.

Two sets of visits are scored: all, and those before an unrecorded improvement by two ratings or more. Totals of
ratings 4 or worse are judged by whether the number found lies in the 95 % interval, year by year, and by the
interval score (Gneiting and Raftery 2007, lower is better), without and with the band of shared errors.

``--msm`` fits the errors alone once by R's msm (``ontario_msm.R``), for the time: many minutes. ``--page`` writes
the section of docs/forecasting.md from the stored run. Exits with 1 if an aim is not met.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console

import rekka
from benchmarks import configuration, rival_msm
from benchmarks.aims import Aim, print_aims
from benchmarks.problems import BANDS, CONDITIONS_FILE, ONTARIO_FOLDER
from benchmarks.reproduction_words import put_section, table, wrap
from rekka.core.errors import count_of
from rekka.data.transitions import Transitions
from rekka.evaluation.scores import mean_interval, score_interval
from rekka.fleet.rolling import describe_model
from rekka.report.text import MISSING

RESULT = Path(__file__).with_name("results") / "ontario.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "forecasting.md"
SCRIPT = Path(__file__).with_name("ontario_msm.R")
CUT = Path(__file__).resolve().parents[2] / "shared" / "reference" / "ontario_cut.csv"
SECTION = "ontario"
UNTIL = 2008
THRESHOLD = 4
COVARIATES = ("age_at_inspection_1", "log_length")
BEFORE, EVERY = "before an unrecorded improvement by two ratings or more", "all"
NARROW, WIDE = "prediction interval", "wider interval"
BANDS_OF_TOTALS = {
    NARROW: ("predicted_low", "predicted_high"),
    WIDE: ("predicted_shock_low", "predicted_shock_high"),
}
LEVEL = 0.95
AIMS = {BEFORE: 0.20, EVERY: 0.23}  # of the ranked probability score
Stored = Mapping[str, Any]


def read_records() -> Transitions | None:
    """Ontario's transitions with improvements of any size; None if the data are absent."""
    if not (ONTARIO_FOLDER / CONDITIONS_FILE).exists():
        return None
    panel = rekka.read_panel(
        ONTARIO_FOLDER / CONDITIONS_FILE,
        columns={
            "bridge": "ID",
            "completed": "YEAR BUILT",
            "length": "DECK LENGTH",
            "repairs": ["LAST MAJOR REHAB", "LAST MINOR REHAB"],
        },
        state={"bands": list(BANDS), "missing": [0]},
    )
    found = rekka.pair_visits(panel, upward="keep_all")
    frame = found.frame.with_columns(log_length=pl.col("bridge_length").log())
    return Transitions(frame, COVARIATES, found.audit, found.scale, found.notes, found.reading)


def forecast(records: Transitions, models: str, until: int, **more: Any) -> tuple[rekka.Backtest, float]:
    """Backtest, and the processor seconds it took."""
    clock = process_time()
    found = rekka.backtest(records, models=models, until=until, threshold=THRESHOLD, test_fit=False, **more)
    return found, process_time() - clock


def split_visits(forecasts: pl.DataFrame) -> dict[str, np.ndarray]:
    """Mask of the visits of each set, in the order of the table."""
    keys = ["bridge_id", "origin_date"]
    before = pl.col("observed").shift().over(keys, order_by="date").fill_null(pl.col("state"))
    far = forecasts.select((pl.col("observed") < before - 1).cum_max().over(keys, order_by="date")).to_series()
    return {EVERY: np.ones(len(far), dtype=bool), BEFORE: ~far.to_numpy()}


def score_visits(forecasts: pl.DataFrame) -> pl.DataFrame:
    """Ranked probability scores of the model and of no change, visit by visit."""
    p = forecasts.select(pl.col("^p_\\d+$")).to_numpy()
    end, start = (forecasts[name].to_numpy()[:, None] for name in ("observed", "state"))
    states = np.arange(1, p.shape[1] + 1)
    scores = {"model": p.cumsum(axis=1), "no change": (start <= states).astype(float)}
    return forecasts.select("bridge_id").with_columns(
        pl.Series(name, np.square(below - (end <= states)).sum(axis=1)) for name, below in scores.items()
    )


def describe_scores(forecasts: pl.DataFrame) -> dict[str, Any]:
    """Means of both sets, with the interval of the difference by bridge."""
    scores, found = score_visits(forecasts), {}
    for name, mask in split_visits(forecasts).items():
        some = scores.filter(pl.Series(mask))
        less = mean_interval((some["model"] - some["no change"]).to_numpy(), some["bridge_id"].to_numpy())
        found[name] = {
            "visits": len(some),
            "model": some["model"].mean(),
            "no change": some["no change"].mean(),
            "difference": [less.mean, less.low, less.high],
        }
    return found


def describe_totals(totals: pl.DataFrame) -> list[dict[str, Any]]:
    """Found and expected at the threshold or worse, year by year, with the bands."""
    years = totals.filter(pl.col("by") == "year", "or_worse")
    ends = [end for band in BANDS_OF_TOTALS.values() for end in band if end in years.columns]
    return years.select("group", "visits", "observed", "expected", *ends).rename({"group": "year"}).to_dicts()


def judge_bands(years: Sequence[Stored]) -> dict[str, dict[str, float]]:
    """Years in which the number found is inside, and the mean interval score, of each band."""
    found = {}
    for name, (low, high) in BANDS_OF_TOTALS.items():
        rows = [(year[low], year[high], year["observed"]) for year in years if year.get(low) is not None]
        if rows:
            scores = [score_interval(low, high, seen, LEVEL) for low, high, seen in rows]
            inside = sum(low <= seen <= high for low, high, seen in rows)
            found[name] = {"inside": inside, "years": len(rows), "score": float(np.mean(scores))}
    return found


def measure(records: Transitions, console: Console) -> dict[str, Any]:
    """Choose, forecast, look once; the plain model beside it."""
    shown: dict[str, Any] = {}
    for models in ("auto", "plain"):
        found, seconds = forecast(records, models, UNTIL, shocks=True)
        case = found.cases.row(0, named=True)
        console.print(f"{models}: {seconds:.0f} s of the processor")
        console.print(case["summary"])
        totals = describe_totals(found.totals)
        shown[models] = {
            "model": case["model"],
            "certified": case["certified"],
            "seconds": seconds,
            "summary": case["summary"],
            "scores": describe_scores(found.forecasts),
            "totals": totals,
            "bands": judge_bands(totals),
            "tried": found.models.drop("case").to_dicts(),
        }
    return shown


def compare_windows(records: Transitions) -> list[dict[str, Any]]:
    """Half-lives and recent years compared in the years up to UNTIL, for the plain model and the chosen one."""
    known = records.frame.filter(pl.col("date_2").dt.year() <= UNTIL)
    rows = []
    for model in ("plain", "improvements+trend"):
        fits = rekka.fit_components(
            Transitions(known, COVARIATES, None, records.scale, ()),
            models=[model],
            half_life="auto",
            since="auto",
            test_fit=False,
        )
        choice = fits.components[0].choice
        assert choice is not None  # one of these models
        rows += choice.tried.filter(pl.col("model").str.starts_with(f"{model}@")).to_dicts()
    return rows


def judge(stored: Stored) -> list[Aim]:
    """Scores below the aims, and shown to be better than no change."""
    scores = stored["auto"]["scores"]
    aims = [
        Aim(f"ranked probability score below {most:.2f}, visits {name}", f"{scores[name]['model']:.4f}",
            scores[name]["model"] < most)
        for name, most in AIMS.items()
    ]  # fmt: skip
    low, high = scores[EVERY]["difference"][1:]
    aims.append(Aim("shown to be better than no change", f"{low:+.4f} to {high:+.4f}", high < 0))
    return aims


def describe(stored: Stored) -> str:
    """Section of the page."""
    chosen, plain = stored["auto"], stored["plain"]
    model = describe_model(chosen["model"])
    tried = [
        (
            ("" if row["than"] is None else "+ ") + describe_model(row["model"]),
            MISSING if row["than"] is None else describe_model(row["than"]),
            _four(row["rps"]),
            MISSING if row["low"] is None else f"{row['low']:+.4f} to {row['high']:+.4f}",
            "kept" if row["kept"] else row["reason"] or "better, another more so",
        )
        for row in chosen["tried"]
    ]
    scores = [
        (name, f"{one['visits']:,}", _four(one["model"]), _four(plain["scores"][name]["model"]),
         _four(one["no change"]), f"{one['difference'][1]:+.4f} to {one['difference'][2]:+.4f}")
        for name, one in chosen["scores"].items()
    ]  # fmt: skip
    years = [
        (year["year"], f"{year['visits']:,}", f"{year['observed']:,}", f"{year['expected']:,.0f}",
         *(_ends(year, band) for band in BANDS_OF_TOTALS.values()), f"{other['expected']:,.0f}")
        for year, other in zip(chosen["totals"], plain["totals"], strict=True)
    ]  # fmt: skip
    bands = [
        (who, name, f"{one['inside']} of {one['years']}", f"{one['score']:,.0f}")
        for who, part in ((model, chosen), ("plain", plain))
        for name, one in part["bands"].items()
    ]
    windows = [
        (describe_model(row["model"]), _four(row["rps"]), f"{row['low']:+.4f} to {row['high']:+.4f}",
         row["reason"] or "better")
        for row in stored["windows"]
    ]  # fmt: skip
    msm = stored.get("msm")
    took = f"The whole choice and its test took {chosen['seconds']:.0f} s of the processor"
    if msm:
        took += f"; one fit of errors alone, without covariates, by R's msm {msm['seconds']:,.0f} s"
    looks = len(stored["looks"])
    return "\n\n".join(
        [
            wrap(
                "`python -m benchmarks.ontario`, stored in [ontario.json](../benchmarks/results/ontario.json). "
                f"{took}. No choice used the years after {UNTIL}, but they were looked at "
                f"{count_of(looks, 'time')} while rekka was developed; the file lists each look."
            ),
            f"Chosen on visits up to {UNTIL}, from days inside these years:",
            table(("model", "compared with", "RPS", "difference", "verdict"), tried),
            f"Recent records alone, compared alike up to {UNTIL} with the same model fitted to all of them:",
            table(("model", "RPS", "difference", "verdict"), windows),
            f"Visits of {UNTIL + 1} to 2013, which no choice has seen (ranked probability score):",
            table(("visits", "number", model, "plain", "no change", "difference from no change"), scores),
            f"Visits rated {THRESHOLD} or worse, found and expected, with 95 % intervals:",
            table(("year", "visits", "found", "expected", *BANDS_OF_TOTALS, "plain model expected"), years),
            table(("model", "interval", "years inside", "mean interval score"), bands),
        ]
    )


def _four(value: float | None) -> str:
    return MISSING if value is None else f"{value:.4f}"


def _ends(year: Stored, band: tuple[str, str]) -> str:
    low, high = (year.get(end) for end in band)
    return MISSING if low is None else f"{low:,} to {high:,}"


def fit_msm() -> dict[str, Any] | None:
    """One fit of the errors alone by msm; None where R, msm or the visits are absent."""
    if rival_msm.ensure_installed() or not CUT.exists():
        return None
    done = subprocess.run(["Rscript", str(SCRIPT), str(CUT)], capture_output=True, text=True, check=True)
    return read_msm(done.stdout)


def read_msm(output: str) -> dict[str, Any]:
    """Figures that the R script has printed."""
    return {key: float(value) for key, value in (line.split() for line in output.splitlines())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose, look, print, judge, store; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ontario",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--msm", action="store_true", help="time one fit by msm, and nothing else")
    parser.add_argument("--windows", action="store_true", help="compare half-lives and recent years, up to 2008")
    parser.add_argument("--page", action="store_true", help="write the page from the stored run; look at nothing")
    options = parser.parse_args(arguments)
    console = Console(width=max(120, Console().width), highlight=False)
    stored: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {"looks": []}
    records = None if options.msm or options.page else read_records()
    if options.msm:
        stored["msm"] = fit_msm()
    elif not options.page and records is None:
        console.print("The records of Ontario's bridges are absent; nothing was measured.")
        return 0
    elif options.windows and records is not None:
        stored["windows"] = compare_windows(records)
    elif records is not None:
        setting = configuration.describe(with_msm=False)
        stored |= measure(records, console)
        look = {"date": setting["date"], "version": rekka.__version__, "commit": setting["commit"]}
        scores = {name: one["model"] for name, one in stored["auto"]["scores"].items()}
        stored["looks"].append(look | {"model": stored["auto"]["model"], "rps": scores})
        stored["configuration"] = setting
    RESULT.write_text(json.dumps(stored, indent=1, default=str) + "\n")
    if options.page:
        put_section(PAGE, SECTION, describe(stored))
    aims = judge(stored)
    print_aims(aims, console)
    return 1 if any(aim.met is False for aim in aims) else 0


if __name__ == "__main__":
    sys.exit(main())
