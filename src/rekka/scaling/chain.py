"""Composition: operators applied one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rekka.core.errors import OutsideTrainingRange
from rekka.scaling.operators import Array, ColumnScaling, fitted_on


@dataclass(frozen=True)
class ChainScaling:
    """Operators one after the other, each fitted on what the one before made of the training rows."""

    kind: ClassVar[str] = "chain"

    links: tuple[ColumnScaling, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The covariates."""
        return self.links[0].names

    @property
    def method(self) -> str:
        """The names of the links, joined by +."""
        return "+".join(link.method for link in self.links)

    def transform(self, x: Array) -> Array:
        """Apply the links in turn."""
        z = x
        for done, link in enumerate(self.links):
            try:
                z = link.transform(z)
            except OutsideTrainingRange as error:
                if not done:
                    raise
                raise _after(self.links[:done], error.values, x) from None
        return z

    def inverse(self, z: Array) -> Array:
        """Undo the links, the last one first."""
        for link in reversed(self.links):
            z = link.inverse(z)
        return z

    def affine(self) -> tuple[Array, Array] | None:
        """Offset and factor of z = (x - offset) * factor where every link is of that form."""
        offset, factor = np.zeros(len(self.names)), np.ones(len(self.names))
        for link in self.links:
            then = link.affine()
            if then is None:
                return None
            flat = factor == 0
            offset = offset + np.where(flat, 0.0, then[0] / np.where(flat, 1.0, factor))
            factor = factor * then[1]
        return offset, factor

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to make it again."""
        return {"kind": self.kind, "links": [link.to_dict() for link in self.links]}


def _after(links: tuple[ColumnScaling, ...], values: dict[str, Any], x: Array) -> OutsideTrainingRange:
    """The error of a later link, with the value in the table beside the one that the link was given."""
    name, row = values["covariate"], values["row"]
    raw = float(x[row, links[0].names.index(name)])
    return OutsideTrainingRange(
        f"{values['method']} cannot transform {name} = {values['value']} after {ChainScaling(links).method} "
        f"(row {row}, where {name} is {raw}): {fitted_on(values)}.",
        **values | {"raw": raw},
    )
