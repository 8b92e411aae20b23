"""The plan of a kernel: its roles, its body, and what stands around them."""

from dataclasses import dataclass

from tile2cu.core.decisions import EARLY_EXIT, PERSISTENT, STORE_OUTSTANDING
from tile2cu.core.expr import Expr
from tile2cu.core.program import Launch, walk_stmts
from tile2cu.core.schedule import Persistent
from tile2cu.plan import roles
from tile2cu.plan.body import Lowering
from tile2cu.plan.ops import Op
from tile2cu.plan.order import exit_barrier
from tile2cu.plan.settled import Settled
from tile2cu.plan.structure import AwaitStaging, Block, Where


@dataclass(frozen=True, kw_only=True, eq=False)
class EarlyExit:
    """Blocks that would write nothing leave: known by `condition`, behind what is computed `before`."""

    before: Block
    condition: Expr
    rule: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """What the threads of a launch do: first the `early` exit, then the producer and the others.

    Those run the `body`, of a `persistent` kernel once a tile of work with `each_end` at its end, and `end` at last.
    """

    launch: Launch
    early: EarlyExit | None
    producer: roles.Producer | None
    persistent: Persistent | None
    body: Block
    each_end: tuple[Op, ...]
    end: tuple[Op, ...]


def kernel(settled: Settled) -> Kernel:
    """The plan of a launch."""
    lowering, launch, facts = Lowering(settled), settled.launch, settled.facts
    idle = facts.get(launch, EARLY_EXIT)
    left = next((stmt for stmt in walk_stmts(launch.body) if facts.get(stmt, STORE_OUTSTANDING)), None)
    return Kernel(
        launch=launch,
        early=None
        if idle is None
        else EarlyExit(
            before=lowering.paragraphs(idle.before, Where()),
            condition=idle.condition,
            rule=facts.rule(launch, EARLY_EXIT),
        ),
        producer=roles.producer(lowering),
        persistent=facts.get(launch, PERSISTENT),
        body=lowering.body(launch.body, Where()),
        each_end=tuple(exit_barrier(settled)),
        end=() if left is None else (AwaitStaging(source=left, again=False),),
    )
