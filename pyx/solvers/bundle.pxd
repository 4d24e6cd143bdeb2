# The dual problem of a bundle method (Teo et al. 2010): weights of the cutting planes below a convex loss, on the
# simplex, that is not negative and with sum 1.
#
# The problem is min over w of lam/2 |w|^2 + max_t (a_t . w + b_t), with a plane a_t . w + b_t for each t. Its dual is
# max over beta of b . beta - |A' beta|^2 / (2 lam), with the a_t as the rows of A, and w = -A' beta / lam.
#
# An active-set method: Newton steps over the planes that have weight, the support, which the lowest plane enters, and
# which a plane leaves when its weight falls to zero. Steps keep the sum of the weights, so that one plane of the
# support, its base, gives what the others take, and K with K_st = (a_s - a_base) . (a_t - a_base) / lam is the matrix
# of second derivatives. It has a factor as long as no plane of the support is a mean of others, with weights of any
# sign.

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t

from rankbench.kernels.shared.arena cimport Arena, floats, ints
from rankbench.kernels.shared.lanes cimport LANES

cdef extern from *:
    """
    typedef struct {
        Py_ssize_t n;
        const double *products;
        Py_ssize_t stride;
        const double *offsets;
        double scale;
    } rankbench_planes;

    /* out_s = the sum of scale x_i products_is over `count` planes i; if `sloped`, it begins with minus the offset. */
    static inline __attribute__((always_inline)) void rankbench_sum_products(
        const rankbench_planes *planes, const int32_t *at, const double *x, Py_ssize_t count, const int sloped,
        double *out
    ) {
        const double *products = planes->products, *offsets = planes->offsets, scale = planes->scale;
        const Py_ssize_t n = planes->n, stride = planes->stride;
        Py_ssize_t s = 0;
        for (; s + RANKBENCH_WIDTH <= n; s += RANKBENCH_WIDTH) {
            rankbench_lanes sums = {0}, row;
            if (sloped) {
                RANKBENCH_LOAD(row, offsets + s);
                sums = -row;
            }
            for (Py_ssize_t i = 0; i < count; i++) {
                RANKBENCH_LOAD(row, products + at[i] * stride + s);
                sums += scale * x[i] * row;
            }
            RANKBENCH_STORE(out + s, sums);
        }
        for (; s < n; s++) {
            double sum = sloped ? -offsets[s] : 0.0;
            for (Py_ssize_t i = 0; i < count; i++)
                sum += scale * x[i] * products[at[i] * stride + s];
            out[s] = sum;
        }
    }
    """
    ctypedef struct Planes "rankbench_planes":
        Py_ssize_t n
        const double *products  # products[s * stride + t] = a_s . a_t
        Py_ssize_t stride
        const double *offsets  # b
        double scale  # 1 / lam

    void _sum_products "rankbench_sum_products" (
        const Planes *planes, const int32_t *at, const double *x, Py_ssize_t count, bint sloped, double *out
    ) noexcept nogil

cdef struct Support:
    Py_ssize_t n
    int32_t *planes  # the base first
    int32_t *places  # by plane: where it stands among them, or -1
    double *factor  # K = L L', row after row from the second plane on, each with 1 / L_ss at its end
    double *step
    double *slopes  # of all planes: products beta / lam - offsets
    double *changes  # of the slopes, by a step


cdef inline Support lay_out_support(Arena *arena, Py_ssize_t planes) noexcept nogil:
    """Room for the weights of up to so many planes."""
    return Support(
        0, ints(arena, planes + 1), ints(arena, planes), floats(arena, planes * (planes + 1) // 2),
        floats(arena, planes + 1), floats(arena, planes), floats(arena, planes),
    )


cdef inline double weigh_planes(const Planes *planes, double tolerance, double *beta, Support *own) noexcept nogil:
    """Improve the weights in `beta` until the dual's derivative is within `tolerance`; the dual's value.

    `own.n` is 0 the first time, and left as it is when planes have been added.
    Invariant: beta stays on the simplex, so that the value returned is a lower bound of the minimum.
    """
    cdef Py_ssize_t n = planes.n, s, _turn
    cdef int32_t lowest, highest
    cdef bint blocked
    cdef double value = 0.0, low, high
    _start(planes, own, beta)
    for _turn in range(n + 20):
        lowest, highest = 0, own.planes[0]
        low, high = own.slopes[lowest], own.slopes[highest]
        for s in range(n):
            if own.slopes[s] < low:
                lowest, low = <int32_t> s, own.slopes[s]
            if beta[s] > 0.0 and own.slopes[s] > high:
                highest, high = <int32_t> s, own.slopes[s]
        if not high - low > tolerance:
            break
        _enter(planes, own, lowest if own.places[lowest] < 0 else highest, beta)
        blocked = True
        while blocked:
            if own.n == 0:
                _rebuild(planes, own, beta)
            _find_step(own)
            blocked = _move(planes, own, own.n, beta)
    for s in range(n):
        value += beta[s] * (planes.offsets[s] - 0.5 * (own.slopes[s] + planes.offsets[s]))
    return value


cdef inline void _start(const Planes *planes, Support *own, double *beta) noexcept nogil:
    """Fill in the slopes, and let a plane that has enough weight be the base, since rounding in K goes with it."""
    cdef Py_ssize_t s, weighing = 0
    cdef double most = 0.0
    for s in range(planes.n):
        if beta[s] > 0.0:
            own.places[weighing], own.step[weighing] = <int32_t> s, beta[s]
            weighing += 1
            most = max(most, beta[s])
    _sum_products(planes, own.places, own.step, weighing, True, own.slopes)
    for s in range(planes.n):
        own.places[s] = -1
    for s in range(own.n):
        own.places[own.planes[s]] = <int32_t> s
    if own.n == 0 or 2.0 * beta[own.planes[0]] < most:
        _rebuild(planes, own, beta)


cdef inline void _rebuild(const Planes *planes, Support *own, double *beta) noexcept nogil:
    """Make the support anew of the planes that have weight, with the heaviest as its base."""
    cdef Py_ssize_t s
    own.n = 0
    while own.n == 0:
        own.n, own.planes[0] = 1, 0
        for s in range(planes.n):
            own.places[s] = -1
            if beta[s] > beta[own.planes[0]]:
                own.planes[0] = <int32_t> s
        own.places[own.planes[0]] = 0
        for s in range(planes.n):
            if beta[s] > 0.0 and own.n > 0:
                _enter(planes, own, <int32_t> s, beta)


cdef inline void _enter(const Planes *planes, Support *own, int32_t plane, double *beta) noexcept nogil:
    """Let a plane into the support; as long as it is a mean of others there, weight moves between them and it."""
    cdef Py_ssize_t i
    cdef double along
    while own.n > 0 and own.places[plane] < 0 and not _extend(planes, own, plane):
        along = own.slopes[plane]
        for i in range(own.n):
            along += own.step[i] * own.slopes[own.planes[i]]
        own.planes[own.n], own.step[own.n] = plane, 1.0
        if along > 0.0:
            for i in range(own.n + 1):
                own.step[i] = -own.step[i]
        if not _move(planes, own, own.n + 1, beta) or beta[plane] == 0.0:
            return


cdef inline bint _extend(const Planes *planes, Support *own, int32_t plane) noexcept nogil:
    """Add a row to the factor; False for a plane that is a mean of others, minus whose weights are in `step` then."""
    cdef Py_ssize_t i, n = own.n
    cdef int32_t base = own.planes[0]
    cdef double *row = own.factor + n * (n - 1) // 2
    cdef const double *products = planes.products + plane * planes.stride
    cdef const double *of_base = planes.products + base * planes.stride
    cdef double constant = of_base[base] - products[base], whole = products[plane] - products[base] + constant
    cdef double left = planes.scale * whole
    for i in range(1, n):
        row[i - 1] = planes.scale * (products[own.planes[i]] - of_base[own.planes[i]] + constant)
    _solve_lower(own, row - 1)
    for i in range(n - 1):
        left -= row[i] * row[i]
    if left > planes.scale * (1e-13 * whole + 1e-15 * (products[plane] + of_base[base])):  # less may be rounding
        row[n - 1] = 1.0 / sqrt(left)
        own.planes[n], own.places[plane] = plane, <int32_t> n
        own.n += 1
        return True
    for i in range(1, n):
        own.step[i] = -row[i - 1]
    _solve_upper(own, own.step)
    own.step[0] = -1.0
    for i in range(1, n):
        own.step[0] -= own.step[i]
    return False


cdef inline void _leave(const Planes *planes, Support *own, Py_ssize_t place) noexcept nogil:
    """Take a plane out of the support, and make the factor's rows behind it again; all of them if it is the base."""
    cdef Py_ssize_t n = own.n, i
    cdef int32_t plane
    for i in range(place, n):
        own.places[own.planes[i]] = -1
    own.n = place
    if place == 0:
        return
    for i in range(place + 1, n):
        plane = own.planes[i]
        _extend(planes, own, plane)


cdef inline void _find_step(Support *own) noexcept nogil:
    """Newton's step of the weights: K step = minus the slopes, beside the base's."""
    cdef Py_ssize_t i
    for i in range(1, own.n):
        own.step[i] = own.slopes[own.planes[0]] - own.slopes[own.planes[i]]
    _solve_lower(own, own.step)
    _solve_upper(own, own.step)
    own.step[0] = 0.0
    for i in range(1, own.n):
        own.step[0] -= own.step[i]


cdef inline bint _move(const Planes *planes, Support *own, Py_ssize_t n, double *beta) noexcept nogil:
    """Move the weights of the first n planes along `step`, to the dual's maximum or until one has none left and leaves.

    Returns whether one left.
    """
    cdef double along = 0.0, curvature = 0.0, length
    cdef Py_ssize_t i, s, first = -1
    cdef int32_t plane
    _sum_products(planes, own.planes, own.step, n, False, own.changes)
    for i in range(n):
        along += own.step[i] * own.slopes[own.planes[i]]
        curvature += own.step[i] * own.changes[own.planes[i]]
    if not along < 0.0:
        return False
    length = -along / curvature if curvature > 0.0 else INFINITY
    for i in range(n):
        if own.step[i] < 0.0 and beta[own.planes[i]] < -length * own.step[i]:
            length = beta[own.planes[i]] / -own.step[i]
            first = i
    for i in range(n):
        plane = own.planes[i]
        beta[plane] = 0.0 if i == first else max(0.0, beta[plane] + length * own.step[i])
    for s in range(planes.n):
        own.slopes[s] += length * own.changes[s]
    if 0 <= first < own.n:
        _leave(planes, own, first)
    return first >= 0


cdef inline void _solve_lower(const Support *own, double *x) noexcept nogil:
    """Solve L x = x in place, for the planes behind the base."""
    cdef const double *row = own.factor
    cdef Py_ssize_t i, j
    for i in range(1, own.n):
        for j in range(1, i):
            x[i] -= row[j - 1] * x[j]
        x[i] *= row[i - 1]
        row += i


cdef inline void _solve_upper(const Support *own, double *x) noexcept nogil:
    """Solve L' x = x in place, for the planes behind the base."""
    cdef const double *row
    cdef Py_ssize_t i, j
    for i in range(own.n - 1, 0, -1):
        row = own.factor + i * (i - 1) // 2
        x[i] *= row[i - 1]
        for j in range(1, i):
            x[j] -= row[j - 1] * x[i]
