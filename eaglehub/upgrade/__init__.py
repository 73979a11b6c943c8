"""Upgrading: an EAGLE-3 drafter becomes a 3.1 one that drafts as before, without training."""
