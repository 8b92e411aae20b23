"""Calls for what they do."""

from tile2cu.analysis.sync_calls import BLOCK_VOTES
from tile2cu.core.expr import Call
from tile2cu.core.program import CallStmt
from tile2cu.frontend.context import Context


def perform(cx: Context, call: Call) -> None:
    """Record a call whose value nobody takes."""
    cx.expression(call)
    cx.recorder.emit(CallStmt(call=call, **cx.recorder.take().fields))


def is_effect(value: object) -> bool:
    """Whether a call does something besides giving a value."""
    if not isinstance(value, Call):
        return False
    return value.function[0] == ":" or value.function.startswith("random.") or value.function in BLOCK_VOTES
