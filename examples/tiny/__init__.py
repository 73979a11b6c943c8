"""A tiny target and a drafter for it, trained on the spot in about a minute: `python -m examples.tiny.train`."""
