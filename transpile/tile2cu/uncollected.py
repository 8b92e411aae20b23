"""Work during which Python does not collect cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collections of cycles wait: each would visit all programs and their facts, which are kept, and free little."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # what a server froze stays so
                gc.freeze()
                gc.unfreeze()  # all objects are old: else the next new one would begin a collection that visits them
            gc.enable()
