"""What a checkpoint says, in canonical terms, with everything that is not certain about it."""

from eaglehub.reading.journal import Answers, Resolution
from eaglehub.reading.read import Reading, read_drafter

__all__ = ["Answers", "Reading", "Resolution", "read_drafter"]
