# Checks that the arrays of a kernel fit together: once for each call, before any thread starts. Without them an array
# that is too short would be read or written beyond its end. What ids and row pointers hold is not checked.


cdef inline int agree(str what, Py_ssize_t found, Py_ssize_t needed) except -1:
    """A ValueError unless an argument has as many rows or columns as the others imply."""
    if found != needed:
        raise ValueError(f"{what}: {found} where {needed} are needed")
    return 0
