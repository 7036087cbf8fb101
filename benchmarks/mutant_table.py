"""The mutants of ``mutants``: for each source file the tests that should see them, and texts with replacements.

They move boundaries and break guards. A text occurs exactly once in its file, which a test checks; where code
moves, its mutants move along. A third text says why no test can see a mutant: it computes the same.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One change of one file of ``src/rekka``, and the tests, by file or name, that are run on it."""

    file: str
    text: str
    replacement: str
    tests: str
    equivalent: str = ""


TABLE: list[tuple[str, str, list[tuple[str, ...]]]] = [
    (
        "core/files.py",
        "tests/core/test_files.py",
        [
            ("number in (*_NO_ROOM, errno.EROFS)", "number in _NO_ROOM"),
            ("if self._flush and not is_stream(path):", "if not is_stream(path):"),
            ('line if file.read(1) == b"\\n" else b"\\n" + line', "line"),
            ("if unfinished in self._modes:", "if False:"),
            ("os.path.lexists(file) and not is_ours(file)", "file.exists() and not is_ours(file)"),
            ("stream.seek(max(file.stat().st_size - _HEAD, 0))", "stream.seek(0)"),
            ("if place in taken:", "if output in taken:"),
            ("if found is None or _is_elsewhere(error, path):", "if found is None:"),
        ],
    ),
    (
        "core/folders.py",
        "tests/core/test_seals.py",
        [
            ('or found.get("version") != 1', ""),
            (
                "isinstance(value, float) and not math.isfinite(value)",
                "isinstance(value, float) and math.isnan(value)",
            ),
            ("sort_keys=True, ", ""),
        ],
    ),
    (
        "core/sheets.py",
        "tests/core/test_sheets.py::test_polars_and_python_guard_the_same_texts "
        "tests/core/test_sheets.py::test_an_apostrophe_of_the_users_own_stays",
        [
            ("text.startswith(GUARD) and _ACTIVE.match(text[1:])", "text.startswith(GUARD)"),
            ("\"'*(?:[", '"(?:['),
        ],
    ),
    (
        "core/sheets.py",
        "tests/core/test_sheets.py::test_a_table_for_excel_has_guarded_headings_and_lists "
        "tests/core/test_sheets.py::test_a_sheet_has_room_for_so_many_rows",
        [
            ("if len(table) > LARGEST_SHEET:", "if len(table) >= LARGEST_SHEET:"),
            ("return guarded.rename(guard_text)", "return guarded"),
        ],
    ),
    (
        "core/folders.py",
        "tests/study/test_store.py::TestHold tests/study/test_study_rows.py::TestPaths",
        [
            ("if error.errno not in _UNUSABLE:", "if False:"),
            ("place = file.parent.resolve() / file.name", "place = file.resolve()"),
            ("return lines[-1] if lines else None", "return lines[0] if lines else None"),
        ],
    ),
    (
        "core/errors.py",
        "tests/model/test_inputs.py tests/study/test_words.py",
        [
            ('", ..." if len(rows) > most else ""', '", ..." if len(rows) >= most else ""'),
            ("if len(names) > most else", "if len(names) >= most else"),
        ],
    ),
    (
        "data/values.py",
        "tests/data/test_values.py tests/data/test_panel.py",
        [
            ("short >= CENTURY_TURN", "short > CENTURY_TURN"),
            ("is_between(FIRST_DAY, LAST_DAY)", "is_between(FIRST_DAY, LAST_DAY + 365)"),
            ("dates.dt.year().is_between(FIRST_YEAR, LAST_YEAR)", "dates.dt.year().is_between(FIRST_YEAR, 9999)"),
            ("if number > MOST_STATES:", "if number >= MOST_STATES:"),
            (
                "(number < limit) if falling else (number >= limit)",
                "(number <= limit) if falling else (number >= limit)",
            ),
            (
                "(number < limit) if falling else (number >= limit)",
                "(number < limit) if falling else (number > limit)",
            ),
            ('seen["count"].sum() > RECOGNISED * records', 'seen["count"].sum() >= RECOGNISED * records'),
            ("or high > MOST_STATES:", "or high > MOST_STATES + 1:"),
            ("INDEX_ENDS if falling else INDEX_ENDS[1:]", "INDEX_ENDS"),
            ("worst = max(int(high), 2)", "worst = int(high)"),
            ("beyond[0] & ~beyond[1]), slashed", "beyond[0]), slashed"),
            ("if count in (1, 2) else", "if count in (1,) else"),
        ],
    ),
    (
        "data/direction.py",
        "tests/data/test_direction.py",
        [
            ("self.upward - self.downward > CHANCE", "self.upward - self.downward >= CHANCE"),
            ("return self.upward > self.downward", "return self.upward >= self.downward"),
            ("part.strip().upper()", "part.strip()"),
        ],
    ),
    (
        "data/partition.py",
        "tests/data/test_partition.py",
        [
            ('.cum_sum().over("case") <= row_cap', '.cum_sum().over("case") < row_cap'),
            ("not 2 <= k <= len(bridges)", "not 2 <= k < len(bridges)"),
            ("abs(sum(shares.values()) - 1) > 1e-9", "sum(shares.values()) - 1 > 1e-9"),
            (
                "most = here.stop - here.start > len(order) / 2",
                "most = True",
                "rows of some bridges are those that are not of the others; which is asked only saves memory",
            ),
        ],
    ),
    (
        "data/attributes.py",
        "tests/data/test_panel.py",
        [
            ("| (gap <= join.agree.absolute)", "| (gap < join.agree.absolute)"),
            ("pl.coalesce(name, theirs[name])", "pl.coalesce(theirs[name], name)"),
            ("if len(keys) > 1 and not", "if not"),
        ],
    ),
    (
        "data/panel.py",
        "tests/data/test_panel.py",
        [
            ('if len(stems["state"]) < 2 or', 'if len(stems["state"]) < 1 or'),
            ("            state_problem,\n", ""),
        ],
    ),
    (
        "data/pairing_kernel.py",
        "tests/data/test_transitions.py",
        [
            ("> max_gap:", ">= max_gap:"),
        ],
    ),
    (
        "data/pairing.py",
        "tests/data/test_transitions.py",
        [
            ('rule == "error" and differs.any()', 'rule == "error"'),
        ],
    ),
    (
        "scaling/operators.py",
        "tests/scaling/test_operators.py tests/scaling/test_transformer.py",
        [
            ("np.where(shifted > 0, shifted, np.nan)", "np.where(shifted >= 0, shifted, np.nan)"),
            ("np.maximum(0.0, 1.0 - low)", "1.0 - low"),
        ],
    ),
    (
        "scaling/registry.py",
        "tests/scaling/test_fitting.py tests/scaling/test_operators.py",
        [
            ("(rows.high <= 0)", "(rows.high < 0)"),
            ("(lower == upper)", "(lower == upper) & (lower == median) & (lower > 0)"),
        ],
    ),
    (
        "model/inputs.py",
        "tests/model/test_inputs.py",
        [
            ("if worst > n_states:", "if worst > n_states + 1:"),
            ("bad = np.flatnonzero(end >= MOST_STATES)", "bad = np.flatnonzero(end > MOST_STATES)"),
            ("if worst < 2:", "if worst < 1:"),
            ("bad = np.flatnonzero(states >= n_states)", "bad = np.flatnonzero(states > n_states)"),
            ("(values < 1) | (values != np.floor(values))", "values < 1"),
        ],
    ),
    (
        "model/clock.py",
        "tests/model/test_clock.py",
        [
            ("0.0 if self.lags(name) or", "0.5 if self.lags(name) or"),
        ],
    ),
    (
        "model/solvers.py",
        "tests/model/test_solvers.py tests/model/test_likelihood.py",
        [
            ("if short and values[0] < 0.0:", "if short:"),
            ("stop = Stop.CONVERGED if rounded else Stop.STALLED", "stop = Stop.CONVERGED"),
        ],
    ),
    (
        "model/likelihood.py",
        "tests/model/test_solvers.py tests/model/test_likelihood.py",
        [
            ("left = weight[(start <= k) & (end > k)].sum()", "left = weight[(start == k) & (end > k)].sum()"),
        ],
    ),
    (
        "model/certificate.py",
        "tests/model/test_certificate.py tests/model/test_determined.py",
        [
            ("if left > DECREMENT_LIMIT:", "if decrement > DECREMENT_LIMIT:"),
            ("if condition > WEAK_CONDITION:", "if condition > SINGULAR_CONDITION:"),
            ("and not known & set(layout.states_of(q))", ""),
        ],
    ),
    (
        "model/restarts.py",
        "tests/model/test_restarts.py",
        [
            ("if informative <= MOST_ROWS:", "if informative <= MOST_ROWS * 20:"),
            ("outcome.objective < best_value", "outcome.objective > best_value"),
        ],
    ),
    (
        "model/bootstrap.py",
        "tests/model/test_bootstrap.py",
        [
            ("if names.size < 2:", "if names.size < 1:"),
            ("return refit.beta if refit.at_maximum else None", "return refit.beta"),
        ],
    ),
    (
        "model/coordinates.py",
        "tests/model/test_prior.py",
        [
            ("np.linalg.eigvalsh(precision)[0] <= 0", "np.linalg.eigvalsh(precision)[0] < 0"),
        ],
    ),
    (
        "model/probabilities.py",
        "tests/model/test_probabilities.py",
        [
            ("if not (np.isfinite(array) & (array >= 0)).all():", "if not (array >= 0).all():"),
        ],
    ),
    (
        "model/survey.py",
        "tests/model/test_survey.py "
        "tests/evaluation/test_fit_test.py::test_years_and_small_expectations_in_words "
        "tests/evaluation/test_fit_test.py::test_a_test_as_plain_data",
        [
            ("return self.p_value <= self.level", "return self.p_value < self.level"),
        ],
    ),
    (
        "model/separation.py",
        "tests/model/test_separation.py tests/model/test_certificate.py",
        [
            ("not (one.nobody_left or one.nobody_stayed or one.levels) for", "not one.nobody_left for"),
        ],
    ),
    (
        "streaming/blocks.py",
        "tests/streaming/test_large_fits.py tests/streaming/test_streamed_fit.py",
        [
            ("renumber_rows(error, range(first, first + rows))", "renumber_rows(error, range(rows))"),
        ],
    ),
    (
        "streaming/passes.py",
        "tests/streaming/test_large_fits.py tests/streaming/test_streamed_fit.py",
        [
            ("n_states = max(len(one.counts), len(other.counts))", "n_states = len(other.counts)"),
            ("if n_states > MOST_STATES:", "if n_states > MOST_STATES + 100:"),
        ],
    ),
    (
        "streaming/passes.py",
        "tests/streaming/test_quantiles.py",
        [
            ("if e < edge.size and below[c][e] <= rank:", "if e < edge.size and below[c][e] < rank:"),
            ("(upto[c][e - 1] if e else 0)", "upto[c][e - 1]"),
        ],
    ),
    (
        "streaming/blocks.py",
        "tests/streaming/test_streamed_memory.py tests/streaming/test_large_fits.py",
        [
            ("if size < LEAST:", "if size <= LEAST:"),
            (
                "isinstance(limit, bool) or found is None",
                "found is None",
                "the text of True and False has no digits, so that the pattern refuses them already",
            ),
        ],
    ),
    (
        "streaming/blocks.py",
        "tests/streaming/test_large_fits.py tests/streaming/test_streamed_fit.py",
        [
            (
                "        if rows:\n            yield first, pl.concat(held)",
                "        if rows > 1:\n            yield first, pl.concat(held)",
            ),
        ],
    ),
    (
        "streaming/clustered_errors.py",
        "tests/streaming/test_large_fits.py tests/streaming/test_streamed_fit.py",
        [
            ("(group >= lowest) & (group <= highest)", "(group >= lowest) & (group < highest)"),
        ],
    ),
    (
        "streaming/separation.py",
        "tests/streaming/test_streamed_separation.py",
        [
            ("if not start <= k <= end:", "if not start <= k < end:"),
        ],
    ),
    (
        "evaluation/scores.py",
        "tests/evaluation/test_scores.py",
        [
            ("(self.log_p <= LOG_FLOOR).sum()", "(self.log_p < LOG_FLOOR).sum()"),
            (
                "(start < n_states) & (end >= 0) & (end < n_states)",
                "(start < n_states) & (end >= 0) & (end <= n_states)",
            ),
            ("(log_p_observed < np.inf)", "(log_p_observed <= np.inf)"),
        ],
    ),
    (
        "evaluation/scores.py",
        "tests/evaluation/test_intervals.py tests/study/test_study_scores.py",
        [
            ("n**2 / float(size @ size) - 1.0, 1.0)", "n**2 / float(size @ size) - 1.0, 0.5)"),
        ],
    ),
    (
        "evaluation/selection.py",
        "tests/evaluation/test_selection.py tests/evaluation/test_guarded.py",
        [
            ("found[name].high < -LOSS_TOLERANCE", "found[name].mean < -LOSS_TOLERANCE"),
            ("2.0 * (1.0 - self.confidence) / max(", "2.0 * (1.0 - self.confidence) / min("),
            (
                "self.certified / self.drawn if self.drawn else 1.0",
                "self.certified / self.drawn if self.drawn else 0.0",
            ),
        ],
    ),
    (
        "evaluation/calibration.py",
        "tests/evaluation/test_reliability.py",
        [
            ("n - edge >= BIN_ROWS", "n - edge >= 1"),
            ("free = start < p.shape[1] - 1", "free = start < p.shape[1]"),
        ],
    ),
    (
        "evaluation/resampling.py",
        "tests/evaluation/test_resampling.py",
        [
            (
                "min(max(round(share * names.size), 1), names.size - 1)",
                "min(max(round(share * names.size), 1), names.size)",
            ),
            ("if len(fold) else 0", "if len(fold) else 1"),
        ],
    ),
    (
        "evaluation/goodness.py",
        "tests/evaluation/test_goodness.py",
        [
            ("if np.bincount(found, minlength=count).min() >= BAND_ROWS:", "if np.bincount(found).min() > 0:"),
            ("(follows < -1) | (follows >= start.size)", "(follows < -1) | (follows > start.size)"),
            ("& sure & sure[follows] &", "& sure[follows] &"),
        ],
    ),
    (
        "evaluation/misfit.py",
        "tests/evaluation/test_misfit.py",
        [
            ("reference.p_value(name) <= self.level", "reference.p_value(name) < self.level"),
            ("if left[k] >= LARGE:", "if left[k] > -LARGE:"),
            ("share < CONCENTRATED or not", "not"),
        ],
    ),
    (
        "evaluation/ridge.py",
        "tests/evaluation/test_ridge.py",
        [
            (
                "not all(0 < value < np.inf for value in values)",
                "not all(0 <= value < np.inf for value in values)",
            ),
            ("if len(names) < 2:", "if len(names) < 1:"),
        ],
    ),
    (
        "evaluation/calibration.py",
        "tests/evaluation/test_calibration.py",
        [
            ("(sample.x < low) | (sample.x > high)", "(sample.x < low) | (sample.x >= high)"),
        ],
    ),
    (
        "checks/table.py",
        "tests/checks/test_doctor.py",
        [
            (
                '~no_state & (pl.col("state_2") < pl.col("state_1"))',
                '~no_state & (pl.col("state_2") <= pl.col("state_1") - 2)',
            ),
            (
                "pl.col(column).is_between(1, inputs.MOST_STATES)",
                "pl.col(column).is_between(0, inputs.MOST_STATES)",
            ),
        ],
    ),
    (
        "checks/components.py",
        "tests/checks/test_doctor.py",
        [
            ("if len(case.row) < FEW_ROWS:", "if len(case.row) <= FEW_ROWS:"),
            ("(ratio > 0) & (ratio < FEW_EVENTS)", "(ratio > 0) & (ratio <= FEW_EVENTS)"),
            ("if not separation.nobody_left:", "if True:"),
        ],
    ),
    (
        "checks/components.py",
        "tests/checks/test_doctor.py",
        [
            ("column <= 0 if positive else column < 0", "column < 0"),
        ],
    ),
    (
        "checks/held_out.py",
        "tests/checks/test_doctor.py",
        [
            ("(rows.end >= train.n_states) |", "(rows.end > train.n_states) |"),
        ],
    ),
    (
        "forecast/ageing.py",
        "tests/forecast/test_propagation.py tests/forecast/test_forecast.py tests/model/test_clock.py",
        [
            ("np.minimum(old + elapsed, np.maximum(old, most))", "np.minimum(old + elapsed, most)"),
            ("self.ceiling[column] + self.lag[column]", "self.ceiling[column]"),
        ],
    ),
    (
        "forecast/first_passage.py",
        "tests/forecast/test_first_passage.py",
        [
            ("values[min(1, len(values) - 1) :]", "values[0:]"),
            ("reached[..., None] >= self.quantiles, 0.0", "reached[..., None] > self.quantiles, 0.0"),
        ],
    ),
    (
        "forecast/effects.py",
        "tests/forecast/test_changes.py",
        [
            ("or (times and number < 0)", ""),
            ("and value - step >= fit.survey.low[place]", ""),
        ],
    ),
    (
        "forecast/uncertainty.py",
        "tests/forecast/test_uncertainty.py",
        [
            ("draws < FEWEST:", "draws <= FEWEST:"),
            (
                'method: Literal["median_unbiased", "inverted_cdf"] = "median_unbiased" if smooth',
                'method: Literal["median_unbiased", "inverted_cdf"] = "median_unbiased" if True',
            ),
        ],
    ),
    (
        "forecast/matrices.py",
        "tests/forecast/test_matrices.py",
        [
            ("float(value) if np.isfinite(value) else None", "float(value)"),
        ],
    ),
    (
        "forecast/forecast.py",
        "tests/forecast/test_forecast.py",
        [
            ("not 2 <= state <= n_states", "not 1 <= state <= n_states"),
            ("beyond = np.flatnonzero(start >= fit.n_states)", "beyond = np.flatnonzero(start > fit.n_states)"),
        ],
    ),
    (
        "forecast/profiles.py",
        "tests/forecast/test_profiles.py",
        [
            ("below = below[below < low]", "below = below[below <= low]"),
        ],
    ),
    (
        "fleet/network.py",
        "tests/fleet/test_counts.py",
        [
            ("(room > 0.0) & (deviation > 0.0)", "deviation > 0.0"),
        ],
    ),
    (
        "fleet/eligibility.py",
        "tests/fleet/test_eligibility.py",
        [
            ('pl.col("state") > fit.n_states', 'pl.col("state") > fit.n_states + 1'),
            (
                "isinstance(asked, int) and not 2 <= asked <= states",
                "isinstance(asked, int) and not 1 <= asked <= states",
            ),
        ],
    ),
    (
        "forecast/first_passage.py",
        "tests/fleet/test_first_passage_many.py",
        [
            ("if year + 1 == horizon:", "if year == horizon:"),
        ],
    ),
    (
        "fleet/store.py",
        "tests/fleet/test_forecast_store.py",
        [
            ("if name not in names:\n                remove_file(", "if False:\n                remove_file("),
            ("if made and not is_forecast(folder):", "if made:"),
        ],
    ),
    (
        "fleet/backtest_rows.py",
        "tests/fleet/test_backtest.py::test_wrong_options "
        "tests/fleet/test_backtest.py::test_rounds_of_inspections "
        "tests/fleet/test_backtest.py::test_a_visit_from_which_two_transitions_go_on_leads_nowhere "
        "tests/fleet/test_backtest.py::test_members_that_are_not_told_apart "
        "tests/fleet/test_backtest.py::test_transitions_that_go_nowhere_make_no_circle "
        "tests/fleet/test_backtest.py::test_nothing_after_the_moment_reaches_the_fit "
        "tests/fleet/test_backtest.py::test_old_transitions_can_be_left_out "
        "tests/fleet/test_backtest.py::test_forecasts_and_scores_equal_a_plain_account",
        [
            ("pl.col(cut.columns[1]) <= cut.moment", "pl.col(cut.columns[0]) <= cut.moment"),
            ("(first <= cut.moment) & (second > cut.moment)", "(first < cut.moment) & (second > cut.moment)"),
            ('(pl.len().over("place") == 1) & ', ""),
        ],
    ),
    (
        "fleet/members.py",
        "tests/fleet/test_members.py",
        [
            ("by = pl.when(pl.col(name).is_not_null()).then(key) if carry else key", "by = key"),
        ],
    ),
    (
        "fleet/lists.py",
        "tests/fleet/test_members.py",
        [
            (" * ANOTHER_HISTORY + pl.col(VISIT)", " + pl.col(VISIT)"),
        ],
    ),
    (
        "study/rows.py",
        "tests/study/test_trial.py",
        [
            ('found[f"low {c}"] == found[f"high {c}"]', 'found[f"low {c}"] + 1 >= found[f"high {c}"]'),
        ],
    ),
    (
        "study/case_rows.py",
        "tests/study/test_trial.py tests/study/test_study_scores.py",
        [
            ("sample.bridge[inside])", "sample.bridge[outside])"),
        ],
    ),
    (
        "study/run_folder.py",
        "tests/study/test_records.py tests/study/test_confirming.py",
        [
            ("(choice.preset, choice.case)),", '("exact", choice.case)),'),
            ("[:LONGEST_SLUG].strip", ".strip"),
        ],
    ),
    (
        "study/plan.py",
        "tests/study/test_plan.py",
        [
            ('if given.get("version") != 1:', 'if given.get("version") != 0:'),
            ("len(set(names)) < len(names)", "len(set(names)) < len(names) - 1"),
        ],
    ),
    (
        "study/trial.py",
        "tests/study/test_trial.py",
        [
            ("return bool(self.seconds) or self.outcome is None", "return bool(self.seconds)"),
            ("self.moves / parameters if parameters > 0 else math.nan", "self.moves / max(parameters, 1)"),
        ],
    ),
    (
        "study/choice.py",
        "tests/study/test_choosing.py",
        [
            ("if whole.bridges < 2 * FOLDS:", "if whole.bridges < 20 * FOLDS:"),
            ("changed += model_of(picked) != model_of(chosen)", "changed += picked != chosen"),
        ],
    ),
    (
        "study/confirmation.py",
        "tests/study/test_confirming.py",
        [
            ("if other and not again and not force:", "if other and not force:"),
            ("bool(self.results or self.spent or self.unreadable)", "bool(self.results or self.spent)"),
        ],
    ),
    (
        "study/run_folder.py",
        "tests/study/test_store.py",
        [
            ('f.name.startswith(".") or is_unfinished(f)', 'f.name.startswith(".")'),
            ("    if made:\n        with contextlib", "    if True:\n        with contextlib"),
        ],
    ),
    (
        "study/hypotheses.py",
        "tests/study/test_hypotheses.py",
        [
            ("rows > MANY_ROWS]", "rows >= MANY_ROWS]"),
            ('mine["seconds"] < min(', 'mine["seconds"] <= min('),
            ("if every[0] <= SMALL_DIFFERENCE + ROUNDING:", "if every[0] < SMALL_DIFFERENCE - ROUNDING:"),
        ],
    ),
    (
        "study/plan.py",
        "tests/study/test_methods.py::test_leaving_out",
        [
            ("~np.isin(one.bridge, bridges)", "np.isin(one.bridge, bridges)"),
        ],
    ),
    (
        "report/text.py",
        "tests/report/test_report_tables.py::test_where_numbers_change_their_form",
        [
            ("abs(value) >= LARGE", "abs(value) > LARGE"),
            ("0 <= value < least else", "0 <= value <= least else"),
        ],
    ),
    (
        "report/summarize.py",
        "tests/report/test_summary.py::test_a_difference_is_shown_where_its_interval_leaves_zero_out "
        "tests/report/test_summary.py::test_models_that_were_tested_are_not_calibrated_again",
        [
            ("if low <= 0 <= high:", "if low < 0 < high:"),
            ("if key not in tested", "if key in tested"),
        ],
    ),
    (
        "report/export.py",
        "tests/report/test_latex.py::test_a_long_table_goes_over_pages_and_repeats_its_head",
        [
            ("if len(table.rows) > LONGEST_FLOAT:", "if len(table.rows) > LONGEST_FLOAT + 5:"),
        ],
    ),
    (
        "report/summarize.py",
        "tests/report/test_expectations.py::test_a_fit_that_is_no_maximum_has_no_ends "
        "tests/report/test_expectations.py::test_a_hazard_beyond_all_numbers_is_not_forecast",
        [
            (
                "ForecastOptions(NORMAL if certified else NONE, level, draws",
                "ForecastOptions(NORMAL, level, draws",
            ),
            (" and (np.abs(eta) <= LARGEST).all()", ""),
        ],
    ),
]

MUTANTS = tuple(
    Mutant(file, changed[0], changed[1], tests, *changed[2:])
    for file, tests, changes in TABLE
    for changed in changes
)
