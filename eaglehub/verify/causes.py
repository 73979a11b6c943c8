"""What a vLLM log means: the probable cause of a failed run, and what to do about it."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple


class Cause(NamedTuple):
    """A probable cause and its remedy, which may be empty."""

    what: str
    fix: str


# The first pattern found in the error or the log counts: from the particular to the general.
_PATTERNS = (
    (r"No module named 'vllm'", "vLLM is not installed there", "pip install 'eaglehub[vllm]', or --python INTERPRETER"),
    (r"Model Runner V2 requires Triton", "vLLM's V2 runner needs Triton, which this machine lacks", "--runner v1"),
    (
        r"No available memory for the cache blocks|larger than the (?:available|maximum)|KV cache is needed",
        "there is not enough memory for the KV cache",
        "--max-model-len or --gpu-memory-utilization",
    ),
    (
        r"Free memory on device|(?:GPU|CPU) memory utilization",
        "other processes hold the memory that vLLM wants",
        "--gpu-memory-utilization",
    ),
    (
        r"out of memory|OutOfMemory|MemoryError|[Cc]an(?:no|')t allocate memory|bad_alloc|failed to map segment",
        "there is not enough memory",
        "a smaller --max-model-len, a narrower --dtype, or a larger machine",
    ),
    (r"trust_remote_code|contains custom code", "a model comes with its own code", "--trust-remote-code, if you do"),
    (
        r"[Mm]odel architectures? .* (?:is|are) not supported|Unrecognized model|does not recognize this architecture",
        "this vLLM does not know the architecture",
        "a newer vLLM, or `eaglehub convert`",
    ),
    (
        r"no module or parameter named",
        "the checkpoint has a tensor that vLLM has no place for",
        "rewrite it with `eaglehub convert`",
    ),
    (
        r"index out of range|IndexError|device-side assert|out of bounds",
        "a token id lies outside the vocabulary: the drafter's d2t or vocab_size belongs to another target",
        "a drafter made for this target",
    ),
    (
        r"AssertionError|size mismatch|shapes? .*(?:mismatch|cannot be|incompatible|invalid)|is invalid for input",
        "a tensor does not have the shape that config.json announces, or that the target asks for",
        "check the drafter with `eaglehub inspect`",
    ),
    (r"Unsupported CPU attention", "vLLM's CPU backend does not support the head size", "run it on a GPU"),
    (r"unexpected keyword argument", "this vLLM does not know an engine argument", "see --engine-arg"),
)
_SIGNALS: dict[int, Cause] = {
    signal.SIGKILL: Cause(
        "killed, most often by the system when memory runs out", "a larger machine or smaller limits"
    ),
    signal.SIGILL: Cause("this build of vLLM uses instructions that the processor lacks", "another build of vLLM"),
    signal.SIGSEGV: Cause("vLLM crashed with a segmentation fault", "another version of vLLM or attention backend"),
    signal.SIGTERM: Cause("terminated from outside", ""),
}


def explain(error: str, log: list[str]) -> Cause:
    """The probable cause, from vLLM's own error (empty when it said none) and then from the errors in its log."""
    for text in filter(None, (error, "\n".join(line for line in log if "Error" in line))):
        for pattern, what, fix in _PATTERNS:
            if re.search(pattern, text):
                return Cause(what, fix)
    return Cause("for no reason that is known here", "")


def explain_exit(code: int, log: list[str]) -> Cause:
    """The probable cause of a process that ended without a result; a negative code is a signal."""
    crash = Cause("vLLM or a library that it uses crashed", "")
    return _SIGNALS.get(-code, crash) if code < 0 else explain("", log)
