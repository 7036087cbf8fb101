"""What a row costs, the machine's limits, rivals, refits and the start, on the page on performance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.reproduction_words import bullets, claim, show_range, table, wrap
from benchmarks.scale_costs import ASKED
from benchmarks.scale_tables import Row, Stored, show, significant
from rekka.report.text import MISSING

GIGA = 1e9
RIVALS = {"msm": "R's msm", "paper": "the paper's way"}


def tell_row_costs(stored: Stored) -> Iterator[str]:
    """By states, covariates, jumps and order."""
    costs = stored["costs"]
    counts = [one["fit_evaluations"] for one in stored["curve"]]
    evaluations = show_range([*counts, *(one["evaluations"] for one in stored["fits"] if one["evaluations"])])
    yield wrap(
        "Nanoseconds of one processor for one row of one evaluation, 100,000 rows sorted by their states; value, "
        "gradient and Hessian unless stated otherwise. Multiply by rows and evaluations and divide by threads to "
        f"estimate the optimizer's time. The fits above took {evaluations} evaluations; where there are many "
        "rows, the first ones are made on a sample."
    )
    states = [(str(one["n_states"]), show(one["ns_per_row"])) for one in costs["states"]]
    yield wrap(
        f"**States.** Four covariates. {_slope(costs['states'], 'n_states')} ns more for each state, by least "
        "squares. The cost depends on the states that a row passes through, not on K."
    )
    yield _across("K", states)
    covariates = [(str(one["covariates"]), show(one["ns_per_row"])) for one in costs["covariates"]]
    yield wrap(
        "**Covariates.** Five states. The Hessian has a product for each pair of them, so the cost per covariate "
        f"rises: {_step(costs['covariates'], 0)} ns for the second, {_step(costs['covariates'], -2)} ns for each "
        "of the last."
    )
    yield _across("covariates", covariates)
    jumps = [(str(one["jumps"]), f"{one['share']:.1%}", show(one["ns_per_row"])) for one in costs["jumps"]]
    yield wrap(
        "**Jumps** (states passed within one interval). None and one have short closed forms; more need a "
        "series or a table of divided differences, and more entries of the Hessian. Most rows have none or one."
    )
    yield table(("jumps", "share of rows", "ns a row"), jumps)
    orders = [(ASKED[one["order"]], show(one["ns_per_row"])) for one in costs["orders"]]
    yield wrap("**What is asked for.** Five states, four covariates.")
    yield table(("asked for", "ns a row"), orders)


def _across(name: str, pairs: Sequence[tuple[str, str]]) -> str:
    """A table of two lines: short ones are read sideways."""
    return table((name, *(first for first, _ in pairs)), [("ns a row", *(second for _, second in pairs))])


def _slope(costs: Sequence[Row], name: str) -> str:
    return f"{np.polyfit([one[name] for one in costs], [one['ns_per_row'] for one in costs], 1)[0]:.1f}"


def _step(costs: Sequence[Row], at: int) -> str:
    """Nanoseconds for each further covariate between one measured number of them and the next."""
    one, other = costs[at], costs[at + 1]
    return f"{(other['ns_per_row'] - one['ns_per_row']) / (other['covariates'] - one['covariates']):.1f}"


def tell_machine(stored: Stored) -> Iterator[str]:
    """Rates of the machine, what a row needs, and the ratio."""
    one, two = stored["machine"]
    needs = stored["needs"]
    yield wrap(
        "Rates of this machine, each measured by a compiled loop that does nothing else: the sum of an array "
        "far beyond the caches; a triad a = b + 3 c of such arrays, 24 bytes an element; exponentials and "
        "multiply-adds on numbers that stay in the first-level cache."
    )
    names = {
        "bytes_read": "read from memory, GB/s",
        "bytes_triad": "triad, GB/s",
        "exponentials": "exponentials, 10^9/s",
        "multiply_adds": "multiply-adds, 10^9/s",
    }
    yield table(
        ("what", "1 thread", "2 threads"),
        [(words, *(significant(rates[name] / GIGA) for rates in (one, two))) for name, words in names.items()],
    )
    transcendental = needs["exponentials"] + needs["logarithms"]
    cost = next(c["ns_per_row"] for c in stored["costs"]["orders"] if c["order"] == 2)
    bounds = {
        f"its {needs['bytes_read']:.0f} bytes read": needs["bytes_read"] / one["bytes_read"],
        f"its {transcendental:.2f} exponentials and logarithms": transcendental / one["exponentials"],
        f"its {needs['multiply_adds']:.0f} multiply-adds": needs["multiply_adds"] / one["multiply_adds"],
    }
    yield wrap(
        "Operations of the average row (K = 5, four covariates), counted from the code of `rekka.model.kernel`, "
        "and the time that each kind would take alone on one thread:"
    )
    yield table(
        ("one evaluation of one row", "ns", "million rows a second", "the kernel takes, times"),
        [
            *(
                (
                    f"only {words}",
                    significant(GIGA * each),
                    significant(1e-6 / each),
                    f"{cost / (GIGA * each):.1f}",
                )
                for words, each in bounds.items()
            ),
            ("as measured", significant(cost), significant(1e3 / cost), "1"),
        ],
    )
    together, memory = GIGA * sum(bounds.values()), GIGA * needs["bytes_read"] / one["bytes_read"]
    yield wrap(
        f"One after the other these three take {together:.0f} ns, and the kernel {cost:.0f} ns: "
        f"{cost / together:.1f} times as long. "
        + claim(
            memory < cost / 2,
            "Memory is not the limit, so a second thread helps. The rest is the arithmetic of the closed forms "
            "and of the series for several jumps, and rows that do not fill a chunk.",
        )
    )


def tell_rivals(stored: Stored) -> Iterator[str]:
    """The largest table of each rival."""
    limit = stored["limit"]
    yield wrap(
        f"The largest table that each can fit if one call may take {limit:.0f} s, found by doubling the rows, "
        "and rekka on the same rows, all on one thread. Ratios are theirs over ours, of the optimizer alone and "
        "of the whole call. The gap is our log-likelihood minus theirs."
    )
    rivals = stored["rivals"]
    if rivals:
        yield table(
            ("", "rows", "optimizer, s", "rekka, s", "ratio", "call, s", "rekka, s", "ratio", "gap"),
            [_rival_row(name, rivals[name]) for name in rivals],
        )
    for name, words in RIVALS.items():
        if name in rivals:
            by, ended = rivals[name]["theirs"]["method"], rivals[name]["ended"]
            yield wrap(f"{words[0].upper()}{words[1:]}, by {by}, ended there: {ended}.")
        else:
            yield wrap(f"{words[0].upper()}{words[1:]} has no figures in this run.")


def _rival_row(name: str, one: Row) -> tuple[str, ...]:
    theirs, ours = one["theirs"], one["ours"]
    return (
        RIVALS[name],
        f"{one['rows']:,}",
        significant(theirs["seconds"]),
        significant(ours["seconds"]),
        significant(one["times"]),
        significant(theirs["call_seconds"]),
        significant(ours["call_seconds"]),
        significant(one["call_times"]),
        f"{one['gap']:.1e}",
    )


def tell_refits(stored: Stored) -> Iterator[str]:
    """A thousand refits, and msm's extrapolated."""
    one = stored["refits"]
    yield wrap(
        f"{one['refits']:,} bootstrap refits of a component of {one['rows']:,} rows, resampled by bridge, "
        "z-scored, each fitted, certified and scored on the bridges not drawn, as in `rekka stability`."
    )
    rows = [
        (
            f"rekka, {mine['workers']} {'process' if mine['workers'] == 1 else 'processes'}",
            f"{mine['seconds']:.1f}",
            f"{mine['refits'] / mine['seconds']:.0f}",
            f"{mine['certified']:.1%}",
            significant(times),
        )
        for mine, times in zip(one["ours"], one["times"], strict=True)
    ]
    if one["extrapolated"] is not None:
        rate = one["refits"] / one["extrapolated"]
        rows.append(
            (
                f"msm, extrapolated from {one['msm_refits']}",
                f"{one['extrapolated']:,.0f}",
                f"{rate:.2f}",
                MISSING,
                "1",
            )
        )
    yield table(("", "seconds", "refits a second", "certified", "times msm"), rows)
    if one["extrapolated"] is not None:
        yield wrap(
            f"msm's seconds are extrapolated from {one['msm_refits']} refits of the first draws by its fastest "
            f"method that converged in all of them ({one['msm_method']}), the fastest of up to three calls for "
            "each, without standard errors; it does not certify or score them. Two processes have to start first, "
            "which is part of their seconds."
        )


def tell_start(stored: Stored) -> Iterator[str]:
    """What starting costs, and where the compiled kernels are."""
    start = stored["start"]
    yield wrap(
        "Whole processes, timed from outside: the fastest of several, except the first fit, which was timed once."
    )
    yield table(
        ("process", "seconds"),
        [
            ("python, doing nothing", f"{start['python']:.2f}"),
            ("`rekka --help`", f"{start['help']:.2f}"),
            ("`import rekka`", f"{start['importing']:.2f}"),
            ("a fit of 300 rows, nothing compiled yet", f"{start['first_fit']:.1f}"),
            ("the same in a later process", f"{start['later_fit']:.1f}"),
        ],
    )
    yield wrap(
        "Numba compiles the numerical kernels for this processor when they are first used, and keeps them on "
        "disk: in the installed package, or in the user's cache folder if the package is not writable. Set "
        "`NUMBA_CACHE_DIR` to use another folder, for example one in a container image. Later processes only "
        "load them. A new version of rekka or Numba, or another kind of processor, compiles them again. A wait "
        "of more than a second is announced: by the commands on the terminal, in Python by the logger `rekka` "
        "at level INFO. If no folder is writable, every process compiles its own kernels and says so."
    )


def tell_limits() -> list[str]:
    """What is not streamed, and what needs memory all the same."""
    return bullets(
        [
            "**Row groups.** Parquet is read by row groups, and at least one is in memory at a time. Keep them "
            "below about a million rows; Polars and most other writers do.",
            "**Errors clustered by bridge** need a few numbers for each bridge, not for each row. Where they do "
            "not fit the limit, more passes are made over the rows.",
            "**Exact quantiles**, which robust scaling and the survey of covariates need, take "
            "passes of their own and hold about a twentieth of one column's values.",
            "**Not streamed**: the paper's floored likelihood, scikit-learn transformers as scalings, ridge and "
            "pooled fits that choose by folds, pairing of inspections into transitions, and the report. They read "
            "all rows into memory.",
            "**Slow**: CSV files, which are parsed as text in every pass. Convert them to Parquet once.",
        ]
    )
