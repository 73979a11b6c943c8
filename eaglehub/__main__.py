"""`python -m eaglehub`."""

from __future__ import annotations

import sys

from eaglehub.cli.main import main

sys.exit(main())
