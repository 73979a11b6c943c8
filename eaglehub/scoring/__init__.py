"""Scoring: the reference drafter of a checkpoint, judged by the target's own answers; what evaluate, upgrade, finetune
and verify measure with.
"""
