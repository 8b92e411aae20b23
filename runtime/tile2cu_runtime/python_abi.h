// The functions of Python's C API that a binding uses, all in the stable ABI since 3.2, declared here: parsing Python.h
// would take most of a binding's compile time, and it is missing without python3-dev. A free-threaded Python has
// another object layout and needs its own header.
// Source: docs.python.org/3/c-api/stable.html; layouts from the limited API's object.h, methodobject.h, moduleobject.h.
#pragma once

#ifdef TILE2CU_PYTHON_H
#include <Python.h>
#else
#include <cstddef>

extern "C" {
struct PyTypeObject;
struct PyThreadState;
typedef std::ptrdiff_t Py_ssize_t;  // ssize_t
struct PyObject {
  Py_ssize_t ob_refcnt;
  PyTypeObject* ob_type;
};
typedef PyObject* (*PyCFunction)(PyObject*, PyObject*);
struct PyMethodDef {
  const char* ml_name;
  PyCFunction ml_meth;
  int ml_flags;
  const char* ml_doc;
};
struct PyModuleDef_Base {
  PyObject ob_base;
  PyObject* (*m_init)(void);
  Py_ssize_t m_index;
  PyObject* m_copy;
};
struct PyModuleDef {
  PyModuleDef_Base m_base;
  const char* m_name;
  const char* m_doc;
  Py_ssize_t m_size;
  PyMethodDef* m_methods;
  void* m_slots;
  int (*m_traverse)(PyObject*, int (*)(PyObject*, void*), void*);
  int (*m_clear)(PyObject*);
  void (*m_free)(void*);
};
int PyArg_ParseTuple(PyObject*, const char*, ...);
PyObject* PyLong_FromLong(long);
PyObject* PyUnicode_FromString(const char*);
PyObject* PyModule_Create2(PyModuleDef*, int);
int PyModule_AddObject(PyObject*, const char*, PyObject*);
PyObject* PyCapsule_New(void*, const char*, void (*)(PyObject*));
PyThreadState* PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState*);
}
#define PyModuleDef_HEAD_INIT {{1, nullptr}, nullptr, 0, nullptr}
#define PyMODINIT_FUNC extern "C" __attribute__((visibility("default"))) PyObject*
#define METH_VARARGS 0x0001
#define PYTHON_ABI_VERSION 3
#define PyModule_Create(module) PyModule_Create2(module, PYTHON_ABI_VERSION)
#endif
