"""wgmma, TMA and barriers in PTX by hand: right, and each rule of theirs broken once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tile2cu_runtime.amdgcn.arguments import Pointer, Record
from tile2cu_runtime.ptx import Module, PtxError, float8, tensor_map
from tile2cu_runtime.ptx.tensor_map import TensorMap

THREADS = 128
RNG = np.random.default_rng(4)
# Threads copy `in` to shared memory, 16 bytes each and turn; then TEXT; then shared memory, or %o0 .. %o3, goes out.
KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry op(.param .align 128 .b8 map[128], .param .u64 in, .param .u64 out, .param .u64 a, .param .u64 b)
{{
  .reg .pred %p<9>;
  .reg .b32 %r<20>, %o<5>, %w<5>;
  .reg .b64 %rd<20>, %a, %b;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  setp.eq.u32 %p0, %r0, 0;
  mov.b64 %rd3, map; cvta.param.u64 %rd4, %rd3;
  shl.b32 %r1, %r0, 4; cvt.u64.u32 %rd5, %r1; add.s64 %rd6, %rd1, %rd5; mov.u32 %r2, {copied};
copy:
  setp.ge.u32 %p1, %r1, %r2; @%p1 bra ready;
  ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd6]; st.shared.v4.u32 [%r1], {{%r4, %r5, %r6, %r7}};
  add.u32 %r1, %r1, 2048; add.s64 %rd6, %rd6, 2048; bra copy;
ready:
  mov.u32 %r1, {barrier};
  {text}
  shl.b32 %r8, %r0, 4; cvt.u64.u32 %rd7, %r8; add.s64 %rd2, %rd2, %rd7;
  {out}
  ret;
}}
"""
OF_REGISTERS = "st.global.v4.u32 [%rd2], {%o0, %o1, %o2, %o3};"
OF_MEMORY = """mov.u32 %r2, {copied};
back: setp.ge.u32 %p1, %r8, %r2; @%p1 bra done;
ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r8]; st.global.v4.u32 [%rd2], {{%r4, %r5, %r6, %r7}};
add.u32 %r8, %r8, 2048; add.s64 %rd2, %rd2, 2048; bra back;
done:"""
BARRIER = 16384


def execute(
    text: str,
    given: np.ndarray,
    *,
    out: str = OF_REGISTERS,
    a: int = 0,
    b: int = 0,
    tensor: Record | None = None,
    cluster: int = 1,
) -> np.ndarray:
    """What the kernel writes out: four words a thread, or as many bytes of shared memory as `given` has."""
    copied = given.nbytes
    result = np.zeros(THREADS * 16 if out == OF_REGISTERS else copied, np.uint8)
    filled = KERNEL.format(
        text=text, out=out if out == OF_REGISTERS else out.format(copied=copied), copied=copied, barrier=BARRIER
    )
    arguments = [tensor or bytes(128), given.view(np.uint8).reshape(-1).copy(), result, a, b]
    if cluster > 1:
        filled = filled.replace("\n{", f"\n.explicitcluster\n.reqnctapercluster {cluster}, 1, 1\n{{", 1)
    Module(filled).launch("op", (cluster,), (THREADS,), arguments, shared_bytes=BARRIER + 64)
    return result


# ---- wgmma --------------------------------------------------------------------------------------------------

ISSUE = "wgmma.mma_async.sync.aligned.m64n8{types} {{%o0, %o1, %o2, %o3}}, {a}, %b, 0{rest};"
FENCE, COMMIT, WAIT = (f"wgmma.{each};" for each in (
    "fence.sync.aligned", "commit_group.sync.aligned", "wait_group.sync.aligned 0"
))  # fmt: skip
READY = "fence.proxy.async.shared::cta; bar.sync 0;"


def offset(mn: int, k: int, size: int, span: int, *, mn_major: bool, leading: int, stride: int) -> int:
    """Where CUTLASS's canonical layouts have element (mn, k) of `size` bytes. [mma_traits_sm90_gmma.hpp]"""
    t = 16 // size
    if mn_major and span == 16:  # ((T,1,m),(8,k)):((1,T,SBO),(T,LBO))
        at = mn % t * size + mn // t * stride + k % 8 * 16 + k // 8 * leading
    elif mn_major:  # ((T,W,m),(8,k)):((1,T,LBO),(WT,SBO))
        at = mn * size % span + mn * size // span * leading + k % 8 * span + k // 8 * stride
    elif span == 16:  # ((8,m),(T,2)):((T,SBO),(1,LBO))
        at = mn % 8 * 16 + mn // 8 * stride + k % t * size + k // t * leading
    else:  # ((8,m),(T,2)):((WT,SBO),(1,T))
        at = mn % 8 * span + mn // 8 * stride + k * size
    bits = {16: 0, 32: 1, 64: 3, 128: 7}[span]
    return at ^ (at >> 7 & bits) << 4


def laid_out(matrix: np.ndarray, start: int, span: int, memory: np.ndarray, **how: int) -> int:
    """Puts (mn, k) codes into memory; gives the descriptor."""
    for (mn, k), code in np.ndenumerate(matrix):
        at = start + offset(mn, k, matrix.itemsize, span, **how)
        memory[at : at + matrix.itemsize] = np.frombuffer(code.tobytes(), np.uint8)
    mode = {16: 0, 128: 1, 64: 2, 32: 3}[span]
    return start >> 4 | how["leading"] >> 4 << 16 | how["stride"] >> 4 << 32 | mode << 62


def codes(kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Small numbers of a type, as they are stored, and their values."""
    values = RNG.integers(0 if kind == "u8" else -3, 4, shape).astype(np.float64)
    match kind:
        case "f16":
            return values.astype(np.float16), values
        case "bf16":
            return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), values
        case "tf32":
            return values.astype(np.float32), values
        case "e4m3" | "e5m2":
            return float8.encoded(values, kind), values
    return values.astype(np.int8 if kind == "s8" else np.uint8), values


def sums(raw: np.ndarray, kind: str) -> np.ndarray:
    """D, 64 x 8, from four words of each thread. ["Register Fragments for wgmma.mma_async.m64nNk16", D]"""
    words = raw.view(np.int32 if kind in ("s8", "u8") else np.float32).reshape(THREADS, 4)
    found = np.zeros((64, 8))
    for thread, register in itertools.product(range(THREADS), range(4)):
        row = thread // 32 * 16 + thread % 32 // 4 + register // 2 * 8
        found[row, thread % 4 * 2 + register % 2] = words[thread, register]
    return found


FORMS = [(kind, span, False, False) for kind in ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8") for span in (128,)]
FORMS += [("f16", span, *majors) for span in (128, 64, 32, 16) for majors in itertools.product((False, True), repeat=2)]


@pytest.mark.parametrize(("kind", "span", "a_mn", "b_mn"), FORMS)
def test_products(kind: str, span: int, a_mn: bool, b_mn: bool) -> None:
    """Of each type with K contiguous; of halves with each swizzle and major order. A is negated."""
    size = {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)
    (a, left), (b, right) = codes(kind, (64, 32 // size)), codes(kind, (8, 32 // size))
    memory = RNG.integers(0, 256, BARRIER, np.uint8)
    ways = {"leading": 1024 if a_mn or span == 16 else 16, "stride": 8 * span}
    a_ways = ways if span == 16 or not a_mn else {"leading": 16 * span, "stride": 8 * span}
    first = laid_out(a, 0, span, memory, mn_major=a_mn, **a_ways)
    second = laid_out(b, 8192, span, memory, mn_major=b_mn, **ways)
    negate = kind not in ("s8", "u8")
    rest = ", -1, 1" if negate else ""
    rest += f", {int(a_mn)}, {int(b_mn)}" if kind in ("f16", "bf16") else ""
    types = f"k{32 // size}.{'f32' if negate else 's32'}.{kind}.{kind}"
    text = f"{READY} {FENCE} {ISSUE.format(types=types, a='%a', rest=rest)} {COMMIT} {WAIT}"
    found = sums(execute(text, memory, a=first, b=second), kind)
    np.testing.assert_array_equal(found, (left @ right.T) * (-1 if negate else 1))


HALVES = ISSUE.format(types="k16.f32.f16.f16", a="%a", rest=", 1, 1, 0, 0")
FROM_REGISTERS = ISSUE.format(types="k16.f32.f16.f16", a="{{%w0, %w1, %w2, %w3}}", rest=", 1, 1, 0").replace("{{", "{")
FROM_REGISTERS = FROM_REGISTERS.replace("}}", "}")
DESCRIPTOR = 1 << 62 | 1 << 16 | 64 << 32


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{READY} {HALVES} {COMMIT} {WAIT}", "no wgmma.fence since"),
        (f"{READY} {FENCE} add.u32 %o1, %r0, 1; {HALVES} {COMMIT} {WAIT}", "no wgmma.fence since %o1"),
        (f"bar.sync 0; {FENCE} {HALVES} {COMMIT} {WAIT}", "no fence.proxy.async after thread"),
        (
            f"bar.sync 0; setp.lt.u32 %p3, %r0, 64; @%p3 fence.proxy.async; {FENCE} {HALVES} {COMMIT} {WAIT}",
            "no fence.proxy.async after thread",  # two warps know of no fence after their stores
        ),
        (f"{READY} {FENCE} {HALVES} {COMMIT} add.u32 %r9, %o2, 1; {WAIT}", "%o2 is read before wgmma.wait_group"),
        (f"{READY} {FENCE} {HALVES} {COMMIT} mov.b32 %r9, %o2; add.u32 %r9, %r9, 1; {WAIT}", "%r9 is written while"),
        (f"{READY} {FENCE} {HALVES} {COMMIT} mov.b32 %r9, %o2; add.u32 %r4, %r9, 1; {WAIT}", "%r9 is read before"),
        (f"{READY} {FENCE} {HALVES} {COMMIT} mov.b32 %o2, 1; {WAIT}", "%o2 is written while a wgmma"),
        (f"{READY} {FENCE} {FROM_REGISTERS} {COMMIT} mov.b32 %w3, 1; {WAIT}", "%w3 is written while a wgmma"),
        (f"{READY} {FENCE} {HALVES} {COMMIT} st.shared.u32 [%r0], %r0; {WAIT}", "misaligned"),
        (
            f"{READY} {FENCE} {HALVES} {COMMIT} st.shared.v2.u32 [16], {{%r0, %r0}}; {WAIT}",
            "shared memory was written before wgmma.wait_group",
        ),
        (f"{READY} {FENCE} {HALVES} {COMMIT}", "is read before wgmma.wait_group"),
        (f"{READY} add.s64 %b, %b, 16384; {FENCE} {HALVES} {COMMIT} {WAIT}", "has reserved bits set"),
        (f"{READY} cvt.u64.u32 %rd8, %r0; add.s64 %b, %b, %rd8; {FENCE} {HALVES} {COMMIT} {WAIT}", "is not uniform"),
        (f"{READY} {FENCE} setp.lt.u32 %p2, %r0, 64; @%p2 bra on; {HALVES} on: {COMMIT} {WAIT}", "do not arrive"),
    ],
)
def test_what_a_product_forbids(text: str, said: str) -> None:
    with pytest.raises(PtxError, match=said):
        execute(text, np.zeros(4096, np.uint8), a=DESCRIPTOR, b=DESCRIPTOR | 128)


def test_a_move_gives_a_result_in_flight_another_name() -> None:
    text = f"{READY} {FENCE} {HALVES} {COMMIT} mov.b32 %r9, %o2; {WAIT} add.u32 %o0, %r9, 0;"
    execute(text, np.zeros(4096, np.uint8), a=DESCRIPTOR, b=DESCRIPTOR | 128)


# ---- copies -------------------------------------------------------------------------------------------------

INIT = "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {bytes};"
WAITED = "wait{n}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], {n}; @!%p2 bra wait{n};"
LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
ROW = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [0], [%rd1], 64, [%r1];"


def encoded(tensor: np.ndarray, box: tuple[int, ...], span: int) -> Record:
    """The map of a tensor without gaps; the box outermost first."""
    strides = tuple(reversed(tensor.strides))
    described = TensorMap(
        element_bytes=tensor.itemsize,
        address=0,
        extents=tensor.shape[::-1],
        strides=strides,
        box=box[::-1],
        span=span,
        fills_with_nan=False,
    )
    raw = tensor_map.encode(described, {1: 0, 2: 1, 4: 2}[tensor.itemsize])
    return Record(raw, {tensor_map.ADDRESS_OFFSET: Pointer(tensor, 0)})


BOXES = [
    ((40,), (16,), 16, (8,)),
    ((40,), (16,), 16, (32,)),
    ((9, 24), (4, 16), 32, (-2, 16)),
    ((5, 6, 64), (2, 3, 32), 64, (4, -1, 32)),
    ((3, 4, 5, 64), (2, 1, 3, 64), 128, (2, 3, 3, 0)),
    ((2, 3, 2, 4, 128), (1, 2, 1, 4, 64), 128, (1, 2, 0, 1, 64)),
]


@pytest.mark.parametrize(("shape", "box", "span", "corner"), BOXES)
def test_boxes_come_and_go(shape: tuple[int, ...], box: tuple[int, ...], span: int, corner: tuple[int, ...]) -> None:
    """A load puts zeros where the tensor has nothing; a store from there leaves what is outside alone."""
    tensor = RNG.integers(1, 9999, shape).astype(np.uint16)
    places = np.array([
        1024 + (at ^ (at >> 7 & (span // 16 - 1)) << 4) for at in range(0, 2 * int(np.prod(box)), 2)
    ])  # fmt: skip
    expected = np.zeros(box, np.uint16)
    for index in np.ndindex(*box):
        at = tuple(c + i for c, i in zip(corner, index, strict=True))
        if all(0 <= c < s for c, s in zip(at, shape, strict=True)):
            expected[index] = tensor[at]
    coordinates = ", ".join(map(str, reversed(corner)))
    load = f"@%p0 {LOAD.format(rank=len(shape))} [1024], [%rd4, {{{coordinates}}}], [%r1];"
    text = f"{INIT} {EXPECT.format(bytes=2 * expected.size)} {load} {WAITED.format(n=0)} bar.sync 0;"
    out = execute(text, np.zeros(4096, np.uint8), out=OF_MEMORY, tensor=encoded(tensor, box, span))
    np.testing.assert_array_equal(out.view(np.uint16)[places // 2], expected.reshape(-1))
    if min(corner) < 0:
        return
    store = "cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%rd4, {{{at}}}], [1024];"
    store = store.format(rank=len(shape), at=coordinates)
    text = f"{READY} @%p0 {store} @%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;"
    target = np.zeros(shape, np.uint16)
    execute(text, out.copy(), tensor=encoded(target, box, span))
    inside = tuple(slice(c, c + b) for c, b in zip(corner, box, strict=True))
    np.testing.assert_array_equal(target[inside], tensor[inside])
    assert target.sum(dtype=np.int64) == tensor[inside].sum(dtype=np.int64)


def test_rows_of_bytes_come_and_go() -> None:
    given = RNG.integers(0, 256, 4096, np.uint8)
    back = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [0], 64;"
    text = f"{INIT} {EXPECT.format(bytes=64)} {ROW} {WAITED.format(n=0)} {back} @%p0 cp.async.bulk.commit_group;"
    found = execute(text + "@%p0 cp.async.bulk.wait_group.read 0;", given, out="")
    np.testing.assert_array_equal(found[:64], given[:64])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"bar.sync 0; {ROW}", "no mbarrier is initialised"),
        (INIT.replace("@%p0 fence.mbarrier_init.release.cluster;", "") + ROW, "no fence.mbarrier_init since"),
        (f"{INIT} {EXPECT.format(bytes=64)} {ROW} ld.shared.u32 %r9, [16];", "a copy to byte 16 .* is in flight"),
        (f"{INIT} {EXPECT.format(bytes=64)} {ROW} st.shared.u32 [32], %r9;", "a copy to byte 32 .* is in flight"),
        (f"{INIT} ld.shared.u32 %r9, [16]; {EXPECT.format(bytes=64)} {ROW}", "thread .* loaded byte 16"),
        (f"{INIT} ld.shared.u32 %r9, [16]; bar.warp.sync -1; {EXPECT.format(bytes=64)} {ROW}", "loaded byte 16"),
        (f"{INIT} {EXPECT.format(bytes=64)} {ROW} {ROW}", "another copy to the same address"),
        (f"{INIT} {EXPECT.format(bytes=64)} {ROW}", "the block exits while the copy is in flight"),
        (f"{INIT} {EXPECT.format(bytes=80)} {ROW} {WAITED.format(n=0)}", "0 of 1 arrivals and 16 bytes are pending"),
        (f"{INIT} {EXPECT.format(bytes=48)} {ROW} {WAITED.format(n=0)}", "-16 bytes are pending"),
        (f"{INIT} {EXPECT.format(bytes=0)} {ROW} {WAITED.format(n=0)}", "in flight"),
        (f"{INIT} mbarrier.arrive.shared::cta.b64 _, [%r1];", "is left|more than 1 arrivals|^$"),
        (f"{INIT} @%p0 mbarrier.init.shared::cta.b64 [%r1+4], 1;", "an mbarrier cannot be at byte 16388"),
        (f"{INIT} {WAITED.format(n=0)}", "1 of 1 arrivals and 0 bytes are pending"),
    ],
)
def test_what_a_copy_forbids(text: str, said: str) -> None:
    if said.endswith("^$"):  # each arrival is a phase of its own: nothing is wrong
        execute(text, np.zeros(4096, np.uint8))
        return
    with pytest.raises(PtxError, match=said):
        execute(text, np.zeros(4096, np.uint8))


@pytest.mark.parametrize("completed", ["fence.proxy.async.shared::cta;", "bar.sync 0;"])
def test_a_copy_may_overwrite_what_was_loaded(completed: str) -> None:
    """A fence of each loading thread, or a barrier of the block, waits for loads."""
    given = RNG.integers(0, 256, 4096, np.uint8)
    text = f"{INIT} ld.shared.u32 %r9, [16]; {completed} {EXPECT.format(bytes=64)} {ROW} {WAITED.format(n=0)}"
    execute(text, given, out="")


STORE = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [0], 64; @%p0 cp.async.bulk.commit_group;"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"bar.sync 0; {STORE}", "no fence.proxy.async after thread 0"),
        (
            f"bar.sync 0; setp.eq.u32 %p3, %r0, 7; @%p3 fence.proxy.async.shared::cta; {STORE}",
            "no fence.proxy.async after thread 0",
        ),
        (f"{READY} {STORE}", "exits before the store has read"),
        (
            f"{READY} {STORE} st.shared.u8 [5], %r0; @%p0 cp.async.bulk.wait_group.read 0;",
            "before the copy had read it",
        ),
        (f"{READY} {STORE.replace('[0]', '[8]')}", "64 bytes at byte 8"),
        (f"{READY} {STORE.replace('64', '1048576')}", "bytes at byte 0"),
    ],
)
def test_what_a_store_forbids(text: str, said: str) -> None:
    with pytest.raises(PtxError, match=said):
        execute(text, np.zeros(4096, np.uint8), out="")


@pytest.mark.parametrize(
    "fence",
    [
        "bar.sync 0; @%p0 fence.proxy.async.shared::cta;",
        "bar.sync 0; setp.eq.u32 %p3, %r0, 7; @%p3 fence.proxy.async.shared::cta; bar.sync 0;",
    ],
)
def test_a_fence_behind_the_barrier_is_enough(fence: str) -> None:
    """Of one who knows of the others' stores by then, and of whom the issuing thread knows. [Proxy-preserved base
    causality order]"""
    text = f"{fence} {STORE} @%p0 cp.async.bulk.wait_group 0;"
    given = RNG.integers(0, 256, 4096, np.uint8)
    np.testing.assert_array_equal(execute(text, given, out="")[:64], given[:64])


def test_an_arrival_when_copies_of_threads_are_there() -> None:
    """cp.async.mbarrier.arrive.noinc: one of those that were counted, and no thread waits for its own copies."""
    text = f"""@%p0 mbarrier.init.shared::cta.b64 [%r1], {THREADS}; bar.sync 0;
    shl.b32 %r9, %r0, 4; cvt.u64.u32 %rd8, %r9; add.s64 %rd8, %rd8, %rd1; add.u32 %r9, %r9, 4096;
    cp.async.cg.shared.global [%r9], [%rd8], 16; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];
    {WAITED.format(n=0)} xor.b32 %r10, %r9, 16; ld.shared.v4.u32 {{%o0, %o1, %o2, %o3}}, [%r10];"""
    given = RNG.integers(0, 256, 4096, np.uint8)
    found = execute(text, given).reshape(-1, 2, 16)[:, ::-1]
    np.testing.assert_array_equal(found.reshape(-1), given[: 16 * THREADS])


# ---- clusters -----------------------------------------------------------------------------------------------

MEET = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
RANK = "mov.u32 %r9, %cluster_ctarank; mov.u32 %r11, 0; xor.b32 %r10, %r9, 1; setp.ne.u32 %p3, %r9, 0;"


def test_blocks_of_a_cluster_read_one_another() -> None:
    """Rank 0 gets what rank 1 stored where it stored itself; by an address of .shared::cluster, and a generic one."""
    text = f"""{RANK} add.u32 %r12, %r9, 5; st.shared.u32 [0], %r12; {MEET}
    mapa.shared::cluster.u32 %r13, %r11, %r10; ld.shared::cluster.u32 %o0, [%r13];
    cvt.u64.u32 %rd8, %r11; cvta.shared.u64 %rd8, %rd8; mapa.u64 %rd9, %rd8, %r10; ld.u32 %o1, [%rd9];
    ld.shared.u32 %o2, [0]; mov.u32 %o3, 0; {MEET} @%p3 ret;"""
    found = execute(text, np.zeros(4096, np.uint8), cluster=2).view(np.uint32).reshape(THREADS, 4)
    assert found.tolist() == [[6, 6, 5, 0]] * THREADS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{RANK} mapa.shared::cluster.u32 %r13, %r11, 2;", "a cluster of 2 blocks has no rank 2"),
        (
            f"{RANK} mapa.shared::cluster.u32 %r13, %r11, 1; {MEET} @%p3 ret; bar.sync 0; bar.sync 0;"
            "ld.shared::cluster.u32 %o0, [%r13];",
            "the block of rank 1 has exited",
        ),
        (f"{RANK} mapa.shared::cluster.u32 %r13, %r11, 1; ld.shared.u32 %o0, [%r13];", "out of bounds"),
        (f"{MEET.split(';')[0]}; {MEET}", "a second arrival without a wait"),
        (f"{MEET.split(';')[1]};", "no arrival before the wait"),
        (f"{RANK} @%p3 bra on; {MEET} on: barrier.sync.aligned 1, 256;", "at barrier 1|for its cluster"),
    ],
)
def test_what_clusters_forbid(text: str, said: str) -> None:
    with pytest.raises(PtxError, match=said):
        execute(text, np.zeros(4096, np.uint8), cluster=2)


# ---- barriers -----------------------------------------------------------------------------------------------


def test_numbered_barriers_and_elections() -> None:
    """Half of the threads arrive and go on, the others wait for them; one lane of each warp is elected."""
    text = """setp.lt.u32 %p2, %r0, 64; @%p2 bra first;
    barrier.sync.aligned 3, 128; ld.shared.u32 %o0, [0]; bra both;
    first: st.shared.u32 [0], 77; barrier.arrive.aligned 3, 128; mov.b32 %o0, 1;
    both: elect.sync %o1|%p3, -1; selp.b32 %o2, 1, 0, %p3; mov.b32 %o3, 0;"""
    found = execute(text, np.zeros(4096, np.uint8)).view(np.uint32).reshape(THREADS, 4)
    assert (found[:64, 0] == 1).all() and (found[64:, 0] == 77).all()
    np.testing.assert_array_equal(found[:, 2].reshape(-1, 32).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("barrier.sync.aligned 3, 160;", "at barrier 3, 128 of 160 threads have arrived"),
        ("barrier.sync.aligned 3, 96;", "more than 96 threads arrive at barrier 3"),
        ("setp.lt.u32 %p2, %r0, 64; @%p2 bra on; bar.sync 2, 128; on: bar.sync 2, 64;", "barrier 2 with thread counts"),
    ],
)
def test_what_barriers_forbid(text: str, said: str) -> None:
    with pytest.raises(PtxError, match=said):
        execute(text, np.zeros(4096, np.uint8))


def test_float8() -> None:
    """Every code is its own value's; ties go to even, what is too large to the largest."""
    for kind, largest in (("e4m3", 448.0), ("e5m2", 57344.0)):
        values = float8.VALUES[kind]
        finite = np.isfinite(values)
        np.testing.assert_array_equal(float8.encoded(values[finite], kind), np.arange(256)[finite])
        assert float8.VALUES[kind][float8.encoded(np.array([1e9, -1e9]), kind)].tolist() == [largest, -largest]
        between = (values[8] + values[9]) / 2, (values[9] + values[10]) / 2
        assert float8.encoded(np.array(between), kind).tolist() == [8, 10]
