/* C allows numbers only at multiples of their size, and compilers rely on it. All memory views of the kernels get their
   arrays by this function, which refuses others: the module of what all kernels share of Cython's own code, which
   makes the views, is compiled with this file before it. Packed records, which are longer than 8 bytes, may lie
   anywhere. */
#define PY_SSIZE_T_CLEAN
#include "Python.h"

static int rankbench_get_aligned(PyObject *array, Py_buffer *view, int flags) {
    if (PyObject_GetBuffer(array, view, flags) < 0)
        return -1;
    if (view->len > 0 && view->itemsize <= 8 && (size_t) view->buf % (size_t) view->itemsize) {
        PyErr_Format(
            PyExc_ValueError, "an array has numbers of %zd bytes at no multiple of their size: copy it first",
            view->itemsize
        );
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}
#define PyObject_GetBuffer rankbench_get_aligned
