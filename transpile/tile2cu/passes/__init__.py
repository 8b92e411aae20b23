"""Passes: rewrites that preserve the computation, so that rules can decide about it, or for speed.

They are listed here in the order in which they run. Each asks the dependence graph (analysis/dependence.py) before it
moves anything. The result is checked by the same graph (analysis/rewrites.py): a pass whose difference has a change
that dependences do not allow, and that the list does not claim for it, is rejected. Tests run every program before and
after each pass that changed it.
"""

import warnings
from collections.abc import Callable

from tile2cu.analysis.rewrites import Change, violations
from tile2cu.core.program import Launch
from tile2cu.core.record import Record
from tile2cu.passes.clear_in_gemm import overwriting_gemms
from tile2cu.passes.collapse_loops import joined_loops
from tile2cu.passes.dead_code import without_unused
from tile2cu.passes.drop_waits import without_early_starts, without_idle_waits, without_waits
from tile2cu.passes.forward_copies import forwarded_copies
from tile2cu.passes.gather_rows import loops_that_gather
from tile2cu.passes.group_fragments import disjoint
from tile2cu.passes.if_conversion import if_converted
from tile2cu.passes.linear_index import flat_loops
from tile2cu.passes.loop_to_copy import loops_that_copy
from tile2cu.passes.lower_tile_ops import normal_form
from tile2cu.passes.mask_after_gemm import masks_after_gemms
from tile2cu.passes.predicate_exits import exits_beside_tiles
from tile2cu.passes.prefetch_rows import prefetched_rows
from tile2cu.passes.reshape_fragments import views_through_shared
from tile2cu.passes.shared_divisors import divisions_by_shared_numbers
from tile2cu.passes.shared_operands import operands_in_shared
from tile2cu.passes.skip_iterations import skipped_iterations
from tile2cu.passes.sum_after_loop import sums_after_loops
from tile2cu.passes.thread_branches import by_thread
from tile2cu.passes.thread_local_rows import rows_in_registers
from tile2cu.passes.total_of_partials import totals_of_partials
from tile2cu.passes.uniform_updates import with_uniform_updates
from tile2cu.passes.unit_dimensions import without_ones
from tile2cu.passes.whole_warps import in_whole_warps
from tile2cu.targets import Target


class RejectedPass(UserWarning):
    """A pass made a change that it does not claim, which is an error of the pass: the launch stays as it was."""


Watch = Callable[[str, Launch, Launch], None]  # called with a pass's name, and the launch before and after it


class Needs(Record, frozen=True):
    """Inputs of a pass: the target, and whether the user writes all barriers between shared-memory accesses."""

    target: Target
    own_barriers: bool


def _always(needs: Needs) -> bool:
    return True


class Pass(Record, frozen=True, kw_only=True):
    """A rewrite of a launch: `run` returns the same launch, or None, where it does not apply.

    `claims` are changes that are legal for a reason which dependences do not show.
    """

    name: str
    run: Callable[[Launch], Launch | None]
    when: Callable[[Needs], bool] = _always
    claims: frozenset[Change] = frozenset()

    def applied(self, launch: Launch, needs: Needs, watch: Watch | None = None) -> Launch | None:
        """The rewritten launch; None where the pass changed nothing, is not for this target, or is rejected."""
        after = self.run(launch) if self.when(needs) else None
        if after is None or after == launch or not accepted(self.name, launch, after, self.claims):
            return None
        if watch is not None:
            watch(self.name, launch, after)
        return after


def accepted(name: str, before: Launch, after: Launch, claims: frozenset[Change] = frozenset()) -> bool:
    """Whether dependences allow what a pass changed, but for what it claims. Where not, a warning names the pass."""
    broken = next((each for each in violations(before, after) if each.change not in claims), None)
    if broken is not None:
        warnings.warn(f"pass {name} is rejected: {broken}", RejectedPass, stacklevel=2)
    return broken is None


def _sm90_or_later(needs: Needs) -> bool:
    return not needs.target.mfma and needs.target.capability >= (9, 0)


def _has_mfma(needs: Needs) -> bool:
    return bool(needs.target.mfma)


def _has_wgmma(needs: Needs) -> bool:
    return bool(needs.target.wgmma)


def _has_cp_async(needs: Needs) -> bool:
    return bool(needs.target.cp_async)


def _has_tma(needs: Needs) -> bool:
    return bool(needs.target.tma)


# What the target has not, or what awaits nothing, orders nothing.
_WAITS = frozenset((Change.WAITS,))
# A branch on threads becomes the group of these threads, or a condition of each element.
_BRANCHES = frozenset((Change.BRANCHES,))
# Each group has fragments of its own: no group reads what another one has written to a fragment of that name.
_FRAGMENTS = frozenset((Change.BRANCHES, Change.LEFT_OUT))
# A condition on a fragment becomes one on the tensor that it is a copy of.
_CONDITIONS = frozenset((Change.BRANCHES,))

# A statement behind a `break` or `continue` of some threads is in a branch on the predicate that is set in its place.
_EXITS = frozenset((Change.BRANCHES, Change.WAITS))

_WAVE = 64  # threads: of every target with MFMA

PREDICATE_EXITS = "predicate-exits"
READ_FIRST = "read-first"

PREPARATION: tuple[Pass, ...] = (
    Pass(name="drop-wgmma-waits", run=without_waits, when=lambda needs: not needs.target.wgmma, claims=_WAITS),
    Pass(
        name="drop-dependent-launch",
        run=without_early_starts,
        when=lambda needs: not _sm90_or_later(needs),
        claims=_WAITS,
    ),
    Pass(name=PREDICATE_EXITS, run=exits_beside_tiles, claims=_EXITS),
    Pass(
        name="thread-branches",
        run=lambda launch: by_thread(launch, groups=True),
        when=lambda needs: not _has_mfma(needs),
        claims=_BRANCHES,
    ),
    Pass(name="thread-branches", run=lambda launch: by_thread(launch, groups=False), when=_has_mfma, claims=_BRANCHES),
    Pass(name="whole-warps", run=lambda launch: in_whole_warps(launch, _WAVE), when=_has_mfma),
    Pass(name="drop-idle-waits", run=without_idle_waits, claims=_WAITS),
    Pass(name="dead-code", run=without_unused),
    Pass(name="group-fragments", run=disjoint, claims=_FRAGMENTS),
    Pass(name="unit-dimensions", run=without_ones),
    Pass(name="total-of-partials", run=totals_of_partials),
    Pass(name="reshape-fragments", run=views_through_shared),
    Pass(name="collapse-loops", run=joined_loops),
    Pass(name="linear-index", run=flat_loops),
    Pass(name="forward-copies", run=forwarded_copies),
    Pass(name="lower-tile-ops", run=normal_form),
    Pass(name="sum-after-loop", run=sums_after_loops),
    Pass(name="mask-after-gemm", run=masks_after_gemms),
    Pass(name="shared-divisors", run=divisions_by_shared_numbers),
    Pass(name="loop-to-copy", run=loops_that_copy, when=_has_cp_async),
    Pass(name="thread-local-rows", run=rows_in_registers, when=_has_wgmma),
    Pass(name="clear-in-gemm", run=overwriting_gemms, when=_has_wgmma),
    Pass(name="shared-operands", run=operands_in_shared, when=_has_wgmma),
    Pass(
        name="uniform-updates",
        run=with_uniform_updates,
        when=lambda needs: not needs.own_barriers,
        claims=_BRANCHES,
    ),
)

# Tried in order: the first that allows a producer warp is kept.
FOR_PRODUCERS: tuple[Pass, ...] = (
    Pass(name="skip-iterations", run=skipped_iterations, when=_has_tma, claims=_CONDITIONS),
    Pass(name="if-conversion", run=if_converted, when=_has_tma),
    Pass(name="prefetch-rows", run=prefetched_rows, when=_has_tma),
)

GATHER_BY_PRODUCER = Pass(
    name="gather-rows", run=lambda launch: loops_that_gather(launch, by_tensors=True), when=_has_wgmma
)
GATHER_ROWS = Pass(name="gather-rows", run=loops_that_gather, when=_has_cp_async)

STAGE_THROUGH_SHARED = "stage-through-shared"
HOLD_OPERAND = "register-operands"
LOAD_OPERAND = "loaded-operands"
COPY_OPERAND = "copied-operands"
UNSTAGE_RESULTS = "unstage-results"
IN_PLACE_UPDATES = "in-place-updates"
STORES_INSTEAD = "stores-to-copies"
SPLIT_BRANCHES = "split-branches"
AGREE_ON_BRANCHES = "agree-on-branches"
SYNC_ITERATIONS = "sync-iterations"

# Rewrites that rules ask for while layouts are decided: all decisions are made again after each.
ASKED = {
    STAGE_THROUGH_SHARED: "An operation that needs a fragment's elements in other threads gets them by a shared tile.",
    HOLD_OPERAND: "The first operand of an MMA that no iteration changes is copied to registers before the loop.",
    LOAD_OPERAND: "The first operand of an MMA that no iteration changes is loaded to registers, not to shared memory.",
    COPY_OPERAND: "The first operand of an asynchronous MMA is copied to registers that nothing else writes.",
    UNSTAGE_RESULTS: "A shared tile that only takes a result to a tensor is left out.",
    IN_PLACE_UPDATES: "An in-place loop writes shared tiles: one thread executes all iterations of an element.",
    READ_FIRST: "A statement in which threads read elements that others write is two: all have read before any writes.",
    AGREE_ON_BRANCHES: "A block votes on a branch or `while` that asks a tensor which the kernel writes, and in which a"
    " barrier is needed, and one thread reads a loop's bounds for all: threads read the tensor at different times.",
    SYNC_ITERATIONS: "A barrier ends each iteration of a `while` whose condition reads what the iterations write.",
    SPLIT_BRANCHES: "A divergent branch in which a barrier is needed is split: all threads reach the barrier between.",
    STORES_INSTEAD: "A loop that stores a result's transpose, or a result on a condition, is a copy; one that may begin"
    " at a negative coordinate has a branch.",
}

# A loop that stores under a condition stays in one arm; the other, for where that holds for all elements, copies.
# A value that a part of a branch computes for others is declared before them.
CLAIMS_OF_ASKED = {
    STORES_INSTEAD: frozenset((Change.BRANCHES, Change.ADDED)),
    SPLIT_BRANCHES: frozenset((Change.BRANCHES, Change.ADDED)),
    PREDICATE_EXITS: _EXITS,
    AGREE_ON_BRANCHES: frozenset((Change.BRANCHES, Change.ADDED)),
}

PASSES = tuple(dict.fromkeys((*(each.name for each in (*PREPARATION, *FOR_PRODUCERS, GATHER_ROWS)), *ASKED)))
