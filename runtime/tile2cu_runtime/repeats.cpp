// The fast path of repeats.py for repeated calls, without Python attribute lookups: a module with two types, Repeats,
// and Called, a base class of kernels that dispatches without a Python frame.
// Tensors are accessed by torch's DLPack exchange API, which torch.Tensor has from torch 2.10 on. A call that differs
// from all recorded ones returns NotImplemented, and Python handles it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace {

constexpr Py_ssize_t most_tensors = 32;
constexpr Py_ssize_t most_words = 64;  // addresses and sizes of a call, and its workspace
constexpr size_t most_kinds = 256;     // of calls; then the cache is cleared

// An owned reference to a Python object, or null.
class Owned {
 public:
  explicit Owned(PyObject* taken = nullptr) : object_(taken) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~Owned() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

Owned shared(PyObject* object) { return Owned(Py_NewRef(object)); }

// ---- DLPack's C exchange --------------------------------------------------------------------------------------------
// Source: dmlc/dlpack, include/dlpack/dlpack.h 1.3, DLTensor and DLPackExchangeAPI.

struct Tensor {
  void* data;
  int32_t device_type, device;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;  // in elements
  uint64_t byte_offset;

  uint64_t address() const { return reinterpret_cast<uint64_t>(data) + byte_offset; }
  // torch has types of 1 to 7 bits, which DLPack exports as bytes.
  bool is_byte() const { return code == 1 && bits == 8; }
};

struct Exchange {
  uint32_t major, minor;
  const void* earlier_version;
  void* managed_functions[3];
  int (*describe)(void* object, Tensor* tensor);  // 0, or -1 with a Python error; borrows the memory
  int (*current_stream)(int32_t device_type, int32_t device, void** stream);
};

// ---- recorded calls -------------------------------------------------------------------------------------------------

// The properties of a tensor, except its address, that determine whether a call is valid.
struct Kind {
  int32_t device_type, device;
  uint8_t code, bits;
  uint16_t lanes;
  Owned dtype;  // torch's own
  std::vector<int64_t> shape, strides;

  bool has(const Tensor& t) const {
    if (t.device_type != device_type || t.device != device || t.code != code || t.bits != bits || t.lanes != lanes ||
        size_t(t.rank) != shape.size())
      return false;
    for (size_t d = 0; d < shape.size(); ++d)
      if (t.shape[d] != shape[d] || t.strides[d] != strides[d]) return false;
    return true;
  }
};

// An output to allocate: its index among the kernel's tensors, and the call that allocates it.
struct Missing {
  Py_ssize_t place;
  Owned function, arguments, keywords;

  PyObject* made() const { return PyObject_Call(function.get(), arguments.get(), keywords.get()); }
};

struct Known {
  std::vector<Kind> given;
  std::vector<Missing> missing;
  std::vector<uint64_t> bytes;  // per tensor of the kernel
  std::vector<uint64_t> sizes;
  std::vector<Missing> workspace;  // one, or none
  long gpu;
};

struct Pair {
  Py_ssize_t a, b;
};

// The kernel's launcher; `words` are 8 bytes each: addresses, then sizes. Returns its status.
using Launch = int (*)(const void* words, void* stream);

// An attribute of torch.Tensor that is implemented in C, looked up once.
struct Attribute {
  Owned descriptor;  // owns the functions
  getter get = nullptr;
  void* closure = nullptr;
  PyCFunction method = nullptr;  // METH_NOARGS

  Attribute(PyObject* type, const char* name) : descriptor(PyObject_GetAttrString(type, name)) {
    PyObject* const found = descriptor.get();
    if (found == nullptr) {
      PyErr_Clear();
    } else if (Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
      const PyGetSetDef* const definition = reinterpret_cast<PyGetSetDescrObject*>(found)->d_getset;
      get = definition->get, closure = definition->closure;
    } else if (Py_IS_TYPE(found, &PyMethodDescr_Type)) {
      const PyMethodDef* const definition = reinterpret_cast<PyMethodDescrObject*>(found)->d_method;
      if (definition->ml_flags == METH_NOARGS) method = definition->ml_meth;
    }
  }
  bool found() const { return get != nullptr || method != nullptr; }
  Owned of(PyObject* tensor) const { return Owned(get != nullptr ? get(tensor, closure) : method(tensor, nullptr)); }
};

// The C++ state of a Repeats.
struct State {
  const Exchange* exchange;
  Launch launch;
  Attribute dtype, is_neg, requires_grad;
  // Python objects: the types of tensors, and functions to call.
  Owned tensor, parameter, current_device, fail;
  uint64_t alignment;         // minus one
  std::vector<bool> written;  // by index among the kernel's tensors
  std::vector<Pair> apart;    // tensors that must not overlap
  // Shared ownership: an allocating call may run Python code that re-enters.
  std::vector<std::shared_ptr<const Known>> known;
  size_t last;  // the kind of the last call
};

struct Repeats {
  PyObject_HEAD vectorcallfunc call;
  State* state;
};

PyObject* not_implemented() {
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

// Whether a Python call returned this object.
bool is(PyObject* wanted, const Owned& answer) { return answer.get() == wanted; }

bool describe(const State& self, PyObject* object, Tensor& tensor) {
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return (type == self.tensor.get() || type == self.parameter.get()) && self.exchange->describe(object, &tensor) == 0 &&
         (tensor.strides != nullptr || tensor.rank == 0);
}

// The recorded kind of a call with these tensors, or null.
std::shared_ptr<const Known> find(State& self, const Tensor* tensors, size_t count) {
  const auto fits = [&](const Known& known) {
    if (known.given.size() != count) return false;
    for (size_t i = 0; i < count; ++i)
      if (!known.given[i].has(tensors[i])) return false;
    return true;
  };
  const size_t kinds = self.known.size();
  for (size_t step = 0; step < kinds; ++step) {
    const size_t at = (self.last + step) % kinds;
    if (fits(*self.known[at])) return self.known[self.last = at];
  }
  return nullptr;
}

// Properties that DLPack does not export: the dtype of small integers, lazy negation, requires_grad of a written
// tensor.
bool is_plain(const State& self, PyObject* object, const Tensor& tensor, const Kind& kind, Py_ssize_t place) {
  if (tensor.is_byte() && !is(kind.dtype.get(), self.dtype.of(object))) return false;
  if (!is(Py_False, self.is_neg.of(object))) return false;
  return !self.written[place] || is(Py_False, self.requires_grad.of(object));
}

// Whether the addresses are aligned, and written tensors overlap no other.
bool is_legal(const State& self, const Known& known, const uint64_t* addresses, Py_ssize_t count) {
  uint64_t all = 0;
  for (Py_ssize_t i = 0; i < count; ++i) all |= addresses[i];
  if (all & self.alignment) return false;
  for (const auto& [a, b] : self.apart)
    if (addresses[a] < addresses[b] + known.bytes[b] && addresses[b] < addresses[a] + known.bytes[a]) return false;
  return true;
}

bool is_current(const State& self, long gpu) {
  const Owned found(PyObject_CallNoArgs(self.current_device.get()));
  return found.get() != nullptr && PyLong_AsLong(found.get()) == gpu;
}

// None, the output, or a tuple of several.
PyObject* result_of(const std::vector<Owned>& made) {
  if (made.empty()) Py_RETURN_NONE;
  if (made.size() == 1) return Py_NewRef(made[0].get());
  PyObject* const all = PyTuple_New(Py_ssize_t(made.size()));
  for (size_t i = 0; all != nullptr && i < made.size(); ++i)
    PyTuple_SET_ITEM(all, Py_ssize_t(i), Py_NewRef(made[i].get()));
  return all;
}

// Repeats(*tensors): launches and returns the allocated outputs, or NotImplemented.
PyObject* call(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  State& self = *reinterpret_cast<Repeats*>(object)->state;
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  if (keywords != nullptr || count > most_tensors) return not_implemented();
  Tensor tensors[most_tensors];
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!describe(self, args[i], tensors[i])) return not_implemented();
  const auto known = find(self, tensors, size_t(count));
  if (known == nullptr || !is_current(self, known->gpu)) return not_implemented();

  uint64_t words[most_words];
  std::vector<Owned> made;
  Py_ssize_t places = Py_ssize_t(known->bytes.size()), given = 0;
  for (Py_ssize_t place = 0; place < places; ++place) {
    const size_t next = made.size();
    if (next < known->missing.size() && known->missing[next].place == place) {
      made.emplace_back(known->missing[next].made());
      if (made.back().get() == nullptr) return nullptr;
      Tensor tensor;
      if (!describe(self, made.back().get(), tensor)) return not_implemented();
      words[place] = tensor.address();
    } else {
      if (!is_plain(self, args[given], tensors[given], known->given[given], place)) return not_implemented();
      words[place] = tensors[given++].address();
    }
  }
  if (!is_legal(self, *known, words, places)) return not_implemented();
  for (const uint64_t size : known->sizes) words[places++] = size;
  words[places] = 0;
  // From torch's allocator, which reuses the memory in stream order.
  const Owned workspace(known->workspace.empty() ? nullptr : known->workspace[0].made());
  if (!known->workspace.empty()) {
    Tensor memory;
    if (workspace.get() == nullptr) return nullptr;
    if (!describe(self, workspace.get(), memory)) return not_implemented();
    words[places] = memory.address();
  }
  void* stream = nullptr;
  const Kind& first = known->given[0];
  if (self.exchange->current_stream(first.device_type, first.device, &stream) != 0) return not_implemented();

  int status;
  Py_BEGIN_ALLOW_THREADS  // other Python threads run while the kernel is launched
      status = self.launch(words, stream);
  Py_END_ALLOW_THREADS return status == 0 ? result_of(made) : PyObject_CallFunction(self.fail.get(), "i", status);
}

// ---- the type -------------------------------------------------------------------------------------------------------

// The numbers of a sequence; sets a Python error for other elements.
template <class T> std::vector<T> numbers(PyObject* sequence) {
  std::vector<T> found;
  const Owned items(PySequence_Tuple(sequence));
  for (Py_ssize_t i = 0; items.get() != nullptr && i < PyTuple_GET_SIZE(items.get()); ++i)
    found.push_back(T(PyLong_AsLongLong(PyTuple_GET_ITEM(items.get(), i))));
  return found;
}

// remember(args, bytes, sizes, places, outputs, gpu): returns True if calls of this kind are recorded now. `outputs` is
// (function, arguments, keywords) for each of `places`, and for the workspace, if the kernel needs one.
PyObject* remember(PyObject* object, PyObject* arguments) {
  State& self = *reinterpret_cast<Repeats*>(object)->state;
  PyObject *args, *bytes, *sizes, *places, *outputs;
  long gpu;
  if (!PyArg_ParseTuple(arguments, "O!OOOO!l", &PyTuple_Type, &args, &bytes, &sizes, &places, &PyTuple_Type, &outputs,
                        &gpu))
    return nullptr;
  Known known{{}, {}, numbers<uint64_t>(bytes), numbers<uint64_t>(sizes), {}, gpu};
  const auto missing = numbers<Py_ssize_t>(places);
  if (PyErr_Occurred()) return nullptr;
  const size_t count = size_t(PyTuple_GET_SIZE(args)), tensors = known.bytes.size();
  if (count == 0 || tensors > most_tensors || tensors + known.sizes.size() >= most_words ||
      count + missing.size() != tensors || size_t(PyTuple_GET_SIZE(outputs)) - missing.size() > 1 ||
      tensors != self.written.size())
    Py_RETURN_FALSE;
  Tensor given[most_tensors];
  for (size_t i = 0; i < count; ++i) {
    PyObject* const arg = PyTuple_GET_ITEM(args, Py_ssize_t(i));
    Tensor& t = given[i];
    if (!describe(self, arg, t)) {
      PyErr_Clear();
      Py_RETURN_FALSE;
    }
    Owned dtype = self.dtype.of(arg);
    if (dtype.get() == nullptr) return nullptr;
    known.given.push_back({t.device_type,
                           t.device,
                           t.code,
                           t.bits,
                           t.lanes,
                           std::move(dtype),
                           {t.shape, t.shape + t.rank},
                           {t.strides, t.strides + t.rank}});
  }
  if (find(self, given, count) != nullptr) Py_RETURN_TRUE;  // known, but bound again because another GPU was current
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject *function, *arguments, *keywords;
    PyObject* const output = PyTuple_GET_ITEM(outputs, i);
    if (!PyArg_ParseTuple(output, "OO!O!", &function, &PyTuple_Type, &arguments, &PyDict_Type, &keywords))
      return nullptr;
    const bool is_output = size_t(i) < missing.size();
    (is_output ? known.missing : known.workspace)
        .push_back({is_output ? missing[size_t(i)] : 0, shared(function), shared(arguments), shared(keywords)});
  }
  if (self.known.size() >= most_kinds) self.known.clear();
  self.known.push_back(std::make_shared<const Known>(std::move(known)));
  self.last = self.known.size() - 1;
  Py_RETURN_TRUE;
}

// Repeats(exchange, launch, tensor, parameter, current_device, fail, alignment, written, apart): two capsules, Python
// objects, a number, the indices of written tensors, and flattened pairs of indices.
PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *exchange, *launch, *objects[4], *written, *apart;
  unsigned long long alignment;
  if (!PyArg_ParseTuple(arguments, "OOOOOOKOO", &exchange, &launch, &objects[0], &objects[1], &objects[2], &objects[3],
                        &alignment, &written, &apart))
    return nullptr;
  auto* const table = static_cast<const Exchange*>(PyCapsule_GetPointer(exchange, "dlpack_exchange_api"));
  void* const launcher = PyCapsule_GetPointer(launch, "tile2cu.launch");
  if (table == nullptr || launcher == nullptr) return nullptr;
  if (table->major != 1 || table->describe == nullptr || table->current_stream == nullptr)
    return PyErr_Format(PyExc_NotImplementedError, "DLPack %u.%u", table->major, table->minor);
  Attribute dtype(objects[0], "dtype"), is_neg(objects[0], "is_neg"), requires_grad(objects[0], "requires_grad");
  if (!dtype.found() || !is_neg.found() || !requires_grad.found())
    return PyErr_Format(PyExc_NotImplementedError, "torch's tensors answer otherwise");
  const auto flags = numbers<bool>(written);
  const auto pairs = numbers<Py_ssize_t>(apart);
  if (PyErr_Occurred()) return nullptr;
  auto* const found = reinterpret_cast<Repeats*>(type->tp_alloc(type, 0));
  if (found == nullptr) return nullptr;
  found->call = call;
  found->state = new State{table,
                           reinterpret_cast<Launch>(launcher),
                           std::move(dtype),
                           std::move(is_neg),
                           std::move(requires_grad),
                           shared(objects[0]),
                           shared(objects[1]),
                           shared(objects[2]),
                           shared(objects[3]),
                           alignment - 1,
                           flags,
                           {},
                           {},
                           0};
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) found->state->apart.push_back({pairs[i], pairs[i + 1]});
  return reinterpret_cast<PyObject*>(found);
}

void destroy(PyObject* object) {
  PyObject_GC_UnTrack(object);
  delete reinterpret_cast<Repeats*>(object)->state;
  Py_TYPE(object)->tp_free(object);
}

// `fail` may be a bound method of the owning kernel.
int traverse(PyObject* object, visitproc visit, void* arg) {
  const State* const state = reinterpret_cast<Repeats*>(object)->state;
  if (state != nullptr) Py_VISIT(state->fail.get());
  return 0;
}

PyMethodDef methods[] = {{"remember", remember, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject repeats_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

// ---- a base of kernels ----------------------------------------------------------------------------------------------

// Calls are forwarded to `_first`, if set; if it returns NotImplemented, to the method `_call`.
struct Called {
  PyObject_HEAD vectorcallfunc call;
  PyObject* first;
};

PyObject* name_call;

PyObject* call_first(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  PyObject* const first = reinterpret_cast<Called*>(object)->first;
  if (named == 0 && first != nullptr && first != Py_None) {
    const Owned kept = shared(first);  // the call may replace it
    PyObject* const result = PyObject_Vectorcall(first, args, size_t(count), nullptr);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  std::vector<PyObject*> all{object};
  all.insert(all.end(), args, args + count + named);
  return PyObject_VectorcallMethod(name_call, all.data(), size_t(count) + 1, keywords);
}

PyObject* make_called(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const found = type->tp_alloc(type, 0);
  if (found != nullptr) reinterpret_cast<Called*>(found)->call = call_first;
  return found;
}

int traverse_called(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<Called*>(object)->first);
  return 0;
}

int clear_called(PyObject* object) {
  Py_CLEAR(reinterpret_cast<Called*>(object)->first);
  return 0;
}

void destroy_called(PyObject* object) {
  PyObject_GC_UnTrack(object);
  clear_called(object);
  Py_TYPE(object)->tp_free(object);
}

PyMemberDef called_members[] = {{"_first", T_OBJECT, offsetof(Called, first), 0, nullptr}, {nullptr, 0, 0, 0, nullptr}};

PyTypeObject called_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "tile2cu_repeats", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_tile2cu_repeats(void) {
  repeats_type.tp_name = "tile2cu_repeats.Repeats";
  repeats_type.tp_basicsize = sizeof(Repeats);
  repeats_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  repeats_type.tp_vectorcall_offset = offsetof(Repeats, call);
  repeats_type.tp_call = PyVectorcall_Call;
  repeats_type.tp_new = make;
  repeats_type.tp_dealloc = destroy;
  repeats_type.tp_traverse = traverse;
  repeats_type.tp_methods = methods;
  called_type.tp_name = "tile2cu_repeats.Called";
  called_type.tp_basicsize = sizeof(Called);
  called_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  called_type.tp_vectorcall_offset = offsetof(Called, call);
  called_type.tp_call = PyVectorcall_Call;
  called_type.tp_new = make_called;
  called_type.tp_dealloc = destroy_called;
  called_type.tp_traverse = traverse_called;
  called_type.tp_clear = clear_called;
  called_type.tp_members = called_members;
  name_call = PyUnicode_InternFromString("_call");
  if (!name_call || PyType_Ready(&repeats_type) < 0 || PyType_Ready(&called_type) < 0) return nullptr;
  PyObject* const found = PyModule_Create(&module);
  if (found && (PyModule_AddObjectRef(found, "Repeats", reinterpret_cast<PyObject*>(&repeats_type)) < 0 ||
                PyModule_AddObjectRef(found, "Called", reinterpret_cast<PyObject*>(&called_type)) < 0)) {
    Py_DECREF(found);
    return nullptr;
  }
  return found;
}
