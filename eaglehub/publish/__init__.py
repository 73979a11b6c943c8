"""Publishing: a drafter's folder becomes one commit on the Hub, or none."""
