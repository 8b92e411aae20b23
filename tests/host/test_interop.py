"""The examples of other libraries: a model of AOTInductor on the CPU engine, and a cubin by cuda.core."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.host.shims import EXAMPLES, build, torch_include, torch_link


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / "interop" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.binding
@pytest.mark.nightly  # Inductor compiles for half a minute
@pytest.mark.needs("torch")
@pytest.mark.parametrize("operator", ["python", "library"])
def test_a_model_is_compiled_ahead_of_time(operator: str, gxx: str, tmp_path: Path) -> None:
    """The kernel is an operator in the package, for any number of rows: of Python, or of a library that C++ loads."""
    import torch

    library = None
    if operator == "library":
        includes = [str(torch_include())]
        library = str(build(gxx, tmp_path, "torch", includes, torch_link(), "shim.so", example="gemm_relu"))
    package, model = example("aot_inductor").compile_ahead(tmp_path, "cpu", library)
    loaded = torch._inductor.aoti_load_package(str(package))
    for rows in (32, 5):
        x = torch.randn(rows, 64, dtype=torch.float16)
        expected = torch.relu(x.float() @ model.up.float()) @ model.down.float()
        torch.testing.assert_close(loaded(x).float(), expected, atol=2e-2, rtol=2e-2)


@pytest.mark.nightly  # test_torch_op.py has gradients of an operator
@pytest.mark.needs("torch")
def test_the_model_s_operator_has_gradients() -> None:
    import torch

    module = example("aot_inductor")
    model, x = module.Mlp(module.register("cpu"), 64, 128), torch.randn(8, 64, dtype=torch.float16)
    model(x).float().sum().backward()
    up, down = (parameter.detach().float().requires_grad_() for parameter in (model.up, model.down))
    (torch.relu(x.float() @ up) @ down).sum().backward()
    for found, expected in ((model.up.grad, up.grad), (model.down.grad, down.grad)):
        assert found is not None and expected is not None
        torch.testing.assert_close(found.float(), expected, atol=5e-2, rtol=5e-2)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_cuda_core_compiles_a_kernel_and_knows_its_launch(arch: str) -> None:
    """All of the example that needs no GPU."""
    pytest.importorskip("cuda.core")
    module = example("cuda_core")
    source, manifest = module.emitted()
    code = module.compiled(source, arch)
    assert b"gemm_relu_kernel" in code.code and module.KERNEL in code.symbol_mapping
    found = module.launch_config(manifest, 1000, 512)
    assert (found.grid, found.block, found.shmem_size) == ((4, 8, 1), (128, 1, 1), 49152)
