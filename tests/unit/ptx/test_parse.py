"""PTX text as data."""

import struct

from tile2cu_runtime.ptx import tensor_map
from tile2cu_runtime.ptx.parse import parse

WAITS = """
.visible .entry kernel()
{
    .reg .pred %p<2>;
    { .reg .pred P1; WAIT: setp.eq.u32 P1, 0, 0; @P1 bra DONE; bra WAIT; DONE: }
    bar.sync 0;
    { .reg .pred P1; WAIT: setp.eq.u32 P1, 0, 0; @P1 bra DONE; bra WAIT; DONE: }
    ret;
}
"""


def test_labels_of_a_block_in_braces_are_its_own() -> None:
    kernel = parse(WAITS)["kernel"]
    targets = [kernel.labels[each.operands[0]] for each in kernel.instructions if each.operation == "bra"]
    assert targets == [3, 0, 7, 4]  # DONE and WAIT of the first block, then of the second


def test_a_tensor_map_may_begin_a_larger_argument() -> None:
    encoded = struct.pack("<I", tensor_map.MAGIC).ljust(tensor_map.BYTES, b"\0")
    assert tensor_map.is_encoded(encoded) and tensor_map.is_encoded(encoded + bytes(128))
    assert not tensor_map.is_encoded(encoded[:-1]) and not tensor_map.is_encoded(bytes(256))
