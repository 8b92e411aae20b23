"""How the launcher starts a kernel, and which of its pointers are restricted."""

from enum import Enum

from tile2cu.analysis.sync_calls import starts_early, syncs_grid
from tile2cu.core.program import Buffer
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.tensors import access_of, touched


class LaunchForm(Enum):
    """The attributes of a launch."""

    PLAIN = "none"
    COOPERATIVE = "all blocks are on the device at a time"
    DEPENDENT = "it may start before the kernel in front of it on the stream has ended (PDL)"
    CLUSTERS = "blocks are in clusters"


def launch_form(resolved: Resolved) -> LaunchForm:
    """The form that a kernel needs."""
    if resolved.launch.cluster:
        return LaunchForm.CLUSTERS
    if syncs_grid(resolved.launch.body):
        return LaunchForm.COOPERATIVE
    return LaunchForm.DEPENDENT if starts_early(resolved.launch.body) else LaunchForm.PLAIN


def is_restrict(tensor: Buffer, resolved: Resolved) -> bool:
    """Whether a tensor's pointer is `__restrict__`.

    Loads by a constant one may move above griddepcontrol.wait. A tensor at an address may be a part of an argument.
    """
    reads, writes = touched(resolved)
    only_read = access_of(tensor, (resolved,)) == "read"
    addressed = any(each.memory.address is not None for each in (writes if only_read else reads | writes))
    return not addressed and not (only_read and starts_early(resolved.launch.body))
