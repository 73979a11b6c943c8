"""Verifying: a drafter in a real vLLM, judged by what the engine does.

This file imports nothing: `worker.py` runs under interpreters that have vLLM and none of eaglehub's dependencies.
"""
