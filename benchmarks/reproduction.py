"""The paper's figures and tables from a run, beside those it prints: ``python -m benchmarks.reproduction``.

The paper's study on the built-in inventory: its split, its four scalings, its rule (Pareto set of accuracy and
cost on the golden rows), once under its conditions (L-BFGS-B, numeric gradient, floored closed form) and once by
Newton on the exact likelihood. Then its conditions again from other starts, to see what one start can tell.

The run is stored in ``results/reproduction.json``. ``docs/reproduction.md`` and its pictures are written from that
file and from the paper's tables in ``src/rekka/verification/paper_trials.json``; ``--page`` writes them without a
run. No measured number stands in the page's source, and a sentence that draws a conclusion is checked against the
figures first (``claim``): where it no longer holds, no page is written.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import rekka
from benchmarks import configuration
from benchmarks.problems import SEED
from benchmarks.reproduction_figures import list_pictures
from benchmarks.reproduction_page import write_page
from benchmarks.reproduction_sides import BOXCOX, CASES, METHODS, STEADY, Row, Stored, list_sides
from benchmarks.reproduction_tables import tell_hypotheses, tell_methods, tell_selection
from rekka.report.charts.drawing import combine, draw_svg_file
from rekka.study.trial import Key

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "reproduction.json"
PAGE = ROOT / "docs" / "reproduction.md"
PICTURES = ROOT / "docs" / "figures"

REPEATS = 5  # timings of each trial
STARTS = 10  # of L-BFGS-B, besides the paper's seed


def run(repeats: int = REPEATS, starts: int = STARTS, tell: Callable[[str], None] = lambda _: None) -> Stored:
    """The study under both presets, and under the paper's from other starts; as plain data."""
    settings: Row = {"methods": METHODS, "partition": "paper", "rule": "pareto", "select_on": "golden"}
    tell("Both presets ...")
    study = rekka.compare(**settings, preset="both", repeats=repeats, seed=SEED)
    others = []
    for seed in range(SEED + 1, SEED + 1 + starts):
        tell(f"The paper's conditions from the start of seed {seed} ...")
        again = rekka.compare(**settings, preset="paper", seed=seed, cost=STEADY)
        others.append(
            {
                "seed": seed,
                **{name: dict(again.methods.select("method", name).rows()) for name in ("converged", "certified")},
                "selected": dict(again.selection.select("case", "selected").rows()),
                "failed": next(one.figures["failed"] for one in again.hypotheses if one.code == "H1"),
                "verdicts": {one.code: str(one.verdict) for one in again.hypotheses},
            }
        )
    return {
        "plan": {
            "scheme": study.scheme,
            "rule": "pareto",
            "select_on": "golden",
            "costs": study.plan.study.costs(),
        },
        "cases": [_describe_case(study, case) for case in CASES],
        "trials": [_plain(row) for row in study.trials.to_dicts()],
        "starts": others,
    }


def _describe_case(study: rekka.Study, case: str) -> Row:
    """Sizes and baselines of a case, and the exponents that Box-Cox has there with the ranges they come from."""
    sizes = study.cases.filter(case=case).row(0, named=True)
    scored = study.trials.filter(case=case).row(0, named=True)
    baselines = ("persistence_accuracy", "no_covariates_accuracy", "no_covariates_log_loss")
    text = study.read_fitted(Key(case=case, preset="paper", method=BOXCOX)).scaling
    fitted = {} if text is None else json.loads(text)["scaling"]
    columns = zip(*(fitted.get(name, ()) for name in ("names", "low", "high", "exponent")), strict=True)
    boxcox = {name: {"low": low, "high": high, "exponent": power} for name, low, high, power in columns}
    return _plain(sizes | {name: scored[name] for name in baselines} | {BOXCOX: boxcox})


def _plain(row: Mapping[str, Any]) -> Row:
    """No number that is none: JSON has no word for it."""
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}


def store_run(tell: Callable[[str], None]) -> None:
    """Run the study and store it with its configuration."""
    setting = configuration.describe(with_msm=False)
    setting["repeats"] = {"timings": REPEATS, "starts": STARTS}
    setting["load"] = os.getloadavg()[0]  # processes that wait for a core, ours not among them yet
    found = run(tell=tell)
    setting["source_unchanged"] = configuration.source_digest() == setting["source"]
    RESULT.write_text(json.dumps({"configuration": setting} | found, indent=1, allow_nan=False) + "\n")
    tell(f"Stored in {RESULT.relative_to(ROOT)}.")
    if not setting["source_unchanged"]:
        tell("The source was edited during this run: its figures belong to no one version. Run it again.")


def write_files(stored: Stored) -> list[Path]:
    """Write the page and its pictures."""
    pictures = list_pictures(stored)
    page = write_page(stored, pictures)
    PICTURES.mkdir(exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    files = [PAGE]
    for name, figure in pictures.items():
        (PICTURES / name).write_text(draw_svg_file(combine(figure)), encoding="utf-8")
        files.append(PICTURES / name)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, store, write the page; print its tables of methods, selection and hypotheses."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--page", action="store_true", help="write the page from the stored run, without a new one"
    )
    options = parser.parse_args(arguments)
    console = Console(width=max(120, Console().width), highlight=False)
    if not options.page:
        store_run(console.print)
    stored = json.loads(RESULT.read_text())
    sides = list_sides(stored)
    for text in (*tell_methods(sides), *tell_selection(*sides), *list(tell_hypotheses(stored, sides))[:2]):
        console.print(text, markup=False, soft_wrap=True)
        console.print()
    for file in write_files(stored):
        console.print(f"Written: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
