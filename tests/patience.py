"""How long tests wait for other threads and processes."""

import time
from collections.abc import Callable
from typing import Any

# Seconds. Only something that hangs may take so long, never a machine that is busy.
PATIENCE = 600


def wait_until(condition: Callable[[], Any], what: str = "what the test waits for") -> Any:
    """The first true value of a condition; `what` says what did not come about if there is none."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} did not come about in {PATIENCE} seconds"
        time.sleep(0.01)
    return value
