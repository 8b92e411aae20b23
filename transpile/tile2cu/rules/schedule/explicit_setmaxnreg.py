"""Hopper: the user's setmaxnreg in groups of threads."""

from collections.abc import Iterator

from tile2cu.analysis.groups import group_of, with_groups
from tile2cu.analysis.prelude import around
from tile2cu.core.decisions import NO_SETMAXNREG, SETMAXNREG
from tile2cu.core.facts import rejected
from tile2cu.core.program import Launch, SetRegisters
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_SHARES = """\
S = T.alloc_shared((64,), "float32")
with T.ws(0):
    T.dec_max_nreg(40)
    T.clear(S)"""
_ALONE = "setmaxnreg moves registers between warpgroups, and the block has one group of threads"
_OF_A_MULTIPROCESSOR = 64 * 1024
_WARPGROUP = 128
_FEWEST, _MOST, _STEP = 24, 256, 8  # operands of setmaxnreg


@rule(
    "launch.explicit.registers",
    phase=Phase.PIPELINE,
    on=Launch,
    writes=(NO_SETMAXNREG, SETMAXNREG),
    source="PTX ISA, 'setmaxnreg'; CUDA C++ Programming Guide, 'Compute Capabilities': 64 K registers per SM",
    examples=(Example(_SHARES, 3, "not setmaxnreg", _ALONE, target="cuda:sm_90a"),),
)
def explicit_setmaxnreg(launch: Launch, context: Context) -> Iterator[Decision]:
    """Groups get the registers of T.set_max_nreg, if all shares add up to those that the block starts with.

    A block starts with an even multiple of 8 registers per thread. A setmaxnreg.inc waits until other warpgroups have
    released registers: if there are too few it waits forever, so that all of them are left out then.

    Gives: the registers that a thread starts with, and which statements change that; why others are left out.
    """
    found = [
        (stmt, group, any(group_of(outer) is None for outer in around(launch.body, stmt)))
        for stmt, group in with_groups(launch.body)
        if isinstance(stmt, SetRegisters)
    ]
    if not found:
        return
    started_with = min(_OF_A_MULTIPROCESSOR // launch.block_threads // _STEP * _STEP, _MOST)
    reason = _unsupported(launch, found, started_with)
    for stmt, _, _ in found:
        if reason:
            yield rejected(stmt, NO_SETMAXNREG, reason, "give the groups shares that add up")
        else:
            yield stmt, SETMAXNREG, started_with
    if not reason:
        yield launch, SETMAXNREG, started_with


_Found = tuple[SetRegisters, int | None, bool]  # the statement, its group, and whether it is in a loop or branch


def _unsupported(launch: Launch, found: list[_Found], started_with: int) -> str:
    """Why the block's registers cannot be shared as the user states; empty if they can."""
    shares = {group: stmt.count for stmt, group, _ in found}
    if launch.groups == 1:
        return _ALONE
    if any(size % _WARPGROUP for size in launch.sizes):
        return f"setmaxnreg moves registers between warpgroups, and groups have {launch.sizes} threads"
    for stmt, group, inside in found:
        line = f"line {stmt.span.line}"
        if group is None or inside:
            return f"{line} is in a loop, in a branch, or outside of the groups"
        if stmt.count % _STEP or not _FEWEST <= stmt.count <= _MOST:
            return f"{line} asks for {stmt.count} registers, which is not a multiple of 8 from 24 to 256"
        if stmt.more != (stmt.count > started_with) and stmt.count != started_with:
            wish = "more" if stmt.more else "fewer"
            return f"{line} asks for {wish}, {stmt.count} registers, and a thread starts with {started_with}"
    if len(shares) < len(found):
        return "a group sets its registers twice"
    asked = sum(shares.get(group, started_with) * size for group, size in enumerate(launch.sizes))
    if asked > started_with * launch.block_threads:
        return (
            f"the groups ask for {asked:,} registers, and the block starts with {started_with * launch.block_threads:,}"
        )
    return ""
