"""Which checks the normal run makes, and what each takes."""

# Not these: many fits, or an optimizer on slow formulas.
SLOW = {"oracle", "coverage"}
# What a check reads of the stored numbers, where it is not a block of its own name.
BLOCKS = {"psor_printed": ["psor"], "paper_hypotheses": ["paper_slips"]}
# Leaves of a block that say how a case is made or what it is called, not what is expected.
INPUTS = {"theta", "years", "start", "end", "rows", "made", "moves", "curve"}
EXPECTED_OF_PAPER = {
    "paper_counts": ("cases", "methods"),
    "paper_selection": ("selection",),
}
