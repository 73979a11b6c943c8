"""Evaluating: a drafter's acceptance and drift without a server."""
