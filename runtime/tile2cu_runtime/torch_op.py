"""A kernel as an operator of torch: with a schema, a fake kernel for torch.compile and export, and a backward.

Source: pytorch.org, "Custom Python operators"; torch.library.custom_op, register_fake, register_autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tile2cu_runtime.errors import OptionError
from tile2cu_runtime.spec import PACKED_DTYPES, Manifest, ScalarArgument, TensorArgument

if TYPE_CHECKING:
    from tile2cu_runtime.kernel import Kernel

Backward = Callable[..., Any]
Setup = Callable[[Any, tuple[Any, ...], Any], None]


def as_torch_op(kernel: Kernel, name: str, backward: Backward | None, setup_context: Setup | None) -> Any:
    """The operator; see Kernel.as_torch_op. Errors: T2C-R030 for a wrong name, or a kernel that cannot be one."""
    import torch

    _check(kernel.manifest, name)
    inputs = _inputs(kernel.manifest)
    written = {each.name for each in inputs if isinstance(each, TensorArgument) and each.written}

    def run(*values: Any) -> Any:
        with torch.no_grad():
            return kernel(*values)

    def fake(*values: Any) -> Any:
        made = tuple(_outputs(kernel.manifest, inputs, values))
        return made[0] if len(made) == 1 else made or None

    operator: Any = torch.library.custom_op(
        name, run, mutates_args=tuple(sorted(written)), schema=schema(kernel.manifest)
    )
    operator.register_fake(fake)
    if backward is not None:
        operator.register_autograd(backward, setup_context=setup_context or _keep_all)
    return operator


def schema(manifest: Manifest) -> str:
    """The operator's schema: `(Tensor A, Tensor(a!) B, float alpha) -> Tensor`. Written arguments are marked."""
    found = []
    for index, each in enumerate(_inputs(manifest)):
        if isinstance(each, ScalarArgument):
            found.append(f"{_scalar(each.dtype)} {each.name}")
        else:
            found.append(f"Tensor({chr(97 + index)}!) {each.name}" if each.written else f"Tensor {each.name}")
    results = ", ".join(["Tensor"] * len(manifest.outputs))
    return f"({', '.join(found)}) -> " + (results if len(manifest.outputs) == 1 else f"({results})")


def _check(manifest: Manifest, name: str) -> None:
    namespace, _, own = name.partition("::")
    if not (namespace.isidentifier() and own.isidentifier()):
        raise OptionError("T2C-R030", f"`{name}` is no name of an operator", help='as_torch_op("my_library::matmul")')
    inputs = _inputs(manifest)
    if len(inputs) > 26:
        raise OptionError("T2C-R030", f"{manifest.kernel} has {len(inputs)} arguments; an operator here has 26 at most")
    solved = {extent.text for each in inputs if isinstance(each, TensorArgument) for extent in each.shape}
    missing = next((size.name for size in manifest.sizes if size.name not in solved), None)
    if missing is not None:
        raise OptionError(
            "T2C-R030",
            f"the size `{missing}` of {manifest.kernel} is no extent of a tensor",
            help="bind it when the kernel is loaded: an operator's arguments are tensors and scalars",
        )


def _inputs(manifest: Manifest) -> tuple[TensorArgument | ScalarArgument, ...]:
    return tuple(each for each in manifest.called if each.name not in manifest.output_names)


def _outputs(manifest: Manifest, inputs: Sequence[TensorArgument | ScalarArgument], values: Sequence[Any]) -> list[Any]:
    """The outputs without their contents, for sizes that may be symbolic."""
    import torch

    tensors = [(each, value) for each, value in zip(inputs, values, strict=True) if isinstance(each, TensorArgument)]
    sizes = {
        extent.text: length
        for each, value in tensors
        for extent, length in zip(each.shape, _elements(each, value), strict=True)
        if extent.is_plain
    }
    numbers = zip(inputs, values, strict=True)
    sizes |= {each.name: value for each, value in numbers if isinstance(each, ScalarArgument) and each.dtype != "bool"}
    found = []
    for index in manifest.outputs:
        output = manifest.arguments[index]
        assert isinstance(output, TensorArgument), "parse_manifest checks it"
        shape = [extent.evaluate(sizes) for extent in output.shape]
        dtype: Any = getattr(torch, output.dtype, None)
        if output.dtype in PACKED_DTYPES:
            dtype, shape[-1] = getattr(torch, PACKED_DTYPES[output.dtype], torch.uint8), shape[-1] // 2
        found.append(torch.empty(shape, dtype=dtype, device=tensors[0][1].device if tensors else None))
    return found


def _elements(tensor: TensorArgument, value: Any) -> Sequence[Any]:
    """The shape of a tensor in elements, of which a byte has two in a packed type."""
    *outer, last = value.shape
    return [*outer, 2 * last] if tensor.dtype in PACKED_DTYPES else value.shape


def _scalar(dtype: str) -> str:
    return "float" if dtype.startswith(("float", "bfloat")) else "bool" if dtype == "bool" else "int"


def _keep_all(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Saves all tensors, inputs before outputs, in `ctx.saved_tensors`; scalars in `ctx.scalars`."""
    import torch

    outputs = output if isinstance(output, tuple) else (output,)
    ctx.scalars = tuple(each for each in inputs if not isinstance(each, torch.Tensor))
    ctx.save_for_backward(*(each for each in (*inputs, *outputs) if isinstance(each, torch.Tensor)))
