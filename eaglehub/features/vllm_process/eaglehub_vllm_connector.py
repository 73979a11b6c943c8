"""vLLM's connector that writes hidden states to files, made to work on machines without CUDA too.

Imported by vLLM itself, by its bare name, in the processes that `worker.py` starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from vllm.distributed.kv_transfer.kv_connector.v1.example_hidden_states_connector import (
    ExampleHiddenStatesConnector,
    extract_from_kv_cache,
)


class _Done:
    def query(self) -> bool:
        return True


class FeaturesConnector(ExampleHiddenStatesConnector):  # type: ignore[misc]
    """The same, writing at once where there are no CUDA streams to copy on."""

    def _submit_async_write(self, pending: Any) -> None:
        if torch.cuda.is_available():
            super()._submit_async_write(pending)
            return
        first = torch.tensor(pending.block_ids)[:, None] * self._block_size
        slots = (first + torch.arange(self._block_size)).flatten()
        states = extract_from_kv_cache(self._kv_cache, slots, len(pending.token_ids))
        Path(pending.filename).parent.mkdir(parents=True, exist_ok=True)
        save_file({"hidden_states": states.contiguous(), "token_ids": pending.token_ids.clone()}, pending.filename)
        lock = self._lock_fds.pop(pending.req_id, None)
        if lock is not None:
            os.close(lock)
        self._req_copy_events[pending.req_id] = _Done()
