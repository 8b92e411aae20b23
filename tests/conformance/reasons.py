"""Why a kernel that is emitted does not end equal to the interpreter: the second word of its status.

Most reasons are known by what a run says. A run that says something else has the reason `unknown`, which test_corpus.py
does not accept: a person finds the reason, and enters it here or in the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Reason:
    """`said` is found in the message of a run (run_kernel.py), None if a person enters the reason in the table.

    `sentence` is for docs/coverage.md.
    """

    said: str | None
    sentence: str


REASONS: Mapping[str, Reason] = {
    "no-output": Reason(r"nothing is written", "writes no tensor, as a test of the generated code"),
    "old-values": Reason(r"which thread comes first", "uses the old values of atomics, which depend on the order"),
    "order": Reason(None, "sums halves in the order in which threads come"),
    "blocks": Reason(r"blocks that run side by side", "blocks that run concurrently in a cluster"),
    "addresses": Reason(r"cannot interpret an address", "tensors at addresses that a table or an argument has"),
    "scalar-extents": Reason(r"the variable \w+, which has no value here", "a tensor's extents are scalar arguments"),
    "bits": Reason(r"the bits of \w+ as \w+", "a view of a tile's bits as another type"),
    "function": Reason(
        r"cannot interpret (the function \w+|the statement CallStmt|an operation on tiles at another place)",
        "functions that the interpreter lacks",
    ),
    "unwritten": Reason(r"^error\[uninitialised", "its own source reads memory that nothing wrote"),
    "misaligned": Reason(r"^error\[misaligned", "its own source copies 16 bytes to an address that is not aligned"),
    "race": Reason(r"^error\[race", "its own source lacks a barrier"),
    "time": Reason(r"^no end after|TimeoutError", "takes longer than a run may"),
}


def with_reason(status: str, message: str) -> str:
    """The status of a run, with the reason that its message gives if it needs one."""
    if status not in ("compiled", "ran"):
        return status
    found = (name for name, reason in REASONS.items() if reason.said and re.search(reason.said, message))
    return f"{status} {next(found, UNKNOWN)}"
