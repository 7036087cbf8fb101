"""Tables and findings of docs/families.md, from the stored trials of ``benchmarks.families``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, median

from rich.console import Console

from benchmarks.families import ERRORS, SETTINGS, Record, Setting
from benchmarks.reproduction_sides import AFFINE, BOXCOX, METHODS, NAMES
from benchmarks.reproduction_words import bullets, claim, put_section, show_range, table, wrap
from rekka.model.history_fit import SMALL
from rekka.report.text import MISSING

PAGE = Path(__file__).resolve().parents[1] / "docs" / "families.md"
ZSCORE = "zscore"
ANSWER, TABLES = "families_answer", "families"  # sections of the page
CLOSE = 0.1  # log-likelihood units below a certified maximum that count as there
RESOLUTION = 1e-6  # of stored log-likelihoods
HIGHER = 1e-3  # log-likelihood units above a certified fit that are no rounding error
Stored = Mapping[str, Mapping[tuple[str, str], Record]]


@dataclass(frozen=True, eq=False)
class Cell:
    """Trials of some settings under some scalings."""

    records: Sequence[Record]

    @cached_property
    def tried(self) -> list[Record]:
        """Trials that the paper's optimizer was given; those whose scaling failed count."""
        return [one for one in self.records if one["failure"] or one["paper"]]

    @cached_property
    def runs(self) -> list[Record]:
        """Trials in which it ran."""
        return [one for one in self.records if one["paper"]]

    @cached_property
    def fitted(self) -> list[Record]:
        """Trials that rekka fitted."""
        return [one for one in self.records if one["ours"]]

    @cached_property
    def certified(self) -> list[Record]:
        """Trials that rekka certified."""
        return [one for one in self.fitted if one["ours"]["certified"]]

    @cached_property
    def converged(self) -> list[Record]:
        """Trials in which the paper's optimizer converged by its definition."""
        return [one for one in self.runs if one["paper"]["converged"]]

    @cached_property
    def known(self) -> list[Record]:
        """Trials whose maximum is certified and in which the paper's optimizer ran."""
        return [one for one in self.certified if one["paper"]]

    @cached_property
    def near(self) -> list[Record]:
        """Those of them in which it ended at most CLOSE below."""
        return [one for one in self.known if gap(one) <= CLOSE]

    @cached_property
    def false(self) -> list[Record]:
        """Trials that converged by the paper's definition, more than CLOSE below the certified maximum."""
        return [one for one in self.known if one["paper"]["converged"] and one not in self.near]

    @cached_property
    def higher(self) -> list[Record]:
        """Trials in which the paper's optimizer ended above a certified fit."""
        return [one for one in self.near if gap(one) < -HIGHER]

    def middle(self, who: str, what: str) -> float | None:
        """Median of a figure over the trials that were run."""
        values = [one[who][what] for one in (self.runs if who == "paper" else self.fitted)]
        return median(values) if values else None

    def log_loss(self, who: str, cases: Collection[str]) -> float | None:
        """Mean log loss of golden rows over trials of these cases that converged, or were certified."""
        some = self.converged if who == "paper" else self.certified
        values = [
            one[who]["log_loss"] for one in some if one["case"] in cases and one[who]["log_loss"] is not None
        ]
        return mean(values) if values else None


def gap(record: Record) -> float:
    """Units of log L from where the paper's optimizer ended to rekka's fit; infinite where it has no value."""
    found = record["paper"]["shortfall"]
    return float("inf") if found is None else float(found)


def pick(stored: Stored, settings: Sequence[Setting], methods: Sequence[str] = METHODS) -> Cell:
    """Trials of settings under some scalings."""
    return Cell(
        [one for setting in settings for (_, method), one in stored[setting.name].items() if method in methods]
    )


PLAIN = [setting for setting in SETTINGS if not setting.drawn]  # on the inventory of the paper's study
REFERENCE, OTHERS = PLAIN[0], PLAIN[1:]
DRAWN = [setting for setting in SETTINGS if setting.drawn]

HEADER = (
    "hazards",
    "scaling",
    "converged",
    f"within {CLOSE:g}",
    "evaluations",
    "s",
    "log loss",
    "rekka: certified",
    "evaluations",
    "s",
    "log loss",
)


def tabulate(stored: Stored, settings: Sequence[Setting]) -> list[tuple[str, ...]]:
    """Rows of the table of some settings, under HEADER."""
    found = []
    for setting in settings:
        cells = {method: pick(stored, [setting], [method]) for method in METHODS}
        shared = set.intersection(*({one["case"] for one in cell.certified} for cell in cells.values()))
        found += [
            (setting.name, NAMES[method], *_show(cell, shared)) for method, cell in cells.items() if cell.records
        ]
    return found


def _show(cell: Cell, shared: Collection[str]) -> tuple[str, ...]:
    return (
        f"{len(cell.converged)} of {len(cell.tried)}" if cell.tried else MISSING,
        f"{len(cell.near)} of {len(cell.known)}" if cell.tried else MISSING,
        _whole(cell.middle("paper", "evaluations")),
        _short(cell.middle("paper", "seconds")),
        _short(cell.log_loss("paper", shared)),
        f"{len(cell.certified)} of {len(cell.records)}",
        _whole(cell.middle("ours", "evaluations")),
        _short(cell.middle("ours", "seconds")),
        _short(cell.log_loss("ours", shared)),
    )


STOPS = (
    "scaling",
    f"within {CLOSE:g}, success",
    f"within {CLOSE:g}, no success",
    "further below, success",
    "iteration limit",
    "line search failed",
    "no scaling",
    "no certified maximum",
    "gaps of successes: median",
    "largest",
    "golden rows at the floor",
)


def count_stops(stored: Stored, settings: Sequence[Setting]) -> list[tuple[str, ...]]:
    """Where the paper's optimizer stopped, by scaling, under STOPS; every trial is in one of the counts."""
    found = []
    for method in METHODS:
        cell = pick(stored, settings, [method])
        if not cell.tried:
            continue
        near = [one["paper"]["success"] for one in cell.near]
        rest = [one["paper"] for one in cell.known if one not in cell.near]
        failed = [one["message"] for one in rest if not one["success"]]
        limit = sum("ITERATIONS" in message for message in failed)
        gaps = sorted(gap(one) for one in cell.known if one["paper"]["success"])
        floor = sum(one["paper"]["at_floor"] or 0 for one in cell.converged)
        counts = (
            sum(near),
            len(near) - sum(near),
            len(rest) - len(failed),
            limit,
            len(failed) - limit,
            len(cell.tried) - len(cell.runs),
            len(cell.runs) - len(cell.known),
        )
        ends = (show_gap(median(gaps)), show_gap(gaps[-1])) if gaps else (MISSING, MISSING)
        found.append((NAMES[method], *map(str, counts), *ends, f"{floor:,}"))
    return found


def show_gap(value: float) -> str:
    """'3e-05', '0.7', '12,345' units of log-likelihood."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1g}"


ESTIMATES = (
    "hazards",
    "parameter",
    "drawn with",
    "certified",
    "0 at the maximum",
    "estimates",
    "median standard error",
)


def tabulate_elements(stored: Stored) -> Iterator[tuple[str, ...]]:
    """Rows under ESTIMATES: what the certified fits by z-score say of errors and frailty."""
    for setting in SETTINGS:
        cell = pick(stored, [setting], [ZSCORE])
        names = dict.fromkeys(name for one in cell.certified for name in one["ours"]["estimates"])
        for name in names:
            own = [one["ours"]["estimates"][name] for one in cell.certified]
            inside = [one for one in own if one[1] is not None]
            errors = [error for _, error in inside]
            drawn = ", ".join(f"{value:g}" for value in setting.drawn.values()) or "0"
            yield (
                setting.name,
                name,
                drawn if "error" not in setting.drawn else f"{setting.drawn['error'] / 2:g}",
                f"{len(cell.certified)} of {len(cell.records)}",
                str(len(own) - len(inside)),
                show_range([value for value, _ in inside], "{:.3f}".format) if inside else MISSING,
                f"{median(errors):.3f}" if errors else MISSING,
            )


def describe_answer(stored: Stored) -> str:
    """The answer in a paragraph, then what is new beside the paper's question."""
    of = {method: pick(stored, OTHERS, [method]) for method in METHODS}
    base = {method: pick(stored, [REFERENCE], [method]) for method in METHODS}
    affine, slow = pick(stored, OTHERS, AFFINE), pick(stored, OTHERS, [m for m in AFFINE if m != ZSCORE])
    times = (slow.middle("paper", "evaluations") or 0.0) / (of[ZSCORE].middle("paper", "evaluations") or 1.0)
    certified = {len(cell.certified) for cell in of.values()}
    lead = " ".join(
        [
            claim(
                len(of[ZSCORE].near) == len(of[ZSCORE].known) and times > 2,
                "**Yes.** With ageing inside the interval (Gompertz, Weibull), errors of inspection or frailty, "
                "the paper's optimizer reaches the certified maximum from z-scores in "
                f"{_of(of[ZSCORE].near, of[ZSCORE].known)} trials that have one (exponential hazards: "
                f"{_of(base[ZSCORE].near, base[ZSCORE].known)}), from max and min-max in "
                f"{_of(slow.near, slow.known)} with {times:.1f} times as many evaluations,",
            ),
            claim(
                len(of[BOXCOX].near) <= len(of[BOXCOX].known) / 4,
                f"and from plain Box-Cox in {_of(of[BOXCOX].near, of[BOXCOX].known)} (exponential: "
                f"{_of(base[BOXCOX].near, base[BOXCOX].known)}).",
            ),
            claim(
                max(certified) - min(certified) <= 2,
                "By Newton's method the scaling does not decide whether a fit converges: rekka certifies "
                f"{show_range(sorted(certified))} of {len(of[ZSCORE].records)} trials under each of the four, and "
                f"max, min-max and z-score agree in log L to {show_agreement(stored, PLAIN)}.",
            ),
            claim(
                len(affine.false) == 0,
                "Where the paper's optimizer reports success from an affine scaling and there is a certified "
                f"maximum, it is within {CLOSE:g} of it.",
            ),
        ]
    )
    return "\n\n".join([wrap(lead), *bullets(_answer_elements(stored))])


def _answer_elements(stored: Stored) -> Iterator[str]:
    """What one pair of visits for each member says of errors and of frailty, and what histories say."""
    errors, visits, frailty, single, all_visits = (pick(stored, [setting]) for setting in DRAWN)
    yield (
        "**One pair of visits a member does not identify errors of inspection; all visits do.** On an inventory "
        f"drawn with errors, one pair gives a certificate in {_of(errors.certified, errors.records)} trials, but "
        f"in {_of(_bounded(errors), errors.certified)} of these one of the two probabilities of an error is 0 "
        "(in truth 0.05): either of them explains an improvement, and every other error looks like deterioration. "
        f"All visits up to the fourth are certified in {_of(visits.certified, visits.records)}, with a 0 in "
        f"{_of(_bounded(visits), visits.certified)}."
    )
    cell = pick(stored, [setting for setting in DRAWN if setting.options == ERRORS])
    by = f", by {show_range([-gap(one) for one in cell.higher], show_gap)} units" if cell.higher else ""
    yield (
        "**With errors the likelihood has several maxima**, from visits too. In tables of up to "
        f"{SMALL:,} rows rekka therefore looks for others around the one it found. In "
        f"{_of(cell.higher, cell.known)} certified trials the paper's optimizer ended above the certified "
        f"point{by}; in {len(cell.false)} it reported success more than {CLOSE:g} below."
    )
    yield (
        "**A frailty is identified by one pair of visits a member if bridges have several members.** Drawn with a "
        f"variance of 0.5, it is certified in {_tell_frailty(frailty)}; from one row a bridge in "
        f"{_tell_frailty(single)}; from all visits in {_tell_frailty(all_visits)}."
    )


def _tell_frailty(cell: Cell) -> str:
    """'36 of 40 trials (0 in none of them, median standard error 0.19)'."""
    found = [
        error for one in cell.certified for _, error in one["ours"]["estimates"].values() if error is not None
    ]
    error = f"{median(found):.2f}" if found else MISSING
    zeros = len(_bounded(cell)) or "none"
    return f"{_of(cell.certified, cell.records)} trials (0 in {zeros} of them, median standard error {error})"


def _bounded(cell: Cell) -> list[Record]:
    """Certified trials with a parameter of 0."""
    return [one for one in cell.certified if one["ours"]["boundaries"]]


def _of(some: Sequence[object], every: Sequence[object]) -> str:
    return f"{len(some)} of {len(every)}"


def show_agreement(stored: Stored, settings: Sequence[Setting]) -> str:
    """The largest difference in log L of certified fits of a case by the three affine scalings."""
    gaps = [0.0]
    for setting in settings:
        values: dict[str, list[float]] = {}
        for (case, method), one in stored[setting.name].items():
            if method in AFFINE and one["ours"] and one["ours"]["certified"]:
                values.setdefault(case, []).append(one["ours"]["log_likelihood"])
        gaps += [max(own) - min(own) for own in values.values()]
    return f"{max(RESOLUTION, *gaps):.0e}"


def describe_tables(stored: Stored) -> str:
    """The tables, each with what its columns are."""
    everything = pick(stored, SETTINGS)
    parts = [
        "### On the inventory of the paper's study",
        table(HEADER, tabulate(stored, PLAIN)),
        "### On inventories drawn with errors of inspection, and with frailty",
        table(HEADER, tabulate(stored, DRAWN)),
        "### Where the paper's optimizer stopped",
        wrap("All trials of the first table by scaling, then those of the second:"),
        table(STOPS, count_stops(stored, PLAIN)),
        table(STOPS, count_stops(stored, DRAWN)),
        "### What is identified",
        wrap("Certified fits by z-score of the ten cases:"),
        table(ESTIMATES, tabulate_elements(stored)),
        *_tell_higher(everything),
    ]
    return "\n\n".join(parts)


def _tell_higher(cell: Cell) -> Iterator[str]:
    """Trials in which the paper's optimizer found a higher point than a certified one, or than one that is not."""
    if cell.higher:
        most = min(cell.higher, key=gap)
        names = sorted({one["setting"] for one in cell.higher})
        yield wrap(
            f"In {len(cell.higher)} of {len(cell.known)} trials the paper's optimizer ended above a certified "
            f"fit, by up to {-gap(most):.2g} units ({most['case']}, {NAMES[most['method']]}, "
            f"{most['setting']}): such a fit is only a local maximum, the likelihood is higher elsewhere, or "
            f"rises for ever. They are of: {'; '.join(names)}."
        )
    above = [one for one in cell.runs if one not in cell.known and gap(one) < -HIGHER]
    if above:
        yield wrap(
            f"In {len(above)} of {len(cell.runs) - len(cell.known)} trials without a certificate it ended above "
            f"the point that rekka reports, by up to {-min(map(gap, above)):.2g} units."
        )


def _whole(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def _short(value: float | None) -> str:
    """Three digits."""
    return MISSING if value is None else f"{value:#.3g}".rstrip(".")


def describe(stored: Stored) -> dict[str, str]:
    """Text of each section of the page."""
    return {ANSWER: describe_answer(stored), TABLES: describe_tables(stored)}


def write_page(stored: Stored, page: Path = PAGE) -> None:
    """Put the sections between their marks in the page."""
    for name, text in describe(stored).items():
        put_section(page, name, text)


def print_tables(stored: Stored, console: Console) -> None:
    """One line for each setting and scaling."""
    rows = [HEADER, *tabulate(stored, SETTINGS)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADER))]
    for row in rows:
        console.print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
