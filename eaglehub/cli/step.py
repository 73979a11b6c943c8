"""A command run by a recipe: `python -m eaglehub.cli.step ARGUMENTS`.

Standard input is a lifeline: when that closes, whoever waits for this command is gone, and all of it ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from eaglehub.cli.main import main


def _end_with_parent() -> None:
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(main())
