"""Loads, stores, atomics and asynchronous copies. [PTX ISA 9.0, "Data Movement and Conversion", "Synchronization"]"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import TYPES, address, elements, source
from tile2cu_runtime.ptx.parse import BYTES, Instruction, Kernel
from tile2cu_runtime.ptx.state import RANK_UNIT, Builder, Copy, Step, Threads
from tile2cu_runtime.ptx.tma import build_arrival, build_bulk

_SPACES = ("global", "shared", "local", "param")


def _space(instruction: Instruction) -> str:
    """The state space; "" for a generic address."""
    return next((each.partition("::")[0] for each in instruction.modifiers if each.startswith(_SPACES)), "")


def _kind(instruction: Instruction) -> str:
    return next(each for each in reversed(instruction.modifiers) if each in BYTES)


def _load(instruction: Instruction, kernel: Kernel) -> Step:
    targets, place = elements(instruction.operands[0]), address(instruction.operands[1], kernel)
    kind, space = _kind(instruction), _space(instruction)
    size = BYTES[kind]
    if space == "param":
        return _load_parameter(targets[0], instruction.operands[1], kernel, TYPES[kind])

    def step(t: Threads) -> None:
        words = t.load(instruction, space, place(t), size * len(targets))
        raw = np.ascontiguousarray(words.T).view(np.uint8).reshape(t.count, -1)
        for number, target in enumerate(targets):
            part = np.ascontiguousarray(raw[:, number * size : (number + 1) * size]).view(TYPES[kind]).reshape(-1)
            t.write(target, _extended(part, t, target))

    return step


def _extended(values: Array, threads: Threads, target: str) -> Array:
    """Sign-extends a signed value that is narrower than its register."""
    wide = threads.registers[target].dtype.itemsize
    return values.astype(f"i{wide}") if values.dtype.kind == "i" and values.dtype.itemsize < wide else values


def _load_parameter(target: str, operand: str, kernel: Kernel, kind: type[np.generic]) -> Step:
    place = address(operand, kernel)

    def step(t: Threads) -> None:
        at = int(place(t)[0])
        value = np.frombuffer(t.parameters, kind, 1, at)
        t.write(target, np.broadcast_to(value, t.count))

    return step


def _store(instruction: Instruction, kernel: Kernel) -> Step:
    place, values = address(instruction.operands[0], kernel), elements(instruction.operands[1])
    kind, space = _kind(instruction), _space(instruction)
    size = BYTES[kind]
    sources = [
        source(value, TYPES[f"u{8 * size}"] if _is_register(value, kernel) else TYPES[kind], kernel) for value in values
    ]

    def step(t: Threads) -> None:
        columns = [np.ascontiguousarray(get(t)).view(np.uint8).reshape(t.count, size) for get in sources]
        t.store(instruction, space, place(t), _words(np.concatenate(columns, axis=1)), size * len(values))

    return step


def _is_register(text: str, kernel: Kernel) -> bool:
    return text in kernel.registers


def _words(raw: Array) -> list[Array]:
    """Bytes, (threads, n), as 32-bit words; the last one is padded with zeros."""
    missing = -raw.shape[1] % 4
    padded = np.pad(raw, ((0, 0), (0, missing))) if missing else raw
    return list(np.ascontiguousarray(padded).view(np.uint32).T)


# ---- atomics ------------------------------------------------------------------------------------------------

_UPDATES: dict[str, Callable[..., object]] = {
    "add": lambda old, value: old + value,
    "min": min,
    "max": max,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "cas": lambda old, compare, value: value if old == compare else old,
}


def _atomic(instruction: Instruction, kernel: Kernel) -> Step:
    """atom and red, also of vectors: element by element, in thread order."""
    returns = instruction.operation == "atom"
    target, *rest = instruction.operands if returns else ("", *instruction.operands)
    kind = _kind(instruction)
    if kind not in TYPES or kind in ("f16x2", "bf16x2", "bf16") or len(rest) > 3:
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    targets, values = elements(target), [elements(each) for each in rest[1:]]
    width = BYTES[kind] * len(values[0])
    place, space, name = address(rest[0], kernel), _space(instruction), _update_name(instruction)
    sources = [[source(each, TYPES[kind], kernel) for each in column] for column in zip(*values, strict=True)]

    def step(t: Threads) -> None:
        store, at = t.place(instruction, space, place(t), width)
        memory, threads = store.bytes[: len(store.bytes) // BYTES[kind] * BYTES[kind]].view(TYPES[kind]), t.mask
        for number, column in enumerate(sources):
            index = (at[threads] // BYTES[kind]) + number
            operands = [get(t)[threads] for get in column]
            if name == "add" and not returns:
                np.add.at(memory, index, operands[0])
                continue
            before = np.zeros(t.count, TYPES[kind])
            before[threads] = _updated(memory, index, _UPDATES[name], operands)
            if returns:
                t.write(targets[number], before)
        if store is t.shared and t.shadow:
            t.shadow.store(at[threads], width, np.flatnonzero(threads))

    return step


def _update_name(instruction: Instruction) -> str:
    return next(each for each in instruction.modifiers if each in _UPDATES)


def _updated(memory: Array, index: Array, update: Callable[..., object], operands: list[Array]) -> list[object]:
    """Updates one element after another; returns the previous values."""
    before = []
    for number, place in enumerate(index):
        old = memory[place]
        before.append(old)
        memory[place] = update(old, *(each[number] for each in operands))
    return before


# ---- cp.async -----------------------------------------------------------------------------------------------


def _copy_async(instruction: Instruction, kernel: Kernel) -> Step:
    """cp.async, its commit and its waits. A copy completes when it is waited for, as late as possible."""
    if "bulk" in instruction.modifiers:
        return build_bulk(instruction, kernel)
    if "mbarrier" in instruction.modifiers:
        return build_arrival(instruction, kernel)
    if "commit_group" in instruction.modifiers:
        return _commit
    if "wait_group" in instruction.modifiers or "wait_all" in instruction.modifiers:
        keep = int(instruction.operands[0]) if instruction.operands else 0
        everything = "wait_all" in instruction.modifiers

        def wait(t: Threads) -> None:
            if everything:
                _commit(t)
            t.land(keep)

        return wait
    operands = instruction.operands[: -1 if "L2::cache_hint" in instruction.modifiers else None]
    target, origin, size, *rest = operands
    to, of, count = address(target, kernel), address(origin, kernel), int(size)
    source_bytes = source(rest[0] if rest else size, np.uint32, kernel)

    def step(t: Threads) -> None:
        t.copies.append(
            Copy(
                target=to(t).copy(),
                source=of(t).copy(),
                bytes=count,
                source_bytes=np.array(source_bytes(t)),
                group=t.groups.copy(),
                pending=t.mask.copy(),
                instruction=instruction,
            )
        )

    return step


def _create_policy(instruction: Instruction, kernel: Kernel) -> Step:
    """createpolicy: an L2 cache policy. It changes no result; its value is arbitrary."""
    register = instruction.operands[0]
    return lambda t: t.write(register, np.full(t.count, 1, np.uint64))


def _commit(t: Threads) -> None:
    t.groups[t.mask] += 1


def _map_to_block(instruction: Instruction, kernel: Kernel) -> Step:
    """mapa: the address of a byte of shared memory in the block with that rank."""
    target, own, rank = instruction.operands
    value, of = source(own, np.uint64, kernel), source(rank, np.uint32, kernel)

    def step(t: Threads) -> None:
        ranks = of(t).astype(np.uint64)
        if (t.mask & (ranks >= t.in_cluster)).any():
            thread = int(np.flatnonzero(t.mask & (ranks >= t.in_cluster))[0])
            raise t.fault(instruction, f"a cluster of {t.in_cluster} blocks has no rank {int(ranks[thread])}", thread)
        t.write(target, value(t) + (ranks + np.uint64(1)) * np.uint64(RANK_UNIT))

    return step


def _fence(instruction: Instruction, kernel: Kernel) -> Step:
    """Thread fences: no effect, since every access completes with its instruction. Proxy fences are recorded."""
    modifiers = instruction.modifiers
    if modifiers[0] == "mbarrier_init":
        return lambda t: t.mbarriers.fence(np.flatnonzero(t.mask))
    if modifiers[0] != "proxy":
        return _nothing(instruction, kernel)
    if modifiers[1] != "async":
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")

    def step(t: Threads) -> None:
        t.mbarriers.fence(np.flatnonzero(t.mask))
        if t.shadow and "global" not in modifiers:
            t.shadow.fence(np.flatnonzero(t.mask))

    return step


def _nothing(instruction: Instruction, kernel: Kernel) -> Step:
    """Hints, and ordering that always holds here."""
    return lambda t: None


BUILDERS: dict[str, Builder] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "cp": _copy_async,
    "createpolicy": _create_policy,
    "mapa": _map_to_block,
    "membar": _nothing,
    "fence": _fence,
    "prefetch": _nothing,
    "setmaxnreg": _nothing,
    "griddepcontrol": _nothing,
    "nanosleep": _nothing,
}
