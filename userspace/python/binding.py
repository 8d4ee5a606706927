# SPDX-License-Identifier: MIT
"""The binding of sluice to libsluice: cffi takes the declarations from sluice.h itself,
and the C compiler checks them against that header.

binding.py HEADER OUT.c writes the C source of the extension module sluice._binding.
"""

import pathlib
import re
import sys

import cffi

# Besides the C API: DLPack's structures (https://dmlc.github.io/dlpack), the release of
# what a consumer took, numbers of threads, what the collector does not see, and the
# functions of a transport.
DLPACK = """
struct dl_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct dl_managed {
    struct dl_tensor tensor;
    void *owner;
    void (*deleter)(void *self);
};
struct dl_versioned {
    uint32_t major, minor;
    void *owner;
    void (*deleter)(void *self);
    uint64_t flags;
    struct dl_tensor tensor;
};
"""

DECLARED = DLPACK + """
void sluice_py_end_tensor(void *self);
void sluice_py_end_capsule(void *capsule);
uint64_t sluice_py_thread(void);
void *sluice_py_hide(void *data, intptr_t length, void *it);
extern "Python" void sluice_py_let_go(void *tensor);
extern "Python" int sluice_py_all_gather(void *, const struct sluice_slice *);
extern "Python" int sluice_py_all_to_all(void *, const struct sluice_slice *,
                                         const struct sluice_slice *);
extern "Python" int sluice_py_broadcast(void *, uint32_t, const struct sluice_slice *);
extern "Python" int sluice_py_gather(void *, uint32_t, const struct sluice_slice *);
extern "Python" int sluice_py_scatter(void *, uint32_t, const struct sluice_slice *);
"""

SOURCE = """
#include <sluice.h>
""" + DLPACK + """
static void sluice_py_let_go(void *tensor);

/* A consumer may outlive the interpreter, may not have its lock, and may be unwinding
 * from an exception. */
static void sluice_py_end_tensor(void *self)
{
    PyObject *type, *value, *traceback;
    PyGILState_STATE state;

    if (!Py_IsInitialized())
        return;
    state = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &traceback);
    sluice_py_let_go(self);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
}

/* A capsule that nobody took: who takes it changes its name. */
static void sluice_py_end_capsule(void *capsule)
{
    PyObject *it = (PyObject *)capsule;

    if (PyCapsule_IsValid(it, "dltensor"))
        sluice_py_end_tensor(PyCapsule_GetPointer(it, "dltensor"));
    else if (PyCapsule_IsValid(it, "dltensor_versioned"))
        sluice_py_end_tensor(PyCapsule_GetPointer(it, "dltensor_versioned"));
}

/* The number of this thread, which no other one ever has. Destructors ask for it even when
 * the thread ends, and has lost what Python keeps for it. */
static uint64_t sluice_py_thread(void)
{
    static uint64_t last;
    static _Thread_local uint64_t number;

    if (!number)
        number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return number;
}

/* An object that the collector does not see, and bytes that it keeps, if any. In a cycle
 * that the collector ends, it would end handles of cffi before what uses them. */
struct hidden {
    PyObject_HEAD
    void *data;
    Py_ssize_t length;
    PyObject *it;
};

static int get_bytes(PyObject *self, Py_buffer *to, int flags)
{
    struct hidden *h = (struct hidden *)self;

    return PyBuffer_FillInfo(to, self, h->data, h->length, 0, flags);
}

static void free_hidden(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc end = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(((struct hidden *)self)->it);
    end(self);
    Py_DECREF(type);
}

static PyMemberDef hidden_members[] = {
    {"it", Py_T_OBJECT_EX, offsetof(struct hidden, it), Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot hidden_slots[] = {
    {Py_bf_getbuffer, (void *)get_bytes},
    {Py_tp_dealloc, (void *)free_hidden},
    {Py_tp_members, hidden_members},
    {0, NULL},
};
static PyType_Spec hidden_spec = {
    "sluice._binding.hidden", sizeof(struct hidden), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, hidden_slots,
};

/* A new reference, or NULL and an exception. For ctypes.PYFUNCTYPE. */
static void *sluice_py_hide(void *data, intptr_t length, void *it)
{
    static PyObject *type;
    struct hidden *h;
    allocfunc allocate;

    if (!type && !(type = PyType_FromSpec(&hidden_spec)))
        return NULL;
    allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    h = (struct hidden *)allocate((PyTypeObject *)type, 0);
    if (!h)
        return NULL;
    h->data = data;
    h->length = length;
    h->it = (PyObject *)it;
    Py_INCREF(h->it);
    return h;
}
"""


def declarations(header: str) -> str:
    """The declarations of sluice.h, without what cffi cannot read."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    numbers = re.findall(r"^#define (SLUICE_\w+)[ \t]+\S", text, re.MULTILINE)
    text = re.sub(r'#ifdef __cplusplus.*?#endif', "", text, flags=re.DOTALL)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bSLUICE_API\b", "", text)
    constants = [f"#define {name} ..." for name in numbers if name != "SLUICE_API"]
    return "\n".join(constants) + "\n" + text


def builder(header: str, **build: object) -> cffi.FFI:
    """@build: how the extension is compiled and linked."""
    ffi = cffi.FFI()
    ffi.cdef(declarations(header))
    ffi.cdef(DECLARED)
    ffi.set_source("sluice._binding", SOURCE, **build)
    return ffi


if __name__ == "__main__":
    builder(pathlib.Path(sys.argv[1]).read_text()).emit_c_code(sys.argv[2])
