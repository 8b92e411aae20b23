"""What a template may see: flat, frozen, strings and tuples only."""

from tile2cu.core.record import Record
from tile2cu.styles.base.view import NO_SECTION, Declaration, KernelParts, Section


class HostView(Record, frozen=True):
    """The C interface: what a call may be, what it needs, and the launch.

    `params` are the launcher's, `defined_params` the same without the names that its text does not use; `sizes` those
    of its queries, `workspace_params` those that the size of the workspace is computed from, `size_names` what the
    launcher asks them with. `refusals` are what NAME_supports answers for sizes, `checks` what the launcher adds for
    pointers. `workspace` is the size of the workspace in bytes, "0" for none. `left_out_by` is the macro of a compiler
    that takes kernels alone, if the language has one.
    """

    title: str
    left_out_by: str
    params: tuple[str, ...]
    defined_params: tuple[str, ...]
    sizes: tuple[str, ...]
    size_names: tuple[str, ...]
    workspace_params: tuple[str, ...]
    refusals: tuple[Declaration, ...]
    stream: str  # its type
    workspace: str
    workspace_schedule: tuple[Declaration, ...]  # what its size is computed from
    checks: tuple[Declaration, ...]
    launches: tuple["HostLaunch", ...]
    launching: tuple[str, ...]  # what a call does, in words
    shared: str = ""  # the bytes of shared memory that devices of the target's architecture may lack


class HostLaunch(Record, frozen=True):
    """One launch of the launcher: `namespace` is its kernel's, empty where the text has one kernel."""

    namespace: str
    about: str
    choice: tuple[Declaration, ...]
    grid: str
    call: str
    tiles: tuple[Declaration, ...] = ()  # in the place of the grid of a persistent kernel


class KernelView(Record, frozen=True):
    """A whole .cu or .hip file and its header.

    `sizes` are those that several launches share, none where there is one; `pasted` is C++ of the user's own.
    `group` are the threads of each independent group, or of all, empty where the block has none; `headers` are tl's.
    `cuda_half`: half is CUDA's own type, as C++ of the user's own may want it.
    """

    name: str
    namespace: str
    provenance: tuple[str, ...]
    contract: tuple[str, ...]  # of the source
    changes: tuple[str, ...]  # how tile sizes are changed
    summary: tuple[str, ...]  # what the header has of it
    suffix: str  # of the source
    group: tuple[int, ...]
    headers: tuple[str, ...]
    cuda_half: bool
    pasted: tuple[Section, ...]
    sizes: Section
    shared_limit: int
    shared_about: str  # the same in words
    arch: str
    launches: tuple["LaunchView", ...]
    host: HostView
    functor: bool = False  # kernels are functors with Kargs
    uses: str = ""  # a using-directive of the kernel's namespace, or empty
    schedule: Section = NO_SECTION  # the members of the struct of what launcher and kernels both compute
    legend: tuple[str, ...] = ()  # what the notations in the comments mean
    debugging: tuple[str, ...] = ()  # where to look if a result is wrong


class LaunchView(Record, frozen=True):
    """One kernel of the source, what it depends on, and what a block does.

    `function` is its name; `namespace` and `title` are empty where the text has one kernel.
    """

    function: str
    namespace: str
    title: str
    sizes: Section
    comments: tuple[str, ...]
    template: str  # "class Alignment", or empty
    threads: str  # of a block
    occupancy: str  # what __launch_bounds__ has besides the threads, or empty
    cluster: str  # of __cluster_dims__, or empty
    params: tuple[str, ...]
    parts: KernelParts
    kargs: tuple["Member", ...] = ()  # of a functor's arguments
    scalars: tuple[tuple[str, ...], ...] = ()  # of them, those that are no tensors; neighbours of one type together
    grid: str = ""  # a functor's grid, and the sizes it is computed from
    grid_sizes: tuple[str, ...] = ()
    on_host: frozenset[str] = frozenset()  # the names that compilations for the host see of a functor


class Member(Record, frozen=True):
    """A member of a struct."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


class DispatchEntryView(Record, frozen=True):
    """A row of a dispatch table: `guard` is what must hold of the call, `sizes` and `arguments` are its members."""

    name: str
    function: str
    comments: tuple[str, ...]
    guard: str
    sizes: tuple[str, ...]
    arguments: tuple[str, ...]


class DispatchView(Record, frozen=True):
    """NAME_dispatch.cpp and its header. `queried` are the parameters that queries take, without tensors."""

    name: str
    provenance: tuple[str, ...]
    about: tuple[str, ...]
    params: tuple[str, ...]
    values: tuple[str, ...]
    queried: tuple[str, ...]
    queried_values: tuple[str, ...]
    stream: str  # its type
    has_dtypes: bool
    entries: tuple[DispatchEntryView, ...]


class TestTensorView(Record, frozen=True):
    """A tensor of a test: `extents` and `strides` are lists of C++ expressions over the sizes."""

    name: str
    type: str
    extents: str
    strides: str
    written: bool


class TestView(Record, frozen=True):
    """NAME_test.cpp. `params` are the reference's, without the sizes; `arguments` what the launcher is given for them,
    `reference_arguments` what the reference is."""

    name: str
    provenance: tuple[str, ...]
    text: str  # the kernel's file
    on_cpu: str  # the GPU's properties for g++
    compiler: str  # for the GPU, with its options
    sizes: tuple[str, ...]
    constants: tuple[str, ...]
    tolerance: str
    coarsest: str
    units: str
    tensors: tuple[TestTensorView, ...]
    scalars: tuple[str, ...]
    params: tuple[str, ...]
    arguments: tuple[str, ...]
    reference_arguments: tuple[str, ...]
    reference: tuple[str, ...]
    cases: tuple[str, ...]
    most_blocks: int  # that run on the CPU engine; 0: all

    @property
    def size_values(self) -> tuple[str, ...]:
        return tuple(f"sizes.{size}" for size in self.sizes)

    @property
    def size_params(self) -> tuple[str, ...]:
        return tuple(f"int64_t {size}" for size in self.sizes)

    @property
    def reference_params(self) -> tuple[str, ...]:
        return (*self.params, *self.size_params)


class ShimTensorView(Record, frozen=True, kw_only=True):
    """A tensor of a shim: its element type as others name it, and its extents as C++ over the sizes."""

    name: str
    read: bool
    written: bool
    dtype: str
    torch: str
    xla: str
    code: str
    bits: str
    rank: str
    extents: tuple[str, ...]


class ShimScalarView(Record, frozen=True, kw_only=True):
    """A scalar of a shim: the launcher's type, and the widest one of its kind, which the shim takes."""

    name: str
    type: str
    wide: str


class ShimSizeView(Record, frozen=True, kw_only=True):
    """A run-time size, and its position in a tensor's shape; `tensor` is empty where it is in none."""

    name: str
    tensor: str
    dim: str


class ShimView(Record, frozen=True, kw_only=True):
    """A shim. `params` are the launcher's tensors and scalars in order, `schema` torch's, `device` DLPack's."""

    name: str
    provenance: tuple[str, ...]
    tensors: tuple[ShimTensorView, ...]
    scalars: tuple[ShimScalarView, ...]
    sizes: tuple[ShimSizeView, ...]
    params: tuple[str, ...]
    schema: str
    device: str

    @property
    def operands(self) -> tuple[ShimTensorView, ...]:
        """The tensors that are read, which XLA passes as operands."""
        return tuple(tensor for tensor in self.tensors if tensor.read)

    @property
    def results(self) -> tuple[ShimTensorView, ...]:
        """The tensors that are written, which are XLA's results; one that is read, too, is aliased to its operand."""
        return tuple(tensor for tensor in self.tensors if tensor.written)

    @property
    def result_names(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.results)

    @property
    def aliases(self) -> tuple[str, ...]:
        """`operand: result`, by their numbers, of tensors that are read and written."""
        both = (tensor for tensor in self.tensors if tensor.read and tensor.written)
        return tuple(f"{self.operands.index(tensor)}: {self.results.index(tensor)}" for tensor in both)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The scalars, and the sizes that no tensor has."""
        return (*(scalar.name for scalar in self.scalars), *self.given_sizes)

    @property
    def platform(self) -> str:
        """JAX's name of the GPU's platform."""
        return {"kDLCUDA": "CUDA", "kDLROCM": "ROCM"}[self.device]

    @property
    def size_names(self) -> tuple[str, ...]:
        return tuple(size.name for size in self.sizes)

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.tensors)

    @property
    def given_sizes(self) -> tuple[str, ...]:
        return tuple(size.name for size in self.sizes if not size.tensor)
