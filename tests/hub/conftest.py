"""Fixtures of other folders that a drafter on the Hub goes through."""

from tests.verify.conftest import bench

__all__ = ["bench"]
