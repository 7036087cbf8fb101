"""rekka: deterioration models you can trust, from infrastructure inspection records."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rekka.errors import InputError as InputError
    from rekka.errors import RekkaError as RekkaError
    from rekka.model.certificate import affine_agreement as affine_agreement
    from rekka.model.estimator import ExponentialHazardMarkovModel as ExponentialHazardMarkovModel
    from rekka.model.probabilities import transition_probabilities as transition_probabilities
    from rekka.simulate import simulate_transitions as simulate_transitions

# Where each public name lives; loaded on first use, so that `import rekka` is instant.
_HOMES = {
    "ExponentialHazardMarkovModel": "rekka.model.estimator",
    "InputError": "rekka.errors",
    "RekkaError": "rekka.errors",
    "affine_agreement": "rekka.model.certificate",
    "simulate_transitions": "rekka.simulate",
    "transition_probabilities": "rekka.model.probabilities",
}

__version__ = "0.1.0"
__all__ = [
    "ExponentialHazardMarkovModel",
    "InputError",
    "RekkaError",
    "__version__",
    "affine_agreement",
    "simulate_transitions",
    "transition_probabilities",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rekka' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
