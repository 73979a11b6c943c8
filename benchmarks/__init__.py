"""Measurements of time and memory; run one with `python -m benchmarks.NAME`."""
