import json

import numpy as np
import pytest
from scaling_cases import NAMES, X

from rekka.core.errors import BadOption, ModelFileError
from rekka.scaling.operators import ForeignScaling
from rekka.scaling.registry import fit_scaling
from rekka.scaling.serial import read_scaling, scaling_to_json

CHAIN = json.loads(scaling_to_json(fit_scaling("boxcox+zscore", X, NAMES)))
ONE = json.loads(scaling_to_json(fit_scaling("zscore", X, NAMES)))


def changed(file, *path, **entries):
    """A file with entries changed at a path."""
    again = json.loads(json.dumps(file))
    part = again
    for step in path:
        part = part[step]
    part.update(entries)
    return json.dumps(again)


def test_the_text_says_what_it_is():
    assert (ONE["format"], ONE["version"]) == ("rekka-scaling", 1)
    assert ONE["scaling"]["kind"] == "affine"
    assert ONE["scaling"]["method"] == "zscore"
    assert [link["method"] for link in CHAIN["scaling"]["links"]] == ["boxcox", "zscore"]


def test_every_bit_of_a_number_survives():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**52, 4000).view(np.float64) * 1e-3 + rng.normal(size=4000)
    x = np.column_stack([np.r_[value, value * 2] for value in x])
    fitted = fit_scaling("zscore", x, [f"c{c}" for c in range(x.shape[1])])
    again = read_scaling(scaling_to_json(fitted)).scaling
    for field in ("low", "high", "offset", "scale"):
        np.testing.assert_array_equal(getattr(again, field), getattr(fitted, field))


def test_names_may_be_anything():
    fitted = fit_scaling("log", X, ("橋長 [m]", 'a "quote"', "\u2028"))
    assert read_scaling(scaling_to_json(fitted)).scaling.names == fitted.names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text itself: Invalid JSON"),
        ("[]", "the text itself: Input should be an object"),
        ("null", "the text itself: Input should be an object"),
        ('{"format": "rekka-model"}', "format: Input should be 'rekka-scaling'"),
        (changed(ONE, version=0), "version: Input should be 1"),
        (changed(ONE, surprise=1), "surprise: Extra inputs are not permitted"),
        (changed(ONE, named="yes"), "named: Input should be a valid boolean"),
        (changed(ONE, "scaling", kind="spline"), "scaling: Input tag 'spline' found using 'kind' does not match"),
        (changed(ONE, "scaling", method="zscores"), "there is no operator 'zscores'"),
        ('{"format": "rekka-scaling", "version": 1, "scaling": {"kind": "affine", "method": "zscore", "names": []}}',
         "scaling.affine.low: Field required"),
        (changed(ONE, "scaling", exponent=[1.0]), "scaling.affine.exponent: Extra inputs are not permitted"),
        (changed(ONE, "scaling", offset=[1.0]), "offset has 1 entries for 3 names"),
        (changed(ONE, "scaling", offset=[1.0, 2.0, "3"]), "scaling.affine.offset.2: Input should be a valid number"),
        (changed(ONE, "scaling", scale=[1.0, 2.0, -3.0]), "Input should be greater than or equal to 0"),
        (changed(ONE, "scaling", scale=[1.0, 2.0, float("nan")]), "scaling.affine.scale.2: Input should be"),
        (changed(ONE, "scaling", high=[1.0, 2.0, float("inf")]), "scaling.affine.high.2: Input should be a finite"),
        (changed(ONE, "scaling", high=[-1e9, 2.0, 3.0]), "low is above high"),
        (changed(CHAIN, "scaling", links=CHAIN["scaling"]["links"][:1]), "scaling.chain.links: List should have at"),
        (changed(CHAIN, "scaling", "links", 1, names=["a", "b", "c"]), "the links have different names"),
        (changed(CHAIN, "scaling", "links", 0, kind="chain"), "scaling.chain.links.0: Input tag 'chain'"),
    ],
)  # fmt: skip
def test_foreign_or_damaged_text_is_refused(text, message):
    with pytest.raises(ModelFileError) as caught:
        read_scaling(text)
    assert str(caught.value).startswith("This is not a rekka scaling of version 1: ")
    assert message in str(caught.value)
    assert str(caught.value).endswith("Write one with CovariateScaler.to_json() or scaling_to_json().")


def test_a_foreign_object_has_no_text():
    with pytest.raises(BadOption, match="cannot be written as JSON"):
        scaling_to_json(ForeignScaling(object()))
