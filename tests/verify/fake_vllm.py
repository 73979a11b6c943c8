"""Stands in for an interpreter with vLLM: answers the worker's request as a well or badly behaved engine would.

Run as `fake_vllm.py MODE WORKER REQUEST RESULT`. Modes:

- `good`; `lossy`, `tied`, `cut` and `biased` (the drafter changes the output); `useless` and `lazy` (nothing accepted,
  nothing drafted); `worse` (a drafter named so is half as good);
- `refuses-json`, `drafter-refuses-json`; `defect`;
- `crash`, `crash-target`, `killed`, `memory`, `no-vllm`, `hang`, `hang-drafter`, `silent`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

K = 5
FACTS = {
    "vllm": "0.0.fake",
    "torch": "0",
    "python": "3",
    "platform": "cpu",
    "devices": [],
    "runner": "v1",
    "dtype": "float32",
    "max_model_len": 512,
    "max_num_batched_tokens": 1024,
    "chunked_prefill": True,
    "prefix_caching": True,
    "block_size": 16,
}


def main(mode: str, request_file: Path, result_file: Path) -> None:
    request = json.loads(request_file.read_text())
    drafter = request["speculative"]
    print("[eaglehub] start", file=sys.stderr, flush=True)
    misbehave(mode, drafter is not None, result_file)
    jobs = {job["name"]: run_job(mode, job, drafter) for job in request["jobs"]}
    result = {"error": None, "facts": FACTS, "seconds": {"import": 0.01, "start": 0.01}, "inside": None, "jobs": jobs}
    result_file.write_text(json.dumps(result))


def misbehave(mode: str, drafting: bool, result_file: Path) -> None:
    def fail(stage: str, message: str) -> None:
        result_file.write_text(json.dumps({"error": {"stage": stage, "message": message}}))
        sys.exit(0)

    if mode == "no-vllm":
        fail("import", "ModuleNotFoundError: No module named 'vllm'")
    if mode == "memory":
        fail("start", "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory\nin /home/someone/torch")
    if mode == "crash-target" or (mode == "crash" and drafting):
        print("ERROR /home/someone/models/x: bad", file=sys.stderr)
        print('Traceback (most recent call last):\n  File "/a/b.py", line 3\n    f()', file=sys.stderr)
        fail("job batch", "IndexError: index 900 out of range")
    if mode == "killed" and drafting:
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "silent" and drafting:
        sys.exit(3)
    if mode == "hang" or (mode == "hang-drafter" and drafting):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ["FAKE_PIDS"]).write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)


def run_job(mode: str, job: dict[str, Any], drafter: dict[str, Any] | None) -> dict[str, Any]:
    refuses = {"refuses-json": True, "drafter-refuses-json": drafter is not None}
    if job["name"] == "json" and refuses.get(mode):
        return {"error": "no grammar for this tokenizer"}
    if job["name"] == "sampling" and mode == "defect" and drafter:
        return {"defect": "a fault of this vLLM"}
    if "levels" in job:
        return {"seconds": 0.01, "levels": [run_level(level, drafter is not None) for level in job["levels"]]}
    prompts = job.get("prompts") or job["conversations"]
    outputs = [run_prompt(mode, job, number, drafter) for number in range(len(prompts))]
    walks = [sample["walk"] for output in outputs for sample in output["samples"] if sample["walk"]]
    accepted = [sum(sum(walk["accepted"][i + 1 :]) for walk in walks) for i in range(K)]
    drafts = sum(sum(walk["accepted"]) for walk in walks)
    counters = {"drafts": drafts, "draft_tokens": K * drafts, "accepted_tokens_per_pos": accepted}
    return {"seconds": 0.01, "outputs": outputs, "counters": counters if drafter else {}}


def run_level(level: dict[str, int], drafting: bool) -> dict[str, Any]:
    """100 tokens a request, at 50 tokens/s alone and twice that with a drafter, less the more users there are."""
    seconds = 2.0 * level["concurrency"] ** 0.5 / (2 if drafting else 1)
    requests = [{"tokens": 100, "first_token_s": 0.01, "seconds": seconds}] * level["requests"]
    return {"concurrency": level["concurrency"], "seconds": seconds * 2, "requests": requests}


def run_prompt(mode: str, job: dict[str, Any], number: int, drafter: dict[str, Any] | None) -> dict[str, Any]:
    rng = random.Random(f"{job['name']} {number} {drafter and job.get('temperature')}")
    samples = [run_sample(mode, job, number, drafter, rng) for _ in range(job.get("samples", 1))]
    return {"prompt_tokens": 400, "cached_tokens": 64 if job.get("keep_cache") else 0, "samples": samples}


def run_sample(
    mode: str, job: dict[str, Any], number: int, drafter: dict[str, Any] | None, rng: random.Random
) -> dict[str, Any]:
    biased = mode == "biased" and drafter is not None
    tokens = [rng.choice((7, 7, 8) if biased else (7, 8)) for _ in range(min(job["max_tokens"], 20))]
    alternatives = [[[9, 0.3], [10, 0.0005]] for _ in tokens]
    if drafter and not job.get("temperature"):
        if (mode, number) == ("lossy", 1):
            tokens[5] = 9
        if (mode, number) == ("tied", 1):
            tokens[5:] = [10, 0, 0]
        if (mode, number) == ("cut", 1):
            tokens = tokens[:5]
    text = " ".join(map(str, tokens))
    return {
        "tokens": tokens,
        "text": text,
        "stop": (job.get("stop") or {number: "7 8"})[number] if job["name"] == "stop" else None,
        "finish": "length",
        "alternatives": alternatives if "alternatives" in job else [],
        "walk": walk(mode, number, drafter) if drafter else None,
    }


def walk(mode: str, number: int, drafter: dict[str, Any]) -> dict[str, Any]:
    worse = mode == "worse" and Path(drafter["model"]).name == "worse"
    accepted = {"useless": [40, 0, 0, 0, 0, 0], "lazy": [0] * (K + 1)}.get(mode)
    accepted = accepted or ([40, 5 + number % 3, 2, 0, 0, 0] if worse else [20, 10 + number % 3, 5, 3, 1, 1])
    return {"accepted": accepted, "drafted": K * sum(accepted)}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[3]), Path(sys.argv[4]))
