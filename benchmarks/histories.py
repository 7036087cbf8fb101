"""How fast are models of histories? ``python -m benchmarks.histories``.

Four parts: the public example of misclassified states beside R's msm in one run; Ontario's visits with errors,
improvements, trend and frailty; seconds of one evaluation by visits, states, nodes and elements; and the seconds
that compilation adds to the first fit. Times are processor seconds of one thread (``history_timing.py``). A part
whose data or rival is absent is left out, and that is said.

A run is stored in ``results/histories.json``; ``--only PART`` measures one part and keeps the others, ``--page``
writes the section "Speed" of docs/histories.md from the stored run. Exits with 1 if an aim is not met.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import configuration, history_timing, rival_msm
from benchmarks.aims import Aim, print_aims
from benchmarks.history_timing import choose_msm
from benchmarks.reproduction_words import put_section, show_range, table, wrap
from rekka.report.text import MISSING

RESULT = Path(__file__).with_name("results") / "histories.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "histories.md"
SECTION = "histories"
TIMES_MSM = 100.0
SECONDS, FRAILTY_SECONDS = 10.0, 30.0  # of a fit of Ontario's visits on one core
TIMES_COMPILATION = 2.0  # of the pair model's
LIKELIHOOD = 1e-6  # units of -2 log L by which we may be above the lowest of msm
Tell = Callable[[str], None]
Stored = Mapping[str, Any]


def measure_examples(with_msm: bool, tell: Tell) -> list[Any]:
    """The public example by rekka and msm."""
    found = history_timing.read_examples()
    if found is None:
        tell(f"../shared/reference/{history_timing.MISCLASSIFIED} is absent; the example beside msm is left out.")
        return []
    return list(history_timing.measure_examples(found, with_msm))


def measure_ontario(with_msm: bool, tell: Tell) -> list[Any]:
    """Fits of Ontario's visits."""
    fits = []
    for name, read in (
        (f"reference/{history_timing.CUT}", history_timing.read_cut),
        ("data/ontario", history_timing.read_ontario),
    ):
        found = read()
        if found is None:
            tell(f"../shared/{name} is absent; its fits are left out.")
            continue
        for fit in history_timing.measure_ontario(found):
            tell(f"{fit['table']}: {_name(fit)}: {_say_seconds(fit)}")
            fits.append(fit)
    return fits


def measure_evaluations(with_msm: bool, tell: Tell) -> list[Any]:
    """Seconds of an evaluation."""
    return list(history_timing.measure_evaluations())


def measure_compilation(with_msm: bool, tell: Tell) -> dict[str, Any]:
    """Seconds of the first fit and of a later one."""
    return history_timing.measure_compilation()


PARTS: Mapping[str, Callable[[bool, Tell], Any]] = {
    "examples": measure_examples,
    "ontario": measure_ontario,
    "evaluations": measure_evaluations,
    "compilation": measure_compilation,
}


def judge(stored: Stored) -> list[Aim]:
    """Every aim on the figures of a run."""
    return [
        *_judge_examples(stored["examples"]),
        *_judge_ontario(stored["ontario"]),
        _judge_compilation(stored["compilation"]),
    ]


def _judge_examples(examples: Sequence[Stored]) -> Iterator[Aim]:
    for one in examples:
        ours, theirs = one["rekka"], choose_msm(one["msm"])
        name = f"{one['model']}: {TIMES_MSM:g} times as fast as msm"
        if theirs is None:
            yield Aim(name, "not measured", None)
            continue
        times, call = theirs["seconds"] / ours["seconds"], theirs["call_seconds"] / ours["call_seconds"]
        figure = f"{times:.0f} times by our median, {call:.0f} the whole call; msm by {theirs['method']}"
        yield Aim(name, figure, times >= TIMES_MSM)
        lowest = min(rival["minus2"] for rival in one["msm"] if "minus2" in rival)
        gap = ours["minus2"] - lowest
        yield Aim(f"{one['model']}: -2 log L no higher than msm's", f"{gap:+.1e}", gap <= LIKELIHOOD)


def _judge_ontario(fits: Sequence[Stored]) -> Iterator[Aim]:
    for frailty, most in ((False, SECONDS), (True, FRAILTY_SECONDS)):
        asked = [fit for fit in fits if fit["frailty"] is frailty]
        own = [fit for fit in asked if "refused" not in fit]
        name = f"Ontario {'with' if frailty else 'without'} frailty: at most {most:g} s a fit, certified"
        if not own:
            yield Aim(name, "not measured", None)
            continue
        seconds = [fit["call_seconds"] for fit in own]
        certified = sum(fit["certified"] for fit in own)
        figure = f"{show_range(seconds, _one)} s, {certified} of {len(own)} certified"
        figure += f", {len(asked) - len(own)} refused" if len(asked) > len(own) else ""
        yield Aim(name, figure, max(seconds) <= most and certified == len(own))


def _judge_compilation(found: Stored) -> Aim:
    name = f"compilation at most {TIMES_COMPILATION:g} times that of the pair model"
    if not found:
        return Aim(name, "not measured", None)
    pairs, histories = (compile_seconds(found[kind]) for kind in ("pairs", "histories"))
    figure = f"{histories:.1f} s against {pairs:.1f} s: {histories / pairs:.2f} times"
    return Aim(name, figure, histories <= TIMES_COMPILATION * pairs)


def compile_seconds(one: Stored) -> float:
    """Processor seconds that an empty cache adds to a process."""
    return float(one["first"]["processor"] - one["later"]["processor"])


def _one(value: float) -> str:
    return f"{value:.1f}"


def _say_seconds(fit: Stored) -> str:
    return "refused" if "refused" in fit else f"{fit['call_seconds']:.1f} s"


def _name(fit: Stored) -> str:
    return f"{fit['elements']}{', frailty' if fit['frailty'] else ''}"


def describe(stored: Stored) -> str:
    """The section of the page: fits beside msm, Ontario, evaluations, compilation, aims."""
    settings = stored["configurations"]
    used: dict[str, list[str]] = {}  # parts by the version that they were measured with
    for part, one in settings.items():
        used.setdefault(one["versions"]["rekka"], []).append(part)
    versions = "; ".join(
        f"{version} ({', '.join(parts)})" if len(used) > 1 else version for version, parts in used.items()
    )
    loads = show_range([one["load"] for one in settings.values()], _one)
    parts = [
        wrap(
            f"`python -m benchmarks.histories`, rekka {versions}, stored in "
            "[histories.json](../benchmarks/results/histories.json). Times are processor seconds of one thread "
            f"while others used the machine too: a load of {loads} on its {settings['evaluations']['cores']} "
            "cores, which lengthens short fits most."
        )
    ]
    for section in (_describe_examples, _describe_ontario, _describe_evaluations, _describe_compilation):
        parts += section(stored)
    aims = [aim for aim in judge(stored) if aim.met is not None]
    missed = [f"{aim.aim} ({aim.figure})" for aim in aims if not aim.met]
    parts.append(wrap(f"Aims not met: {'; '.join(missed)}." if missed else f"All {len(aims)} aims are met."))
    return "\n\n".join(parts)


def _describe_examples(stored: Stored) -> Iterator[str]:
    if not stored["examples"]:
        yield "The public example of misclassified states was not there to be fitted."
        return
    first = stored["examples"][0]
    yield wrap(
        f"The public example of misclassified states ({first['visits']:,} visits), true state 1 at time 0, beside "
        "R's msm in one run from hazards of .3 and errors of .1. The optimizer of rekka includes four starts "
        f"(median of {first['rekka']['repeats']} fits; msm's is the fastest of up to 3); whole calls include "
        "standard errors. The method of msm that counts is the fastest that converged near the lowest -2 log L "
        "of any."
    )
    header = ("model", "program", "-2 log L", "optimizer, s", "whole call, s", "ratio", "ratio of calls")
    yield table(header, [row for one in stored["examples"] for row in _compare(one)])


def _compare(one: Stored) -> Iterator[tuple[str, ...]]:
    ours = one["rekka"]
    counts = choose_msm(one["msm"])
    figures = f"{ours['minus2']:.6f}", f"{ours['seconds']:.3f}", f"{ours['call_seconds']:.3f}"
    yield (one["model"], "rekka", *figures, MISSING, MISSING)
    for rival in one["msm"]:
        if "minus2" not in rival:
            yield (one["model"], f"msm, {rival['method']}: {rival['note']}", *([MISSING] * 5))
            continue
        name = f"msm, {rival['method']}{' (counts)' if rival is counts else ''}"
        times = (f"{rival[key] / ours[key]:.0f}" for key in ("seconds", "call_seconds"))
        yield (
            one["model"],
            name,
            f"{rival['minus2']:.6f}",
            f"{rival['seconds']:.2f}",
            f"{rival['call_seconds']:.2f}",
            *times,
        )


def _describe_ontario(stored: Stored) -> Iterator[str]:
    if not stored["ontario"]:
        yield "Ontario's visits were not there to be fitted."
        return
    yield wrap("Fits of Ontario's visits, K = 5, starts, Hessian and certificate included:")
    header = ("table", "visits", "elements", "s", "evaluations", "nodes, at least", "-2 log L", "certified")
    rows = [(fit["table"], f"{fit['visits']:,}", _name(fit), *_cells(fit)) for fit in stored["ontario"]]
    yield table(header, rows)


def _cells(fit: Stored) -> tuple[object, ...]:
    """Cells of a fit from its seconds on."""
    if "refused" in fit:
        return (*([MISSING] * 4), f"refused: {fit['refused']}")
    reason = "yes" if fit["certified"] else "; ".join(fit["reasons"])
    return _one(fit["call_seconds"]), fit["evaluations"], fit["nodes"], f"{fit['minus2']:.3f}", reason


def _describe_evaluations(stored: Stored) -> Iterator[str]:
    cells = stored["evaluations"]
    sizes = sorted({cell["visits"] for cell in cells})
    yield wrap(
        "Milliseconds of one value with its exact gradient, simulated bridges of "
        f"{history_timing.VISITS_A_BRIDGE} visits {history_timing.GAP:g} years apart. Nodes are those used: "
        "eps doubles every whole number of them, so that they can be more than asked for."
    )
    keys = dict.fromkeys((cell["elements"], cell["n_states"], cell["nodes"]) for cell in cells)
    seconds = {(c["elements"], c["n_states"], c["nodes"], c["visits"]): c["seconds"] for c in cells}
    rows = [(*key, *(_show_milliseconds(seconds.get((*key, size))) for size in sizes)) for key in keys]
    yield table(("elements", "K", "nodes", *(f"{size:,} visits" for size in sizes)), rows)


def _show_milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return MISSING
    return f"{1000 * seconds:,.0f}" if seconds >= 0.1 else f"{1000 * seconds:.3g}"


def _describe_compilation(stored: Stored) -> Iterator[str]:
    found = stored["compilation"]
    yield wrap("Seconds of a process that fits 300 rows, from its start to its end:")
    rows = [
        (
            name,
            *(_one(found[kind][when]["processor"]) for when in ("first", "later")),
            _one(compile_seconds(found[kind])),
        )
        for kind, name in (("pairs", "pair model"), ("histories", "model of histories"))
    ]
    yield table(("", "nothing compiled yet", "compiled before", "compilation"), rows)


def store(found: Mapping[str, Any], setting: dict[str, object], file: Path = RESULT) -> dict[str, Any]:
    """Put measured parts beside those stored before, each with its configuration and the load when it ended."""
    setting = setting | {"source_unchanged": configuration.source_digest() == setting["source"]}
    setting |= {"load": os.getloadavg()[0]}
    before: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    settings = before.get("configurations", {}) | dict.fromkeys(found, setting)
    stored = {part: [] for part in PARTS} | before | found | {"configurations": settings}
    stored["aims"] = [asdict(aim) for aim in judge(stored)]
    file.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
    return stored


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge, store; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.histories",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=PARTS, help="measure this part and keep the others as stored")
    parser.add_argument("--page", action="store_true", help="write the page from the stored run; measure nothing")
    options = parser.parse_args(arguments)
    console = Console(width=max(120, Console().width), highlight=False)
    if options.page:
        stored = json.loads(RESULT.read_text())
        put_section(PAGE, SECTION, describe(stored))
    else:
        stored = _measure([options.only] if options.only else list(PARTS), console)
    aims = judge(stored)
    print_aims(aims, console)
    return 1 if any(aim.met is False for aim in aims) else 0


def _measure(parts: Sequence[str], console: Console) -> dict[str, Any]:
    missing = rival_msm.ensure_installed() if "examples" in parts else None
    if missing:
        console.print(f"{missing} Going on without it.")
    with_msm = "examples" in parts and missing is None
    stored: dict[str, Any] = {}
    for part in parts:
        setting = configuration.describe(with_msm)
        console.print(f"{part} ...")
        stored = store({part: PARTS[part](with_msm, console.print)}, setting)
    return stored


if __name__ == "__main__":
    sys.exit(main())
