"""Prompts: eaglehub's own suites, and the one loader of people's prompt files."""

from __future__ import annotations

from eaglehub.prompts.conversation import Conversation, digest
from eaglehub.prompts.load import SUITES, load_prompts, load_suite

__all__ = ["SUITES", "Conversation", "digest", "load_prompts", "load_suite"]
