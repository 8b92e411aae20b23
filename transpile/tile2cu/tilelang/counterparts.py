"""TileLang's interface, part by part: what tile2cu.tilelang has in its place. docs/migrating.md has it as a table."""

from collections.abc import Iterator
from enum import Enum

from tile2cu.core.record import Record
from tile2cu.tilelang.notes import WITHOUT_EFFECT
from tile2cu.tilelang.options import PASS_CONFIGS


class Status(Enum):
    """How a part compares with TileLang's."""

    SAME = "same"
    DIFFERS = "differs"
    IGNORED = "no effect"
    MISSING = "missing"


class Part(Record, frozen=True):
    """A name of TileLang's interface; `note` is what differs, or what takes its place."""

    name: str
    status: Status
    note: str = ""


_SAME, _DIFFERS, _IGNORED, _MISSING = Status
PARTS: tuple[Part, ...] = (
    Part("tilelang.jit", _DIFFERS, "the function's text is read, it is not called"),
    Part("tilelang.lazy_jit", _DIFFERS, "as `tilelang.jit`"),
    Part("tilelang.compile", _DIFFERS, "takes functions with `@T.prim_func`"),
    Part("tilelang.par_compile", _DIFFERS, "one after the other; builds are cached"),
    Part(
        "tilelang.JITKernel",
        _DIFFERS,
        "also has the methods of tile2cu's kernels: `layouts`, `resources()`",
    ),
    Part("JITKernel.get_kernel_source", _DIFFERS, "the emitted source, with its launcher"),
    Part("JITKernel.get_host_source", _DIFFERS, "the header with the C function's contract"),
    Part("JITKernel.show_source", _SAME),
    Part("JITKernel.print_source_code", _SAME),
    Part("JITKernel.export_sources", _SAME),
    Part("JITKernel.export_library", _DIFFERS, "a copy of the built library; `tile2cu vendor` writes sources"),
    Part("JITKernel.get_profiler", _SAME),
    Part("JITKernel.run_once", _SAME),
    Part("JITKernel.show_ptx", _SAME),
    Part("JITKernel.export_ptx", _SAME),
    Part("JITKernel.show_sass", _SAME),
    Part("JITKernel.export_sass", _SAME),
    Part("JITKernel.n_regs", _SAME),
    Part("JITKernel.n_max_threads", _SAME),
    Part("JITKernel.kernel_source", _DIFFERS, "as `get_kernel_source()`"),
    Part("JITKernel.host_source", _DIFFERS, "as `get_host_source()`"),
    Part("JITKernel.from_database", _MISSING, "builds are found by the content of their sources"),
    Part("JITKernel.from_tilelang_function", _MISSING, "`tilelang.compile`"),
    Part("JITKernel.n_spills", _DIFFERS, "bytes of spill stores and loads"),
    Part("JITKernel.resource_usage", _DIFFERS, "as `tile2cu resources --json`"),
    Part("JITKernel.update_tuner_result", _SAME),
    Part("JITKernel.get_tuner_result", _SAME),
    Part("JITKernel.out_idx", _SAME),
    Part("JITKernel.params", _DIFFERS, "the manifest's arguments: name, dtype, shape"),
    Part("JITKernel.prim_func", _DIFFERS, "of `tilelang.compile`; its text, there is no TIR"),
    Part("tilelang.autotune", _DIFFERS, "all configurations in interleaved rounds; `TILE2CU_TUNE_CONFIGS` limits them"),
    Part("tilelang.autotuner.AutoTuner", _DIFFERS, "as `tilelang.autotune`"),
    Part("tilelang.autotuner.autotune", _DIFFERS, "as `tilelang.autotune`"),
    Part("tilelang.autotuner.set_autotune_inputs", _SAME),
    Part("tilelang.autotuner.get_autotune_inputs", _SAME),
    Part("tilelang.lower", _DIFFERS, "the emitted source and its manifest, without a build"),
    Part("tilelang.profiler.do_bench", _DIFFERS, "medians, L2 flushed, the launch hidden; `backend` has no effect"),
    Part("tilelang.profiler.Profiler", _SAME),
    Part("tilelang.Profiler", _SAME),
    Part("Profiler.do_bench", _DIFFERS, "as `tilelang.profiler.do_bench`"),
    Part("Profiler.assert_allclose", _SAME),
    Part("Profiler.assert_consistent", _SAME),
    Part("Profiler.manual_assert_close", _SAME),
    Part("Profiler.run_once", _SAME),
    Part("tilelang.TensorSupplyType", _SAME),
    Part("tilelang.PassConfigKey", _DIFFERS, "see the pass configs below"),
    Part("tilelang.transform.PassConfigKey", _DIFFERS, "see the pass configs below"),
    Part("tilelang.transform.simplify_prim_func", _IGNORED, "the rules simplify what they emit"),
    Part("tilelang.DataType", _SAME),
    Part("tvm.DataType", _DIFFERS, "`tile2cu.tilelang.DataType`"),
    Part("tilelang.cdiv", _SAME),
    Part("tilelang.ceildiv", _SAME),
    Part("tilelang.next_power_of_2", _SAME),
    Part("tilelang.math.next_power_of_2", _SAME),
    Part("tilelang.math.cdiv", _SAME),
    Part("tilelang.env", _DIFFERS, "`TILELANG_CACHE_DIR` is the build cache"),
    Part("tilelang.cached", _SAME),
    Part("tilelang.set_cache_dir", _SAME),
    Part("tilelang.is_cache_enabled", _SAME),
    Part("tilelang.enable_cache", _IGNORED, "builds are found by the content of their sources"),
    Part("tilelang.disable_cache", _IGNORED, "builds are found by the content of their sources"),
    Part("tilelang.clear_cache", _IGNORED, "remove the folder `tile2cu_runtime.cache_dir()`"),
    Part("tilelang.set_log_level", _IGNORED, "`tile2cu explain FILE` reports the decisions"),
    Part("tilelang.utils.determine_fp8_type", _SAME),
    Part("tilelang.utils.determine_torch_fp8_type", _SAME),
    Part("tilelang.utils.tensor.torch_assert_close", _SAME),
    Part("tilelang.utils.tensor.get_tensor_supply", _SAME),
    Part("tilelang.utils.tensor.map_torch_type", _SAME),
    Part("tilelang.language.fp8.determine_fp8_type", _SAME),
    Part("tilelang.language.fp8.determine_torch_fp8_type", _SAME),
    Part("tilelang.tools.plot_layout", _DIFFERS, "SVG, of `kernel.layouts[NAME]`, a `T.Layout` or a `T.Fragment`"),
    Part("tilelang.testing.main", _SAME),
    Part("tilelang.testing.requires_cuda", _DIFFERS, "a test also runs with `TILE2CU_DEVICE=cpu`"),
    Part("tilelang.testing.requires_cuda_compute_version", _SAME),
    Part("tilelang.testing.requires_package", _SAME),
    Part("tilelang.testing.requires_rocm", _SAME),
    Part("tilelang.testing.set_random_seed", _SAME),
    Part("tilelang.testing.torch_assert_close", _SAME),
    Part("tilelang.testing.process_func", _DIFFERS, "prints the time, and keeps no record"),
    Part("tilelang.testing.regression", _DIFFERS, "calls `regression_` functions of the file"),
    Part("tilelang.carver.arch.driver", _SAME),
    Part("tilelang.carver.arch.driver.get_num_sms", _SAME),
    Part("tilelang.contrib.nvcc.get_target_compute_version", _SAME),
    Part("tilelang.contrib.nvcc.parse_compute_version", _SAME),
    Part("AutoTuner.from_kernel", _SAME),
    Part("AutoTuner.set_compile_args", _SAME),
    Part("AutoTuner.set_profile_args", _SAME),
    Part("AutoTuner.run", _DIFFERS, "as `tilelang.autotune`"),
    Part("AutoTuner.set_kernel_parameters", _MISSING, "arguments are those of the call"),
    Part("AutoTuner.generate_cache_key", _MISSING, "builds are found by the content of their sources"),
    Part("tilelang.autotuner.tuner", _SAME, "the names of `tilelang.autotuner`; others are missing"),
    Part("tilelang.autotuner.capture", _SAME, "the names of `tilelang.autotuner`; others are missing"),
    Part("tilelang.jit.kernel.JITKernel", _SAME, "`tilelang.JITKernel`"),
    Part("tilelang.profiler.bench", _SAME, "`do_bench`; `suppress_stdout_stderr` is missing"),
    Part("Profiler.with_default_adapter", _SAME),
    Part("tilelang.cache", _SAME, "the names of `tilelang.env`; others are missing"),
    Part("tilelang.dtypes", _SAME),
    Part("tilelang.logger", _DIFFERS, "Python's logger of that name; tile2cu writes nothing to it"),
    Part("tilelang.build_date", _MISSING, "`tile2cu.__version__`"),
    Part("tilelang.deprecated", _MISSING, "Python's `warnings.deprecated`"),
    Part("tilelang.libinfo", _MISSING, "there is no compiled library"),
    Part("tilelang.register_cuda_postproc", _MISSING, "edit the emitted source; `tile2cu update` merges later changes"),
    Part("tilelang.register_hip_postproc", _MISSING, "edit the emitted source; `tile2cu update` merges later changes"),
    Part("tilelang.register_c_postproc", _MISSING, "edit the emitted source; `tile2cu update` merges later changes"),
    Part("tilelang.analysis", _MISSING, "there is no TIR; `tile2cu explain` reports the decisions"),
    Part("tilelang.transform", _MISSING, "but for the names above: passes are listed in docs/rules.md"),
    Part("tilelang.utils.language", _MISSING, "queries of TIR buffers"),
    Part("tilelang.utils.tensor", _MISSING, "but for the names above"),
    Part("tilelang.contrib", _MISSING, "but for `nvcc`: `kernel.export_ptx`, `tile2cu resources` and `tile2cu vendor`"),
    Part("tilelang.contrib.nvcc.have_tensorcore", _SAME),
    Part("tilelang.contrib.nvcc", _MISSING, "but for the names above; `torch.cuda.get_device_capability()`"),
    Part("tilelang.testing.requires_cuda_or_cdna", _SAME),
    Part("tilelang.testing.requires_cdna", _SAME),
    Part("tilelang.testing.requires_gfx950", _SAME),
    Part("tilelang.testing.requires_cuda_compute_version_ge", _SAME, "also `_gt`, `_eq`, `_lt`, `_le`"),
    Part("tilelang.cpu", _MISSING, "`TILE2CU_DEVICE=cpu` runs GPU kernels on the CPU engine"),
    Part("tilelang.metal", _MISSING, "the targets are CUDA and HIP"),
    Part("tilelang.webgpu", _MISSING, "the targets are CUDA and HIP"),
    Part("tilelang.autodd", _MISSING, "a tool that reduces failing TIR programs"),
    Part("tilelang.backend", _MISSING, "there is no TVM"),
    Part("tilelang.primitives", _MISSING, "T.gemm selects the instruction"),
    Part("tilelang.Layout", _DIFFERS, "functions of numbers, which are evaluated; also `plot()`"),
    Part("tilelang.Fragment", _DIFFERS, "as `tilelang.Layout`"),
    Part("tilelang.layout", _DIFFERS, "in kernels only, but for `Layout`, `Fragment` and swizzles of numbers"),
    Part("tilelang.quantize", _DIFFERS, "in kernels only"),
    Part("tilelang.tileop.base.GemmWarpPolicy", _DIFFERS, "in kernels only"),
    Part("tilelang.tools.Analyzer", _MISSING, "`tile2cu bench FILE` counts operations and bytes"),
    Part("tilelang.carver", _MISSING, "write the configurations, or see `tile2cu bench`"),
    Part("tilelang.engine", _MISSING, "edit the emitted source; `tile2cu update` merges later changes"),
    Part("tilelang.intrinsics", _MISSING, "T.gemm selects the instruction"),
    Part("tilelang.cuda", _MISSING, "T.gemm selects the instruction"),
    Part("tilelang.rocm", _MISSING, "T.gemm selects the instruction"),
    Part("tilelang.ir", _MISSING, "there is no TIR; decisions are in the manifest"),
    Part("tilelang.tools.cuda", _MISSING, "Nsight Systems and `tile2cu review` show timelines"),
    Part("tilelang.tvm", _MISSING, "there is no TVM"),
    Part("tvm.tirx", _DIFFERS, "in kernels only"),
    Part("tilelang.tvm.tirx", _DIFFERS, "in kernels only"),
    Part("tvm", _MISSING, "there is no TVM"),
)


def counterpart(name: str) -> Part | None:
    """The part that a qualified name belongs to: itself, or the longest one that it begins with."""
    known = {part.name: part for part in PARTS}
    words = name.split(".")
    for end in range(len(words), 0, -1):
        if found := known.get(".".join(words[:end])):
            return found
    return None


def table() -> Iterator[str]:
    """The lines of the tables of docs/migrating.md."""
    yield "| TileLang | Here | Note |"
    yield "|---|---|---|"
    for part in PARTS:
        yield f"| `{part.name}` | {part.status.value} | {part.note} |"
    yield ""
    yield "| Argument of `jit`, `compile` | Why it has no effect |"
    yield "|---|---|"
    for name, reason in WITHOUT_EFFECT.items():
        yield f"| `{name}` | {reason} |"
    yield ""
    yield "| Pass config | Here |"
    yield "|---|---|"
    for name, reason in PASS_CONFIGS.items():
        yield f"| `{name}` | {reason} |"
