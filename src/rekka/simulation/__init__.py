"""Data drawn from known hazards: for the demo, the tests, the docs and the benchmarks."""
