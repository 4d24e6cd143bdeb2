"""Dual coordinate descent for the two halves of AltSVM: users one by one, items round by round.

Both halves are support vector machines with a dual variable for every comparison. With x the example (v_j -
v_k for user i; u_i in block j and -u_i in block k for the items), w = sum of a x, m = w . x and q = |x|^2,
an update takes

    a <- clip(a + (1 - m - ridge a) / (q + ridge), 0, upper)

and moves w along x. Squared hinge: ridge = 1 / (2C), no upper end. Hinge: no ridge, upper = C.

For the items the comparisons lie in records, task by task, and within a task user by user. Tasks of one
round share no item unless the schedule races on purpose; within a task the order depends on its number alone.
So the bits are the same whoever works on it. A task is visited window by window, and a window's comparisons
in random order: its users' vectors stay in L1, and yet no user's comparisons come one after the other, which
would fit V to each user in turn and take more passes than an order drawn at random.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport ldexp, log2, rint
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from numpy.random cimport bitgen_t

from rankbench.kernels.shared.lanes cimport dot, dot_difference, fetch
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.draws cimport bit_generator
from rankbench.kernels.shared.draws cimport Stream, below, shuffled, stream_of

cdef enum:
    _AHEAD = 3  # comparisons whose rows of V are on their way while one is worked on
    _WINDOW = 4096  # doubles in users' vectors, one for each comparison of a window, that L1 has room for

cdef double _HUGE = 1e300  # what an example of length zero moves its dual by: to its upper end

cdef struct Box:
    double ridge
    double upper

cdef packed struct Record:
    int32_t user
    int32_t better
    int32_t worse
    float dual

RECORD = np.dtype([("user", np.int32), ("better", np.int32), ("worse", np.int32), ("dual", np.float32)])

cdef extern from *:
    """
    static inline void rankbench_atomic_add(double *target, double value) {
    #ifdef _OPENMP
    #pragma omp atomic
    #endif
        *target += value;
    }
    """
    void _atomic_add "rankbench_atomic_add" (double *target, double value) noexcept nogil


def records_of(
    const int64_t[::1] indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    const int32_t[::1] user_order,
    const int32_t[::1] groups,
    const int32_t[:, ::1] tasks,
    int n_tasks,
):
    """The comparisons task by task, users within a task in the order given, and where each task starts."""
    starts = np.zeros(n_tasks + 1, np.int64)
    records = np.zeros(len(better), RECORD)
    cdef int64_t[::1] counts = starts
    cdef Record[::1] out = records
    cdef Py_ssize_t place, row, user, task
    with nogil:
        for row in range(better.shape[0]):
            counts[tasks[groups[better[row]], groups[worse[row]]] + 1] += 1
        for task in range(n_tasks):
            counts[task + 1] += counts[task]
        for place in range(user_order.shape[0]):
            user = user_order[place]
            for row in range(indptr[user], indptr[user + 1]):
                task = tasks[groups[better[row]], groups[worse[row]]]
                out[counts[task]].user = <int32_t> user
                out[counts[task]].better = better[row]
                out[counts[task]].worse = worse[row]
                counts[task] += 1
    return records, np.concatenate([[0], starts[:n_tasks]])  # each count has grown to the next task's start


def items_pass(
    double ridge,
    double upper,
    Record[::1] records,
    const int64_t[::1] starts,
    const int64_t[:, ::1] rounds,
    const double[:, ::1] users,
    double[:, ::1] items,
    uint64_t seed,
    bint atomic,
    int threads,
):
    """Visit every comparison once, round by round.

    Task t holds the records from starts[t] to starts[t + 1]; a row of `rounds` is a first task and an end.
    """
    threads = team(threads)
    cdef Box box = Box(ridge, upper)
    cdef double[::1] inverses = np.empty(users.shape[0])
    cdef Py_ssize_t turn, task, first, end, user, rank = items.shape[1]
    for user in prange(users.shape[0], nogil=True, schedule="static", num_threads=threads):
        inverses[user] = _inverse(2.0 * dot(&users[user, 0], &users[user, 0], rank) + ridge)
    for turn in range(rounds.shape[0]):
        first, end = rounds[turn, 0], rounds[turn, 1]
        for task in prange(first, end, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
            _visit_task(
                &box, &records[0] + starts[task], starts[task + 1] - starts[task], &users[0, 0], &inverses[0],
                &items[0, 0], rank, stream_of(seed, task), atomic,
            )


def items_from_duals(
    const Record[::1] records,
    const int64_t[::1] starts,
    const int64_t[:, ::1] rounds,
    const double[:, ::1] users,
    double[:, ::1] items,
    int threads,
):
    """Add to V what its duals say it is: sum of a u_i in row j and of -a u_i in row k.

    Returns the sum of the duals and of their squares, task by task.
    """
    threads = team(threads)
    cdef Py_ssize_t turn, task, first, end
    cdef double[:, ::1] sums = np.zeros((starts.shape[0] - 1, 2))
    for turn in range(rounds.shape[0]):
        first, end = rounds[turn, 0], rounds[turn, 1]
        for task in prange(first, end, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
            _add_task(
                &records[0] + starts[task], starts[task + 1] - starts[task], &users[0, 0], &items[0, 0],
                items.shape[1], &sums[task, 0],
            )
    return np.asarray(sums)


def scale_exponent(double linear, double square, double size, double ridge, double upper):
    """The power of two by which duals are best scaled all together; `linear` and `square` are their sums."""
    return _scale_exponent(linear, size + ridge * square, upper)


def users_pass(
    double ridge,
    double upper,
    const int64_t[::1] indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    float[::1] duals,
    double[:, ::1] users,
    const double[:, ::1] items,
    int passes,
    uint64_t seed,
    int threads,
):
    """Rebuild each user's vector from its duals and visit its comparisons `passes` times, each in a new order."""
    threads = team(threads)
    cdef Box box = Box(ridge, upper)
    cdef Py_ssize_t user, first, longest = np.diff(indptr).max(initial=0)
    cdef Py_ssize_t n_items = items.shape[0]
    cdef int32_t *orders = <int32_t *> malloc((threads * longest + 1) * sizeof(int32_t))
    cdef double *weights = <double *> calloc(threads * n_items + 1, sizeof(double))
    if orders == NULL or weights == NULL:
        free(orders)
        free(weights)
        raise MemoryError
    for user in prange(
        users.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads
    ):
        first = indptr[user]
        if indptr[user + 1] > first:
            _fit_user(
                &box, &better[0] + first, &worse[0] + first, &duals[0] + first, indptr[user + 1] - first,
                orders + thread_id() * longest, weights + thread_id() * n_items, &users[user, 0], &items[0, 0],
                users.shape[1], passes, stream_of(seed, user),
            )
    free(orders)
    free(weights)


def drawn_items_pass(
    double ridge, double upper, Record[::1] records, const double[:, ::1] users, double[:, ::1] items, rng
):
    """As many updates of V as there are comparisons, each of one drawn evenly from all."""
    cdef Box box = Box(ridge, upper)
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Py_ssize_t _time, rank = items.shape[1], n = records.shape[0]
    cdef const double *u
    cdef Record *record
    with rng.bit_generator.lock, nogil:
        for _time in range(n):
            record = &records[below(bits, <unsigned int> n)]
            u = &users[record.user, 0]
            _update_items(&box, record, u, &items[0, 0], rank, _inverse(2.0 * dot(u, u, rank) + ridge), False)


def drawn_users_pass(
    double ridge, double upper, const Record[::1] records, float[::1] duals, double[:, ::1] users,
    const double[:, ::1] items, rng
):
    """As many updates of U as there are comparisons, each of one drawn evenly from all."""
    cdef Box box = Box(ridge, upper)
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Py_ssize_t _time, row, rank = items.shape[1], n = records.shape[0]
    with rng.bit_generator.lock, nogil:
        for _time in range(n):
            row = below(bits, <unsigned int> n)
            _update_user(
                &box, &duals[row], &users[records[row].user, 0], &items[records[row].better, 0],
                &items[records[row].worse, 0], rank,
            )


def sums(const float[:] duals):
    """The sum of the duals and of their squares."""
    cdef double linear = 0.0, square = 0.0
    cdef Py_ssize_t row
    with nogil:
        for row in range(duals.shape[0]):
            linear += duals[row]
            square += <double> duals[row] * duals[row]
    return linear, square


cdef void _visit_task(
    const Box *box, Record *records, Py_ssize_t n, const double *users, const double *inverses, double *items,
    Py_ssize_t rank, Stream stream, bint atomic,
) noexcept nogil:
    """Window by window from a random one on, in random strides that meet each of them once."""
    cdef Py_ssize_t window = max(<Py_ssize_t> 32, _WINDOW // rank), windows = (n + window - 1) // window
    cdef Py_ssize_t place, stride = 1, _turn
    if windows == 0:
        return
    place = below(&stream, <unsigned int> windows)
    if windows > 2:
        stride = 1 + below(&stream, <unsigned int> (windows - 1))
        while _common_divisor(stride, windows) != 1:
            stride = 1 + below(&stream, <unsigned int> (windows - 1))
    for _turn in range(windows):
        _visit_window(
            box, records + place * window, min(window, n - place * window), users, inverses, items, rank, &stream,
            atomic,
        )
        place = (place + stride) % windows


cdef inline void _visit_window(
    const Box *box, Record *records, Py_ssize_t n, const double *users, const double *inverses, double *items,
    Py_ssize_t rank, Stream *stream, bint atomic,
) noexcept nogil:
    cdef Py_ssize_t place, drawn, user
    cdef Record swap
    for place in range(n - 1, 0, -1):
        drawn = below(stream, <unsigned int> (place + 1))
        swap = records[place]
        records[place] = records[drawn]
        records[drawn] = swap
    for place in range(n):
        if place + _AHEAD < n:
            fetch(items + records[place + _AHEAD].better * rank, rank)
            fetch(items + records[place + _AHEAD].worse * rank, rank)
        user = records[place].user
        _update_items(box, records + place, users + user * rank, items, rank, inverses[user], atomic)


cdef inline Py_ssize_t _common_divisor(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Py_ssize_t rest
    while b:
        rest = a % b
        a = b
        b = rest
    return a


cdef inline void _update_items(
    const Box *box, Record *record, const double *u, double *items, Py_ssize_t rank, double inverse, bint atomic
) noexcept nogil:
    cdef double *v = items + record.better * rank
    cdef double *w = items + record.worse * rank
    cdef double before = record.dual
    record.dual = _best(box, before, dot_difference(u, v, w, rank), inverse)
    if atomic:
        _add_atomically(v, w, u, record.dual - before, rank)
    else:
        _add_both(v, w, u, record.dual - before, rank)


cdef void _add_task(
    const Record *records, Py_ssize_t n, const double *users, double *items, Py_ssize_t rank, double *sums
) noexcept nogil:
    cdef Py_ssize_t place
    cdef const double *u
    cdef double *v
    cdef double *w
    cdef double linear = 0.0, square = 0.0
    for place in range(n):
        if records[place].dual != 0:
            linear += records[place].dual
            square += <double> records[place].dual * records[place].dual
            u = users + records[place].user * rank
            v = items + records[place].better * rank
            w = items + records[place].worse * rank
            _add_both(v, w, u, records[place].dual, rank)
    sums[0], sums[1] = linear, square


cdef void _fit_user(
    const Box *box, const int32_t *better, const int32_t *worse, float *duals, Py_ssize_t n, int32_t *order,
    double *weights, double *u, const double *items, Py_ssize_t rank, int passes, Stream stream,
) noexcept nogil:
    cdef Py_ssize_t place, row, ahead
    cdef int _turn
    _rebuild_user(box, better, worse, duals, n, weights, u, items, rank)
    for _turn in range(passes):
        shuffled(&stream, order, n)
        for place in range(n):
            if place + _AHEAD < n:
                ahead = order[place + _AHEAD]
                fetch(<double *> items + better[ahead] * rank, rank)
                fetch(<double *> items + worse[ahead] * rank, rank)
            row = order[place]
            _update_user(box, duals + row, u, items + better[row] * rank, items + worse[row] * rank, rank)


cdef void _rebuild_user(
    const Box *box, const int32_t *better, const int32_t *worse, float *duals, Py_ssize_t n, double *weights,
    double *u, const double *items, Py_ssize_t rank,
) noexcept nogil:
    """u = sum of a (v_j - v_k), with all a scaled by the power of two that suits the new V.

    The duals are first added up by item, for a user has many more comparisons than items; `weights`, one
    for every item, are zero before and after.
    """
    cdef Py_ssize_t row, k
    cdef double linear = 0.0, square = 0.0, factor
    cdef int exponent
    for k in range(rank):
        u[k] = 0.0
    for row in range(n):
        linear += duals[row]
        square += <double> duals[row] * duals[row]
        weights[better[row]] += duals[row]
        weights[worse[row]] -= duals[row]
    for row in range(n):
        _add_weighted(u, items + better[row] * rank, weights + better[row], rank)
        _add_weighted(u, items + worse[row] * rank, weights + worse[row], rank)
    exponent = _scale_exponent(linear, dot(u, u, rank) + box.ridge * square, box.upper)
    if exponent != 0:
        factor = ldexp(1.0, exponent)
        for row in range(n):
            duals[row] = <float> (duals[row] * factor)
        for k in range(rank):
            u[k] *= factor


cdef inline int _scale_exponent(double linear, double curvature, double upper) noexcept nogil:
    """log2, rounded, of the t that minimises the dual t^2/2 (|w|^2 + ridge sum a^2) - t sum a.

    Duals that were left by another V (or U) may lie far beyond what suits the new one, and one pass would
    not bring them back: the two halves would chase each other to infinity. A power of two is exact, and at
    most sqrt 2 from the best t, which always leaves a better dual than a start from zero.
    """
    cdef double best
    if linear <= 0.0 or curvature <= 0.0:
        return 0
    best = rint(log2(linear / curvature))
    if upper < _HUGE:
        best = min(best, 0.0)
    return <int> max(-100.0, min(best, 100.0))


cdef inline void _update_user(
    const Box *box, float *dual, double *u, const double *v, const double *w, Py_ssize_t rank
) noexcept nogil:
    cdef double before = dual[0], margin, square
    margin = _margin_and_square(u, v, w, rank, &square)
    dual[0] = _best(box, before, margin, _inverse(square + box.ridge))
    _add_difference(u, v, w, dual[0] - before, rank)


cdef inline float _best(const Box *box, double dual, double margin, double inverse) noexcept nogil:
    """The dual that is best while all others stay, as it will be stored: w must move by just that much."""
    return <float> min(max(dual + (1.0 - margin - box.ridge * dual) * inverse, 0.0), box.upper)


cdef inline double _inverse(double curvature) noexcept nogil:
    return 1.0 / curvature if curvature > 0.0 else _HUGE


cdef inline double _margin_and_square(
    const double *u, const double *v, const double *w, Py_ssize_t n, double *square
) noexcept nogil:
    """u . (v - w) and |v - w|^2, for n a multiple of 4."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef double p, q, r, s
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        p = v[k] - w[k]
        q = v[k + 1] - w[k + 1]
        r = v[k + 2] - w[k + 2]
        s = v[k + 3] - w[k + 3]
        a += u[k] * p
        b += u[k + 1] * q
        c += u[k + 2] * r
        d += u[k + 3] * s
        e += p * p
        f += q * q
        g += r * r
        h += s * s
    square[0] = (e + f) + (g + h)
    return (a + b) + (c + d)


cdef inline void _add_difference(
    double *u, const double *v, const double *w, double step, Py_ssize_t n
) noexcept nogil:
    """u += step (v - w)"""
    cdef double a, b, c, d
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        a = u[k] + step * (v[k] - w[k])
        b = u[k + 1] + step * (v[k + 1] - w[k + 1])
        c = u[k + 2] + step * (v[k + 2] - w[k + 2])
        d = u[k + 3] + step * (v[k + 3] - w[k + 3])
        u[k], u[k + 1], u[k + 2], u[k + 3] = a, b, c, d


cdef inline void _add_weighted(double *u, const double *v, double *weight, Py_ssize_t n) noexcept nogil:
    """u += weight v, and the weight is used up."""
    cdef double a, b, c, d, w = weight[0]
    cdef Py_ssize_t k
    if w == 0.0:
        return
    weight[0] = 0.0
    for k in range(0, n, 4):
        a = u[k] + w * v[k]
        b = u[k + 1] + w * v[k + 1]
        c = u[k + 2] + w * v[k + 2]
        d = u[k + 3] + w * v[k + 3]
        u[k], u[k + 1], u[k + 2], u[k + 3] = a, b, c, d


cdef inline void _add_both(double *v, double *w, const double *u, double step, Py_ssize_t n) noexcept nogil:
    """v += step u and w -= step u"""
    cdef double a, b, c, d
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        a = step * u[k]
        b = step * u[k + 1]
        c = step * u[k + 2]
        d = step * u[k + 3]
        v[k], v[k + 1], v[k + 2], v[k + 3] = v[k] + a, v[k + 1] + b, v[k + 2] + c, v[k + 3] + d
        w[k], w[k + 1], w[k + 2], w[k + 3] = w[k] - a, w[k + 1] - b, w[k + 2] - c, w[k + 3] - d


cdef inline void _add_atomically(
    double *v, double *w, const double *u, double step, Py_ssize_t n
) noexcept nogil:
    """The same, such that no other thread's addition is lost."""
    cdef Py_ssize_t k
    if step == 0.0:
        return
    for k in range(n):
        _atomic_add(v + k, step * u[k])
        _atomic_add(w + k, -step * u[k])
