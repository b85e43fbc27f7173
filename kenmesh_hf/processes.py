"""Processes that do not outlive the one that started them."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Ends this process when its parent does: a killed parent cannot, and it would wait for ever."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
