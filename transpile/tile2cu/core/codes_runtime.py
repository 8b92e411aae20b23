"""Diagnostics of tile2cu_runtime, which raises them but does not know this table."""

from collections.abc import Mapping

from tile2cu.core.explanation import Explanation

# Manifests, compilers, devices.
_LOADING: Mapping[str, Explanation] = {
    "T2C-R001": Explanation(
        "the manifest, or a file it names, does not exist",
        "A kernel is loaded from the folder that tile2cu wrote: the source, the header and the manifest belong "
        "together.",
    ),
    "T2C-R002": Explanation(
        "the manifest is not one",
        "The file is not JSON, lacks a field or has one of a wrong type. Manifests are written by tile2cu and not "
        "meant to be edited.",
    ),
    "T2C-R003": Explanation(
        "the manifest has another format",
        "It was written by another version of tile2cu. Regenerate the kernel.",
    ),
    "T2C-R010": Explanation(
        "a compiler, or a package that builds, is missing or does not run",
        "g++ is taken from TILE2CU_CXX or PATH; nvcc from CUDA_HOME, PATH, the PyPI packages or /usr/local/cuda; "
        "clang for AMD from TILE2CU_HIP_CLANG, PATH or the ziglang wheel.",
    ),
    "T2C-R011": Explanation(
        "a compiler failed",
        "The command and its output follow, and the folder is kept, so that the command can be repeated.",
    ),
    "T2C-R012": Explanation(
        "ptxas ignored an instruction",
        "ptxas dropped an instruction that the kernel's performance depends on, such as setmaxnreg. The kernel would "
        "be correct and slow, so it is rejected; tile2cu.tilelang warns instead, as TileLang does.",
    ),
    "T2C-R013": Explanation("the CPU engine's sources are missing", "The installation is incomplete."),
    "T2C-R014": Explanation(
        "a built library does not load",
        "It lacks the launcher, or needs something that is not on this machine. Its folder is kept.",
    ),
    "T2C-R015": Explanation(
        "the cache cannot be written",
        "Builds are kept in TILE2CU_CACHE, else under XDG_CACHE_HOME or ~/.cache.",
    ),
    "T2C-R020": Explanation(
        "no GPU of the kernel's vendor is present",
        'device="cpu" runs the same source on the CPU engine; for an AMD target device="sim" runs the same code '
        "object.",
    ),
    "T2C-R021": Explanation(
        "this GPU cannot run the kernel",
        "Code for sm_80 runs on later GPUs, code for sm_90a on compute capability 9.0 only, code for an AMD target on "
        "that architecture only.",
    ),
    "T2C-R022": Explanation(
        "the device does not run this language",
        '"cuda" runs sources for cuda targets, "hip" and "sim" those for hip targets; "cpu" runs both.',
    ),
    "T2C-R030": Explanation("an option has no such value", "The message lists the values."),
    "T2C-R031": Explanation(
        "checks were asked for on a GPU", "Checks and statistics belong to the CPU engine and the AMD simulator."
    ),
}

# Calls of a loaded kernel. Those up to R113 are raised before anything is launched.
_CALLING: Mapping[str, Explanation] = {
    "T2C-R100": Explanation(
        "the arguments are not those of the kernel",
        "Tensors and scalars are given in the manifest's order or by name, with or without the outputs.",
    ),
    "T2C-R101": Explanation(
        "an argument is not a tensor",
        "NumPy arrays, torch tensors and objects with an array interface or DLPack are.",
    ),
    "T2C-R102": Explanation("a tensor has the wrong element type", "Nothing is converted silently."),
    "T2C-R103": Explanation(
        "a tensor has the wrong number of dimensions",
        "The message shows the shape in the kernel's own names.",
    ),
    "T2C-R104": Explanation(
        "an extent of a tensor is wrong",
        "It is a compile-time constant, or another tensor already determined the size.",
    ),
    "T2C-R105": Explanation(
        "a size cannot be inferred from the tensors",
        "Sizes are solved from extents that are plain names. Others are passed by keyword.",
    ),
    "T2C-R106": Explanation(
        "a size is out of range",
        "Sizes are not negative and fit the type that the launcher takes.",
    ),
    "T2C-R107": Explanation(
        "a tensor is not contiguous",
        "The kernel addresses tensors as row-major and contiguous.",
    ),
    "T2C-R108": Explanation(
        "a tensor is on the wrong device",
        "All tensors of a call are on the device that the kernel was loaded for.",
    ),
    "T2C-R109": Explanation(
        "a tensor's memory is not aligned",
        "The kernel loads vectors of 16 bytes from its base pointer.",
    ),
    "T2C-R110": Explanation("a tensor cannot be written", "It is an output, and read-only."),
    "T2C-R111": Explanation(
        "a written tensor overlaps another",
        "The kernel's pointers are __restrict__: the compiler assumes that they do not alias.",
    ),
    "T2C-R112": Explanation("a scalar does not fit its type", "Nothing is rounded or wrapped silently."),
    "T2C-R113": Explanation("the stream is not one", "A torch stream, an object with its address, or the address."),
    "T2C-R120": Explanation(
        "the reference does not return what the kernel writes",
        "It returns one array for a kernel that writes one tensor, a tuple in the order of the written tensors, or a "
        "dict by their names, each of the tensor's shape.",
    ),
    "T2C-R200": Explanation(
        "the launch failed",
        "The launcher answered with a status other than TL_OK; the message names it.",
    ),
    "T2C-R210": Explanation(
        "a simulated launch ended early",
        "The kernel did something that the simulator cannot continue from, such as an out-of-bounds access in PTX, or "
        "has an unsupported instruction. The message names instruction, line and thread.",
    ),
    "T2C-R300": Explanation(
        "a checked run found faults",
        "The CPU engine saw a race in shared or global memory, between threads or blocks, an asynchronous copy "
        "whose source is overwritten or whose destination is used before it is complete, an access outside of a "
        "tensor, of its shared tile or of its private array, a read of shared or global memory that nothing has "
        "written, an MMA that adds to such an accumulator, a store to a floating-point tensor of a value that nothing "
        "has written or that "
        "floating-point arithmetic made of one, a wrong barrier or a deadlock. Each finding names its places, in "
        "Python lines. Operands of an MMA of 16-bit or float elements that nothing has written are a warning as "
        "long as no result that depends on them is stored. It does not see: T.alloc_local arrays that are read "
        "before they are written, integers that nothing has written other than 32-bit "
        "accumulators of an MMA instruction, and floats that nothing has written where they only decide a branch or "
        "lose against a number in a minimum or maximum.",
    ),
}

RUNTIME: Mapping[str, Explanation] = {**_LOADING, **_CALLING}
