"""Which coefficients exist, which are shared: the linear map from free parameters to coefficients.

    beta (K-1, p+1), flattened state by state, = select @ phi,   select (F, P) of zeros and ones

Every state has an intercept of its own; a covariate may act on some states only (``effects``), and states may
share one coefficient (``shared``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, did_you_mean

Array = NDArray[np.float64]
INTERCEPT = "intercept"

Effects = Mapping[str, Sequence[int]]
Shared = Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Layout:
    """Coefficient f belongs to state f // (p+1) and term f % (p+1); ``parameter[f]`` is -1 if it is absent."""

    terms: tuple[str, ...]
    n_states: int
    parameter: NDArray[np.int64]

    @property
    def n_parameters(self) -> int:
        """P, the number of free parameters."""
        return int(self.parameter.max()) + 1

    @property
    def select(self) -> Array:
        """The map from free parameters to coefficients, (F, P)."""
        matrix = np.zeros((self.parameter.size, self.n_parameters))
        present = self.parameter >= 0
        matrix[np.flatnonzero(present), self.parameter[present]] = 1.0
        return matrix

    @property
    def term_of(self) -> NDArray[np.int64]:
        """The term, 0 for the intercept, of each free parameter."""
        first = np.array([np.flatnonzero(self.parameter == q)[0] for q in range(self.n_parameters)])
        return first % len(self.terms)

    def states_of(self, parameter: int) -> list[int]:
        """The states, 1-based, in which a free parameter stands."""
        return [int(f) // len(self.terms) + 1 for f in np.flatnonzero(self.parameter == parameter)]

    def name(self, parameter: int) -> str:
        """'state 2: traffic_mean', or 'states 1, 2: ...' where it is shared."""
        states = self.states_of(parameter)
        label = ", ".join(map(str, states))
        return f"state{'s' if len(states) > 1 else ''} {label}: {self.terms[self.term_of[parameter]]}"


def build_layout(
    covariates: Sequence[str], n_states: int, effects: Effects | None, shared: Shared | None
) -> Layout:
    """Number the free parameters, state by state; checks both options against covariates and states."""
    effects, shared = dict(effects or {}), dict(shared or {})
    for option, table in (("effects", effects), ("shared", shared)):
        for name in table:
            if name not in covariates:
                raise BadOption(
                    f"{option} names {name}, which is not a covariate of this model. "
                    f"Covariates: {', '.join(covariates) or 'none'}.{did_you_mean(name, covariates)}",
                    option=option,
                    value=name,
                )
    for name, states in effects.items():
        _check_states("effects", name, states, n_states)
    parameter = np.full((n_states - 1, len(covariates) + 1), -1, dtype=np.int64)
    leader = {}
    for name, groups in shared.items():
        acts = effects.get(name, range(1, n_states))
        if isinstance(groups, str) or not all(isinstance(group, Sequence) for group in groups):
            raise BadOption(
                f"shared gives {groups!r} for {name}; a list of groups of states is needed, e.g. [[1, 2]]."
            )
        for group in groups:
            _check_states("shared", name, group, n_states)
            for state in group:
                if state not in acts:
                    raise BadOption(f"shared names state {state} for {name}, but effects leaves it out there.")
                if (name, state) in leader:
                    raise BadOption(f"shared names state {state} twice for {name}.")
                leader[name, state] = min(group)
    count = 0
    for state in range(1, n_states):
        for t, name in enumerate([INTERCEPT, *covariates]):
            first = leader.get((name, state), state)
            if t and state not in effects.get(name, range(1, n_states)):
                continue
            if first < state:
                parameter[state - 1, t] = parameter[first - 1, t]
            else:
                parameter[state - 1, t] = count
                count += 1
    return Layout((INTERCEPT, *covariates), n_states, parameter.ravel())


def _check_states(option: str, name: str, states: object, n_states: int) -> None:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise BadOption(f"{option} gives {states!r} for {name}; a list of states is needed, e.g. [1, 2].")
    for state in states:
        if state not in range(1, n_states):
            raise BadOption(
                f"{option} names state {state} for {name}; covariates can act on states 1 to {n_states - 1} "
                f"(K = {n_states}, and state {n_states} is never left).",
                option=option,
                value=state,
            )
