"""tests/engine/kernels is what tile2cu emits now for the inference engine: its vendored kernels.

After a deliberate change: pytest tests/golden --update-emitted, and review the diff.
"""

from tests.golden.cases import ROOT, TOOL
from tile2cu import Dispatch, Entry, dispatch
from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find

EXAMPLES, KERNELS = ROOT / "examples", ROOT / "tests/engine/kernels"
DIM, HEAD_DIM = 128, 64

# Few rows, as in decoding, take small tiles; many take Hopper's instructions where the chip has them.
LINEAR = Dispatch(
    name="linear",
    file="linear.py",
    kernel="linear",
    entries=(
        Entry(name="few_rows", bindings={"block_M": 16, "block_K": 64}, when="M <= 16"),
        Entry(name="hopper", target="cuda:sm_90a", bindings={"block_N": 128, "block_K": 64}, when="M >= 64"),
        Entry(name="any"),
    ),
)
# The others: the file, the kernel, what it is emitted with, and whether its own test comes along.
OTHERS: tuple[tuple[str, str, dict[str, object], bool], ...] = (
    ("rmsnorm.py", "rmsnorm", {"dim": DIM}, True),
    ("rope.py", "rope", {"dim": HEAD_DIM}, False),
    ("attention.py", "attention", {"dim": HEAD_DIM, "is_causal": True}, False),
    ("linear.py", "linear_residual", {}, False),
    ("linear_int4.py", "linear_int4", {"gelu": True}, True),
)


def kernels() -> dict[str, str]:
    """Texts, headers and tests, by name; an engine that links them has no use for the manifests."""
    files = dispatch(LINEAR, EXAMPLES, tool=TOOL)
    for file, kernel, bindings, with_test in OTHERS:
        (one,) = emit_text(
            EXAMPLES / file,
            kernel=kernel,
            target=find("cuda:sm_80"),
            bindings=bindings,
            options=EmitOptions(with_test=with_test),
            tool=TOOL,
        )
        files |= one.files
    return {name: text for name, text in files.items() if not name.endswith(".json")}


def test_the_vendored_kernels_are_current(update_emitted: bool) -> None:
    wanted = kernels()
    if update_emitted:
        KERNELS.mkdir(parents=True, exist_ok=True)
        for path in KERNELS.iterdir():
            path.unlink()
        for name, text in wanted.items():
            (KERNELS / name).write_text(text, encoding="utf-8")
    found = {path.name: path.read_text(encoding="utf-8") for path in KERNELS.iterdir()}
    assert sorted(found) == sorted(wanted)
    stale = [name for name, text in wanted.items() if found[name] != text]
    assert not stale, "run: pytest tests/golden --update-emitted"
