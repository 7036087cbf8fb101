"""``ExponentialHazardMarkovModel``: the scikit-learn estimator over checked inputs, one Fit, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rekka.core.errors import BadOption, InputError, ModelFileError, count_of, missing_columns
from rekka.data.categories import ERROR, MERGE, NO_CODING, REFERENCE, Coding, CodingRules
from rekka.data.partition import PAPER_SEED
from rekka.data.reading import TableReading
from rekka.data.text import collect
from rekka.evaluation.calibration import check_fit
from rekka.evaluation.resampling import Sample
from rekka.evaluation.violations import LEVEL, Violation, find_violations
from rekka.forecast.methods import Forecasts
from rekka.model import inputs
from rekka.model.bootstrap import bootstrap_rows, check_rows
from rekka.model.certificate import Certificate
from rekka.model.clock import MIDDLE, make_clock
from rekka.model.coordinates import Effects, Shared
from rekka.model.family import EXPONENTIAL
from rekka.model.fit import Fit, Options, check_options
from rekka.model.history_inputs import (
    ELEMENTS,
    drop_elements,
    fit_history_categories,
    predict_ratings,
    read_history_rows,
    refuse_histories,
    uses_histories,
)
from rekka.model.likelihood import Rows
from rekka.model.nested import ChiSquaredTest, likelihood_ratio, nested_table, wald_table
from rekka.model.serial import dump_model, load_saved
from rekka.model.survey import FitTest
from rekka.model.tables import TitledTable, check_units, coefficient_table, frailty_table, hazard_table
from rekka.streaming.any_size import (
    LazyTable,
    code_table,
    fit_table,
    fit_training,
    is_lazy,
    open_lazy,
    read_columns,
)
from rekka.streaming.blocks import WHOLE
from rekka.streaming.histories import (
    code_history_table,
    fit_history_files,
    fit_history_table,
    read_history_columns,
)

Array = NDArray[np.float64]
RULES = ("categories", "unseen", "rare", "missing")  # parameters of categories


class ExponentialHazardMarkovModel(Forecasts, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Exponential Hazard Markov model: condition worsens state by state, hazards log-linear in covariates.

    theta_k(x) = exp(b_k0 + x . b_k), k = 1..K-1, state K absorbing; a row seen in state ``start`` and ``dt``
    years later in state ``end`` contributes log expm(Q dt)[start, end].

    Parameters
    ----------
    scaling : "max", "minmax", "zscore", "boxcox", "yeojohnson", "log", "robust", None, or a transformer
        Operator fitted on the training covariates; "boxcox+zscore" applies one after the other. Reported
        coefficients are in native units whatever the scaling, wherever it is affine.
    solver : "newton" or "lbfgs"
        Newton on the exact Hessian, or SciPy's L-BFGS-B in the coordinates of the scaling, as in the paper.
    gradient : "exact" or "numeric"
        For lbfgs; numeric takes two-point differences.
    likelihood : "exact" or "paper"
        For lbfgs; the paper's is the floored closed form, for reproduction only.
    max_iter : int
        At most so many iterations of the solver.
    seed : int
        Of the start of lbfgs, N(0, 0.1^2), drawn anew in every fit. Newton draws nothing.
    ridge : float
        Penalty ridge/2 times the sum of squared slopes in z-scored units; intercepts are never penalised.
    prior : dict with mean (F,) and precision (F, F), or None
        Normal prior of the coefficients of the scaled covariates, state by state, intercept first: what partial
        pooling across cases gives a case.
    class_weight : None or "inverse_frequency"
        Weight each row by the inverse frequency of its (start, end) pair. Standard errors are then robust by row,
        or clustered where ``groups`` are given.
    effects : dict, covariate -> states
        States a covariate acts on, e.g. ``{"traffic_mean": [2, 3]}``; covariates not named act on all.
    shared : dict, covariate -> groups of states
        States that share one coefficient, e.g. ``{"bridge_length": [[1, 2, 3]]}``.
    advance : list of str or None
        Covariates that advance with the years, as age does; None takes those named ``age_at_inspection_1``,
        ``age`` or ``age_years``, an empty list none.
    clock : "middle", "start" or "running"
        Where in its interval an advancing covariate is taken: at the middle, or at the first visit, as in the
        paper; running, it advances in steps of at most a year. Tables hold the value at the first visit.
    errors : None, "adjacent", "adjacent-common" or a K x K pattern of 0 and 1
        Errors of inspection: ratings one better or worse than the true state, with probabilities for each state or
        for all; or those that a pattern (true state by rating) allows.
    frailty : None or "gamma"
        Factor of all hazards of a bridge (``groups``), with mean 1 and a variance to be estimated.
    improvements : None, "common" or "each"
        Small unrecorded work: a state becomes one better with a probability a year, the same for all or each its
        own.
    trend : None, "common" or "each"
        Slope of the log hazards in calendar time, the same for all states or each its own; ``date`` is needed.
        Predictions after the last training visit have the hazards of that visit.
    first : "given", "new" or K probabilities
        True state at the first visit of a history: as rated, or estimated where there are errors; state 1 at age
        0; or these probabilities.
    date : str
        Column of the date, or year, of a row's first visit.
    half_life : float or None
        Years after which a visit has half the weight: 2^(-(T - t) / half_life) at date t, T the last visit. Of
        pairs the date is that of the second visit. ``date`` is needed. Standard errors are then robust, and there
        are no AIC and BIC.
    units : dict, covariate -> number
        Unit of its hazard ratio, e.g. ``{"age": 10, "traffic_mean": 1000}``; 1 where none is given.
    start, dt : str
        Columns of the start state and of the years between the two inspections; in an array columns are named
        x0, x1, ...
    covariates : list of str or None
        Columns to use; None means all but ``start`` and ``dt``. Columns of text and booleans are categories: one
        0/1 column, "material: steel", for each level but the most frequent one, the reference.
    categories : list of str or None
        Covariates that are numbers and names at the same time, such as a route class 1 to 8: also categories.
    unseen : "reference" or "refuse"
        What becomes of rows with a level that no training row had: taken as the reference level with a warning, or
        refused.
    rare : "merge" or "refuse"
        Levels with fewer than 5 departures: taken as one level, "other", or where they have fewer than 5 together
        as the reference; or refused.
    missing : "error" or "level"
        Missing values of a category: refused, or a level of their own.
    n_states : int or None
        K; None takes the worst end state of the training rows.
    threads : int or None
        Threads over rows; None takes all cores. The result has the same bits for any number.
    memory : str, int or None
        Limit for rows in files or of a query, such as "1GB"; None takes half of what is free. Rows that fit well
        within it are held in memory, others are read again for every pass, a block at a time; those of histories
        from a temporary folder.

    Attributes
    ----------
    coef_ (K-1, p), intercept_ (K-1,), covariance_ ((K-1)(p+1), the same)
        In native units where the scaling is affine, else in scaled units; ``coefficient_scale_`` says which.
        The covariance goes state by state, intercept first.
    scaled_coef_ (K-1, p), scaled_intercept_ (K-1,)
        Coefficients of the scaled covariates.
    log_likelihood_, aic_, bic_, n_states_, classes_, covariates_
        As in other estimators; the log-likelihood is the exact one, without the penalty. A category is among the
        covariates by its terms, such as "material: steel".
    coding_
        Levels of the categories, their reference levels, and ``notes`` on the levels that were merged.
    outcome_
        Report of the solver: success, message, iterations, evaluations, seconds around its one call.
    converged_
        The paper's definition: success and everything finite; ``certificate_`` says whether it is a maximum.
    certificate_
        Verdict, reasons and figures.
    survey_
        Quantiles of the covariates of the training rows, as ``clock_`` takes them; None in a model saved before
        version 3 of the file.
    errors_ (K, K), frailty_variance_, improvements_ (K,), trend_ (K-1,), first_
        Probability of each rating in each true state; variance of the frailty; probability of an improvement in a
        year; slope of each log hazard per calendar year; function of ages (n,) that gives probabilities (n, K) of
        the first true state. None where the model does not have them.
    records_
        All elements of a model of histories with their estimates; None in a model of pairs.
    frailty_
        Table of the frailty of each group given its visits: mean and 95 % interval; None without frailty.
    clock_
        Which covariates advance, where in an interval they are taken, and the mean training interval; ``words``
        says it in a sentence.
    resampled_
        Refits to resampled bridges, after ``bootstrap``; None until then.
    fit_test_
        Test of whether the model describes the rows it was fitted to, after ``check_fit``; None until then.
    case_, labels_
        The case and the names of its states, best first, as the model's file has them; None after a fit.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    >>> model = rekka.ExponentialHazardMarkovModel(covariates=["age_at_inspection_1", "traffic_mean"])
    >>> model = model.fit(rows, rows["state_2"], groups=rows["bridge_id"])
    >>> model.coef_.shape, model.certificate_.certified
    ((2, 2), True)

    """

    _family = EXPONENTIAL.name  # of the hazards; a fitted model has that of its fit

    def __init__(
        self,
        scaling: Any = "zscore",
        *,
        solver: str = "newton",
        gradient: str = "exact",
        likelihood: str = "exact",
        max_iter: int = 500,
        seed: int = 0,
        ridge: float = 0.0,
        prior: Any = None,
        class_weight: str | None = None,
        effects: Effects | None = None,
        shared: Shared | None = None,
        advance: Sequence[str] | None = None,
        clock: str = MIDDLE,
        errors: Any = None,
        frailty: str | None = None,
        improvements: str | None = None,
        trend: str | None = None,
        first: Any = "given",
        date: str = "date_1",
        half_life: float | None = None,
        units: Mapping[str, float] | None = None,
        start: str = "state_1",
        dt: str = "interval_years",
        covariates: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        unseen: str = REFERENCE,
        rare: str = MERGE,
        missing: str = ERROR,
        n_states: int | None = None,
        threads: int | None = None,
        memory: str | int | None = None,
    ) -> None:
        self.scaling = scaling
        self.solver = solver
        self.gradient = gradient
        self.likelihood = likelihood
        self.max_iter = max_iter
        self.seed = seed
        self.ridge = ridge
        self.prior = prior
        self.class_weight = class_weight
        self.effects = effects
        self.shared = shared
        self.advance = advance
        self.clock = clock
        self.errors = errors
        self.frailty = frailty
        self.improvements = improvements
        self.trend = trend
        self.first = first
        self.date = date
        self.half_life = half_life
        self.units = units
        self.start = start
        self.dt = dt
        self.covariates = covariates
        self.categories = categories
        self.unseen = unseen
        self.rare = rare
        self.missing = missing
        self.n_states = n_states
        self.threads = threads
        self.memory = memory

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        histories: Any = None,
        cluster: Any = None,
        on_pass: Callable[[str], None] | None = None,
    ) -> Self:
        """Fit by maximum likelihood.

        Parameters
        ----------
        X : dataframe (pandas, polars, pyarrow), path of a Parquet file or a folder of them, or polars LazyFrame
            Start states 1..K, years above 0, covariates. A path or a query may be larger than memory.
        y : series or array; for a path or a query the name of a column, by default "state_2"
            End states, none better than its start; improvements are allowed with ``errors`` or ``improvements``.
        sample_weight : array, or the name of a column, optional
            Multiplies each row's log-likelihood; weight 2 is the row twice, weight 0 the row left out.
        groups : array, or the name of a column, optional
            Bridge of each row; standard errors are then clustered by it. It is what a frailty belongs to.
        histories : array, dataframe whose columns identify together, or names of columns, optional
            History of each row: one member between two repairs. Its rows are in order of time, and each starts in
            the state in which the one before ended; a history of one visit is a row with y missing. Without it
            each row is a history of its own. For a path or a query it is the name of a column, or a list of names;
            rows of a bridge may be anywhere in the table.
        cluster : str or distributed.Client, optional
            A Dask cluster whose workers read the rows of a path or a query and keep them: a scheduler's address,
            "local" or "local:4".
        on_pass : function of a text, optional
            Called before each pass over more than 262,144 rows with its purpose.

        Returns
        -------
        The fitted model itself.

        """
        if uses_histories(self.get_params(deep=False)) or histories is not None:
            return self._fit_histories(X, y, sample_weight, groups, histories, cluster, on_pass)
        options = replace(self._options(), coding=NO_CODING)  # of an earlier fit
        check_options(options)
        if is_lazy(X) and self.half_life is not None:
            return self._hold(open_lazy(X), y, sample_weight, groups, cluster, on_pass)
        if is_lazy(X):
            return self._fit_lazy(open_lazy(X), y, sample_weight, groups, cluster, on_pass)
        _refuse_cluster(cluster)
        frame = inputs.as_frame(X)
        columns = inputs.find_columns(self._list_columns(frame.columns), self.start, self.dt, self.covariates)
        columns = inputs.fit_categories(frame, y, columns, self._take_rules(), sample_weight)
        options = replace(options, coding=columns.coding)
        self._check_units(columns.covariates, columns.coding)
        training = inputs.read_training(
            frame,
            y,
            columns,
            sample_weight=sample_weight,
            groups=groups,
            n_states=self.n_states,
            class_weight=self.class_weight,
            clock=make_clock(columns.covariates, self.clock, self.advance),
            half_life=self.half_life,
            date=self.date,
        )
        fit = fit_training(training, columns.covariates, options, on_pass)
        self._adopt(fit, frame.columns)
        return self

    def _list_columns(self, names: Sequence[str]) -> list[str]:
        """Columns among which covariates are, unless they are named: not the date of a half-life."""
        dated = self.half_life is not None and self.covariates is None
        return [name for name in names if not (dated and name == self.date)]

    def _hold(
        self,
        table: LazyTable,
        y: Any,
        sample_weight: Any,
        groups: Any,
        cluster: Any,
        on_pass: Callable[[str], None] | None,
    ) -> Self:
        """Fit rows that are not in memory with weights by their dates: they are held in memory here."""
        end = "state_2" if y is None else y
        names = self._list_columns(table.columns)
        reading = read_columns(names, self.start, self.dt, self.covariates, end, sample_weight, groups)
        if self.date not in table.columns:
            raise missing_columns([self.date], table.columns, f"the table, and {inputs.HALF_LIFE_NEEDS}")
        if cluster is not None or table.rows > WHOLE:
            raise BadOption(
                f"half_life is {self.half_life!r}, and {table.name} has {count_of(table.rows, 'row')}: weights by "
                f"date need rows in memory, up to {WHOLE:,} of a file or a query, and no cluster. Give the rows "
                "as a dataframe, or leave half_life out.",
                option="half_life",
            )
        frame = collect(table.query.select(*dict.fromkeys([*reading.columns, self.date])), table.name)
        columns = [self.start, self.dt, *reading.covariates, self.date]
        own: Self = clone(self).set_params(covariates=list(reading.covariates))
        own.fit(
            frame.select(*dict.fromkeys(columns)),
            frame[end],
            None if sample_weight is None else frame[sample_weight].to_numpy(),
            None if groups is None else frame[groups].to_numpy(),
            on_pass=on_pass,
        )
        self._adopt(own._fit, columns)
        return self

    def _fit_histories(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        histories: Any,
        cluster: Any,
        on_pass: Callable[[str], None] | None,
    ) -> Self:
        """Fit histories: their own likelihood if an element is on, else the pair model of their rows."""
        if self.class_weight is not None or sample_weight is not None:
            raise BadOption(
                "A fit of histories takes no weights: leave sample_weight and class_weight out, or fit pairs.",
                option="class_weight" if sample_weight is None else "sample_weight",
            )
        if is_lazy(X):
            return self._fit_lazy_histories(open_lazy(X), y, groups, histories, cluster, on_pass)
        _refuse_cluster(cluster)
        frame = inputs.as_frame(X)
        names = [name for name in frame.columns if name != self.date]
        columns = inputs.find_columns(
            names if self.covariates is None else frame.columns, self.start, self.dt, self.covariates
        )
        chosen = columns
        columns = fit_history_categories(frame, y, chosen, self._take_rules())
        self._check_units(columns.covariates, columns.coding)
        if not uses_histories(self.get_params(deep=False)):
            rows = read_history_rows(
                frame, y, columns, histories=histories, n_states=self.n_states, date=self.date, improvements=False
            )
            pair = rows.end >= 0
            if not pair.any():
                raise InputError("No row has a second rating, so nothing says how condition changes.")
            some = frame.filter(pair.tolist())
            n_states = inputs.count_states(np.maximum(rows.start, rows.end), self.n_states)
            own: Self = clone(self).set_params(covariates=list(chosen.covariates), n_states=n_states)
            known = None if groups is None else np.asarray(groups)[pair]
            fitted = own.fit(some.to_native(), rows.end[pair] + 1, groups=known, on_pass=on_pass)
            self._adopt(fitted._fit, frame.columns)
            return self
        fit = fit_history_table(
            frame,
            y,
            columns,
            replace(self._options(), coding=columns.coding),
            {name: getattr(self, name) for name in ELEMENTS},
            histories=histories,
            groups=groups,
            n_states=self.n_states,
            date=self.date,
            on_pass=on_pass,
        )
        self._adopt(_name_groups(fit, getattr(groups, "name", None)), frame.columns)
        return self

    def _fit_lazy_histories(
        self,
        table: LazyTable,
        y: Any,
        groups: Any,
        histories: Any,
        cluster: Any,
        on_pass: Callable[[str], None] | None,
    ) -> Self:
        """Fit histories whose rows are not in memory."""
        if not uses_histories(self.get_params(deep=False)):
            raise BadOption(
                "histories is given, and no element of histories (errors, frailty, improvements, trend, first, "
                "running clock): rows in files or of a query are then fitted as pairs. Leave histories out, and "
                "filter out rows without a second rating.",
                option="histories",
            )
        end = "state_2" if y is None else y
        reading = read_history_columns(
            table, self.start, self.dt, self.covariates, end=end, group=groups, histories=histories, date=self.date
        )
        table, reading, coding = code_history_table(table, reading, self._take_rules())
        covariates = reading.pairs.covariates
        self._check_units(covariates, coding)
        fit = fit_history_files(
            table,
            reading,
            replace(self._options(), coding=coding),
            {name: getattr(self, name) for name in ELEMENTS},
            n_states=self.n_states,
            date=self.date,
            memory=self.memory,
            cluster=cluster,
            on_pass=on_pass,
        )
        self._adopt(_name_groups(fit, groups), [self.start, self.dt, *coding.columns(covariates)])
        return self

    def _fit_lazy(
        self,
        table: LazyTable,
        y: Any,
        sample_weight: Any,
        groups: Any,
        cluster: Any,
        on_pass: Callable[[str], None] | None,
    ) -> Self:
        """Fit rows that are not in memory."""
        end = "state_2" if y is None else y
        reading = read_columns(table.columns, self.start, self.dt, self.covariates, end, sample_weight, groups)
        reading, coding = code_table(table, reading, self._take_rules())
        self._check_units(reading.covariates, coding)
        features = [self.start, self.dt, *coding.columns(reading.covariates)]
        fit = fit_table(
            replace(table, query=coding.code(table.query)),
            reading,
            replace(self._options(), coding=coding),
            memory=self.memory,
            n_states=self.n_states,
            class_weight=self.class_weight,
            cluster=cluster,
            on_pass=on_pass,
        )
        self._adopt(fit, features)
        return self

    def predict_proba(self, X: Any, *, histories: Any = None, groups: Any = None) -> Array:
        """Probabilities (n, K) of each end state after the row's own interval.

        A model of histories gives those of the next rating, from the row's first rating or, with ``histories``
        (and ``groups``, what a frailty belongs to), from all earlier visits in these rows.

        >>> import rekka
        >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1).drop("bridge_id")
        >>> model = rekka.ExponentialHazardMarkovModel().fit(rows.drop("state_2"), rows["state_2"])
        >>> model.predict_proba(rows.head(2)).shape
        (2, 3)
        """
        check_is_fitted(self)
        if self._fit.records is not None:
            return predict_ratings(self._fit, inputs.as_frame(X), self._columns(), histories, groups, self.date)
        if histories is not None:
            raise BadOption(
                "histories is given, and this model forecasts from one rating alone: leave it out.",
                option="histories",
            )
        rows = self._read(X)
        return self._fit.probabilities(rows.start, rows.dt, rows.x)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Most probable end state (n,), from 1; ties go to the better state."""
        p = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(p, axis=1)])

    def log_probabilities(self, X: Any, y: Any) -> Array:
        """Logarithm of the probability of each row's observed end state (n,), exact however small it is."""
        rows = self._read(X)
        end = inputs.read_ends(y, rows.start, improvements=self._fit.records is not None)
        inputs.check_supported(end, self.n_states_, "end")
        if self._fit.records is not None:
            with np.errstate(divide="ignore"):  # a rating that cannot be
                return np.asarray(np.log(self.predict_proba(X)[np.arange(end.size), end]))
        return self._fit.log_probabilities(
            Rows(rows.start, end, rows.dt, np.ones(end.size), self.n_states_), rows.x
        )

    def log_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean of -log p of the observed end states, exact: no floor."""
        value = self.log_probabilities(X, y)
        weight = inputs.read_weights(sample_weight, value.size)
        inputs.refuse_weightless(weight)
        return -float(np.average(value, weights=weight))

    def summary(self, level: float = 0.95) -> TitledTable:
        """Table of coefficients: state, term, estimate, se, z, p, interval, hazard ratio per unit."""
        check_is_fitted(self)
        return coefficient_table(self._fit, self.units, level)

    def hazards(self, X: Any, level: float = 0.95) -> TitledTable:
        """Table of hazards a year and mean years in each state for each row's covariates, with intervals."""
        check_is_fitted(self)
        frame = inputs.as_frame(X)
        x = inputs.read_covariates(frame, self.covariates_, coding=self._fit.coding)
        return hazard_table(self._fit, x, level)

    def wald_tests(self) -> TitledTable:
        """Table of joint Wald tests: does a covariate, or do all of them, act on any hazard."""
        check_is_fitted(self)
        return wald_table(self._fit)

    def certify(self, X: Any, y: Any) -> Certificate:
        """Certificate with the share of these held-out rows at or under probability 1e-12."""
        check_is_fitted(self)
        return self._fit.certificate.with_golden(self.log_probabilities(X, y))

    def bootstrap(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any,
        draws: int = 200,
        seed: int = 0,
        sample_weight: Any = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Copy of the model with ``draws`` refits to bridges drawn with replacement; its file keeps them.

        X, y and sample_weight are those of the fit, ``groups`` is the bridge of each row. The scaling is held as
        it was fitted. Refits that reach no maximum are left out and counted. ``on_progress`` is called after each
        refit with the number done, and of how many.
        """
        check_is_fitted(self)
        refuse_histories(self._fit, "A bootstrap", "Its standard errors are those of the summary.")
        if groups is None:
            raise InputError("groups is None; the bridge of each row is needed, because whole bridges are drawn.")
        training = inputs.read_training(
            inputs.as_frame(X),
            y,
            self._columns(),
            sample_weight=sample_weight,
            groups=groups,
            n_states=self.n_states_,
            class_weight=self.class_weight,
            clock=self._fit.clock,
            half_life=self.half_life,
            date=self.date,
        )
        assert training.groups is not None  # groups were given
        drawn = bootstrap_rows(
            self._fit,
            training.rows,
            training.x,
            training.groups,
            self._options(),
            draws=draws,
            seed=seed,
            on_progress=on_progress,
        )
        return self._copy(replace(self._fit, resampled=drawn))

    def check_fit(
        self,
        X: Any,
        y: Any,
        *,
        follows: Any = None,
        sample_weight: Any = None,
        replicates: int | None = None,
        seed: int = PAPER_SEED,
    ) -> Self:
        """Copy of the model with a test of whether it describes the rows it was fitted to; its file keeps it.

        X, y and sample_weight are those of the fit; a row counts once whatever its weight, and not at all with
        weight 0. ``follows`` is, for each row, the row of the same member that ends where this one starts, or -1;
        ``rekka.evaluation.goodness.find_links`` finds them. Up to ``replicates`` sets are simulated from the model
        (99, or 39 for more than 20,000 rows), fewer where it is soon clear that the test does not reject.
        ``fit_test_`` stays None where no test can be made. A fit with class weights or a half-life is
        refused.
        """
        check_is_fitted(self)
        refuse_histories(self._fit, "A test of fit", "Judge it by the ratings of later visits (predict_proba).")
        self._refuse_weights()
        training = inputs.read_training(
            inputs.as_frame(X), y, self._columns(), sample_weight=sample_weight, n_states=self.n_states_
        )
        check_rows(self._fit, training.rows, training.x)
        names = np.arange(training.rows.dt.size).astype(np.str_)
        sample = Sample(training.rows, training.x, names, self.covariates_)
        found = check_fit(
            self._fit, sample, options=self._options(), follows=follows, replicates=replicates, seed=seed
        )
        return self._copy(replace(self._fit, fit_test=found))

    def find_violations(self, X: Any, *, level: float = LEVEL) -> tuple[Violation, ...]:
        """Test what the model of pairs assumes: no errors of inspection, bridges alike, no trend, and so on.

        X has the rows of the fit with the columns of ``pair_visits``: state_1, state_2, interval_years, and as far
        as known bridge_id, member, history, date_1, visit_1 and visit_2. Give it the pairs with improvements by
        one rating (``upward="keep"``): what is wrong with those is tested too. Each test has a p-value that allows
        for the others, or the reason why it was not made; ``found`` says that the rows contradict the assumption.

        Examples
        --------
        >>> import polars as pl
        >>> import rekka
        >>> inventory = rekka.simulate_inventory(200, preset="plain", seed=3, error=0.12)
        >>> panel = rekka.read_panel(inventory.inspections)
        >>> rows = rekka.pair_visits(panel, upward="keep").frame.filter(pl.col("case") == "Pier")
        >>> fitted = rows.filter(pl.col("state_2") >= pl.col("state_1"))
        >>> model = rekka.ExponentialHazardMarkovModel(covariates=[]).fit(fitted, fitted["state_2"])
        >>> [one.name for one in model.find_violations(rows) if one.found][0]
        'errors'

        """
        check_is_fitted(self)
        refuse_histories(self._fit, "A test of its assumptions", "Judge it by the ratings of later visits.")
        self._refuse_weights()
        return find_violations(self._fit, inputs.as_frame(X).to_polars(), level=level)

    def goodness(self, X: Any, y: Any, **options: Any) -> FitTest | None:
        """Test of whether the model describes the rows it was fitted to; ``check_fit`` has the options."""
        return self.check_fit(X, y, **options).fit_test_

    def to_json(
        self,
        *,
        case: str | None = None,
        labels: Sequence[str] | None = None,
        reading: TableReading | None = None,
    ) -> str:
        """Fitted model as text, complete and exact; read it with ``from_json``.

        ``case`` names the component, ``labels`` the states, best first, and ``reading`` is how the
        table was read, as ``Transitions.reading`` has it: forecasts then read theirs in the same way.
        """
        check_is_fitted(self)
        parameters = {
            name: list(value) if name in ("covariates", "advance", "categories") and value is not None else value
            for name, value in self.get_params(deep=False).items()
            if name != "memory"  # of the machine, not of the model
        }
        if not self._fit.coding:  # files without categories stay as earlier versions read them
            parameters = {name: value for name, value in parameters.items() if name not in RULES}
        parameters = drop_elements(parameters)  # likewise those without histories
        if self.scaling is not None:  # a CovariateScaler or a list of names goes by its name
            parameters["scaling"] = self._fit.scaling.method
        return dump_model(
            self._fit,
            parameters,
            list(self.feature_names_in_),
            case=self.case_ if case is None else case,
            labels=self.labels_ if labels is None else labels,
            reading=self.reading_ if reading is None else reading,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a fitted model from ``to_json``: the same predictions, tables and certificate, bit for bit."""
        saved = load_saved(text)
        unknown = sorted(set(saved.parameters) - set(cls._get_param_names()))
        if unknown:
            raise ModelFileError(f"This rekka model file is damaged: it names an option {unknown[0]!r}.")
        model = cls(**{"clock": saved.fit.clock.kind} | saved.parameters)  # older files do not name it
        model._adopt(saved.fit, saved.features, saved.case, saved.labels)
        model.reading_ = saved.reading
        return model

    def _options(self) -> Options:
        names = Options.__dataclass_fields__.keys() - {"family", "coding"}
        coding = self._fit.coding if hasattr(self, "_fit") else NO_CODING
        return Options(**{name: getattr(self, name) for name in names}, family=self._family, coding=coding)

    def _take_rules(self) -> CodingRules:
        """Rules for categories."""
        named = self.covariates is not None
        return CodingRules(self.categories, self.unseen, self.rare, self.missing, chosen=named)

    def _check_units(self, covariates: Sequence[str], coding: Coding) -> None:
        """Refuse units of what is no covariate, or no number."""
        check_units(self.units, [name for name in covariates if name not in coding.terms])

    def _refuse_weights(self) -> None:
        """Refuse to test a fit against the frequencies of its rows that was not meant to describe them."""
        for option, what in (("class_weight", "class weights"), ("half_life", "a half-life")):
            if getattr(self, option) is not None:
                raise BadOption(
                    f"{option} is {getattr(self, option)!r}: a fit with {what} is not meant to describe the "
                    f"frequencies of its rows, so it has no test of fit. Fit without {what} to test the model.",
                    option=option,
                    value=getattr(self, option),
                )

    def _columns(self) -> inputs.Columns:
        """Columns that the model reads."""
        return inputs.Columns(self.start, self.dt, self.covariates_, self._fit.coding)

    def _adopt(
        self, fit: Fit, features: Sequence[str], case: str | None = None, labels: tuple[str, ...] | None = None
    ) -> None:
        """Set the fitted attributes."""
        by_state = fit.inference.coefficients.reshape(fit.n_states - 1, -1)
        self._fit, self._family = fit, fit.family.name
        self.feature_names_in_ = np.asarray(features, dtype=object)
        self.n_features_in_ = len(features)
        self.covariates_, self.coding_ = fit.covariates, fit.coding
        self.n_states_ = fit.n_states
        self.classes_ = np.arange(1, fit.n_states + 1)
        self.scaling_ = fit.scaling
        self.coef_, self.intercept_ = by_state[:, 1:], by_state[:, 0]
        self.coefficient_scale_ = "native" if fit.native else fit.scaling.method
        self.scaled_coef_, self.scaled_intercept_ = fit.beta[:, 1:], fit.beta[:, 0]
        self.covariance_ = fit.inference.covariance
        self.log_likelihood_ = fit.inference.log_likelihood
        self.aic_, self.bic_ = fit.inference.aic, fit.inference.bic
        self.outcome_, self.converged_ = fit.outcome, fit.converged
        self.clock_ = fit.clock
        self.certificate_, self.survey_, self.resampled_ = fit.certificate, fit.survey, fit.resampled
        self.fit_test_ = fit.fit_test
        self.records_ = records = fit.records
        self.errors_ = None if records is None or records.elements.pattern is None else records.errors
        self.frailty_variance_ = None if records is None else records.frailty_variance
        self.frailty_ = None if records is None else frailty_table(records)
        self.improvements_ = None if records is None else records.improvements
        self.trend_ = None if records is None else records.trend
        self.first_ = records.first if records is not None and records.elements.pattern is not None else None
        self.case_, self.labels_ = case, labels
        self.reading_: TableReading | None = None

    def _copy(self, fit: Fit) -> Self:
        """Copy of the model with another fit of the same rows."""
        model: Self = clone(self)
        model._adopt(fit, list(self.feature_names_in_), self.case_, self.labels_)
        model.reading_ = self.reading_
        return model

    def _read(self, X: Any) -> inputs.Predictors:
        check_is_fitted(self)
        rows = inputs.read_predictors(inputs.as_frame(X), self._columns())
        inputs.check_supported(rows.start, self.n_states_, "start")
        return rows


def _refuse_cluster(cluster: Any) -> None:
    """Refuse a cluster for rows in memory."""
    if cluster is not None:
        raise InputError(
            "The rows are in memory here, and the workers of a cluster read them from files. Write them as "
            "Parquet where all workers can read them, and give the path."
        )


def _name_groups(fit: Fit, column: Any) -> Fit:
    """Fit of histories whose records name the column of the groups, if it is known."""
    if fit.records is None or not isinstance(column, str):
        return fit
    return replace(fit, records=replace(fit.records, by=column))


def likelihood_ratio_test(
    smaller: ExponentialHazardMarkovModel, larger: ExponentialHazardMarkovModel
) -> ChiSquaredTest:
    """Test a model against a larger one that has it as a special case, both fitted to the same rows.

    Rows are taken as independent; with several rows a bridge ``wald_tests`` of a fit with ``groups`` is safer.
    Refused are models of other rows, models that are not nested, and fits that are not certified or have a
    penalty, class weights or a half-life.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(400, n_states=3, seed=1)
    >>> plain, aged = (
    ...     rekka.ExponentialHazardMarkovModel(covariates=names).fit(rows, rows["state_2"])
    ...     for names in ([], ["age_at_inspection_1"])
    ... )
    >>> test = rekka.likelihood_ratio_test(plain, aged)
    >>> test.degrees_of_freedom, test.p_value < 0.05
    (2, True)

    """
    return likelihood_ratio(_take_fit(smaller), _take_fit(larger))


def nested_models(models: Mapping[str, ExponentialHazardMarkovModel]) -> TitledTable:
    """Table of models by name, the smallest first: parameters, log-likelihood, AIC, BIC, likelihood ratio test.

    Each model is tested against the one before it (``likelihood_ratio_test``).

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(400, n_states=3, seed=1)
    >>> names = {"no covariates": [], "age": ["age_at_inspection_1"]}
    >>> table = rekka.nested_models({
    ...     name: rekka.ExponentialHazardMarkovModel(covariates=own).fit(rows, rows["state_2"])
    ...     for name, own in names.items()
    ... })
    >>> table["parameters"].to_list()
    [2, 4]

    """
    return nested_table({name: _take_fit(model) for name, model in models.items()})


def _take_fit(model: ExponentialHazardMarkovModel) -> Fit:
    """Fit of a model whose log-likelihood is that of its rows."""
    check_is_fitted(model)
    for option, what in (("class_weight", "class weights"), ("half_life", "a half-life")):
        if getattr(model, option) is not None:
            raise BadOption(f"A likelihood ratio test needs fits without {what}.", option=option)
    refuse_histories(model._fit, "A likelihood ratio test", "Compare forecasts of later visits instead.")
    return model._fit


def log_loss_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean log loss, for ``scoring=`` of scikit-learn's model selection: higher is better.

    Rows of states worse than any of the training fold are left out, because a model has no probability for them;
    NaN where none is left. ``estimator`` is a model or a pipeline that ends in one.

    Examples
    --------
    >>> import rekka
    >>> from sklearn.model_selection import cross_val_score
    >>> rows = rekka.simulate_transitions(400, n_states=3, seed=1)
    >>> model = rekka.ExponentialHazardMarkovModel(covariates=["age_at_inspection_1"])
    >>> cross_val_score(model, rows.to_pandas(), rows["state_2"], scoring=rekka.log_loss_scorer, cv=3).shape
    (3,)

    """
    end = np.asarray(y)
    known = end <= estimator.classes_[-1]
    if not known.any():
        return float("nan")
    p = estimator.predict_proba(_safe_indexing(X, np.flatnonzero(known)))
    chosen = p[np.arange(len(p)), np.searchsorted(estimator.classes_, end[known])]
    with np.errstate(divide="ignore"):
        return float(np.log(chosen).mean())
