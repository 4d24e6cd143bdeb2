"""Dual coordinate descent for the two halves of AltSVM: users one by one, items round by round.

Both halves are support vector machines with a dual variable for every comparison. With x the example (v_j - v_k for
user i; u_i in block j and -u_i in block k for the items), w = sum of a x, m = w . x and q = |x|^2, an update takes

    a <- clip(a + (1 - m - ridge a) / (q + ridge), 0, upper)

and moves w along x. Squared hinge: ridge = 1 / (2C), no upper bound. Hinge: no ridge, upper = C.

For the items the comparisons are stored as records, task by task, and within a task user by user. Tasks of one round
share no item, unless the schedule lets them race; within a task the order depends on the task's number alone. So the
bits are the same for any number of threads. A task is visited window by window, and a window's comparisons in random
order: the users' vectors of a window stay in the first-level cache, but the comparisons of a user are not visited in
succession, which would fit V to each user in turn and take more passes than a random order.

An update is a chain: the margin, the dual, the step. Two updates that share no vector to write are therefore made at
once, of two users or of two records without a common item, so that the processor works on one while the other waits.
No bit depends on it.
"""

# Roof of items_pass, an update: 32 bytes; 6 * rank + 10 flops; rank / 4 lines.
# Roof of users_pass, an update: 16 bytes; 9 * rank + 16 flops; rank / 4 lines.
# Roof of drawn_items_pass, an update: 40 * rank bytes; 8 * rank + 12 flops; 1 lines.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport ldexp, log2, rint
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from numpy.random cimport bitgen_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.draws cimport Stream, below, bit_generator, draw_below, shuffled, stream_of
from rankbench.kernels.shared.lanes cimport (
    LANES, Difference, dot, fetch, fetch_both, long_dot_difference, of_long_difference, read_ahead
)
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport ComparisonRows, count_rows, longest_row

from rankbench.arrays.mapped import zeros

cdef enum:
    _AHEAD = 2  # how many comparisons ahead the rows of V are prefetched
    _DRAWN = 32  # records that are drawn, and asked for, before the first of them is used
    _DRAWN_AHEAD = 4  # how many of those ahead their vectors are prefetched
    _WINDOW = 4096  # doubles in the users' vectors of a window's comparisons; they fit in the first-level cache

cdef double _HUGE = 1e300  # the step of the dual of an example of length zero, which takes it to its upper bound

cdef packed struct Record:
    int32_t user
    int32_t better
    int32_t worse
    float dual

RECORD: np.dtype[np.void] = np.dtype(
    [("user", np.int32), ("better", np.int32), ("worse", np.int32), ("dual", np.float32)]
)

cdef struct Bounds:
    double ridge
    double upper

cdef struct ItemsMachine:
    # The items' half: the data that all its tasks share.
    Bounds bounds
    const double *users
    const double *inverses  # by user: 1 / (2 |u|^2 + ridge)
    double *items
    Py_ssize_t rank  # padded to whole lanes
    bint atomic

cdef struct UsersMachine:
    # The users' half: the data that all users share.
    Bounds bounds
    float *duals
    double *users
    const double *items
    Py_ssize_t rank  # padded to whole lanes

cdef struct Draws:
    # Records that are drawn from all of them, as many as there are.
    bitgen_t *bits
    Record *first
    Py_ssize_t n
    Py_ssize_t known  # how many have been drawn
    float *duals  # of all records, in the users' half; else NULL
    Record *records[_DRAWN]  # the last that were drawn

cdef struct User:
    # The machine of one user.
    Py_ssize_t n  # comparisons
    const int32_t *better
    const int32_t *worse
    float *duals
    double *u
    int32_t *order  # in which the comparisons are visited
    Stream stream

cdef struct Memory:
    # Scratch memory of one thread.
    int32_t *orders[2]  # of the comparisons of two users
    double *weights  # one per item; all zero between two users

cdef extern from *:
    """
    /* Exchanges two records, which have 16 bytes: moved in one piece, a record is ready to be read again at once. */
    static inline void rankbench_exchange(void *one, void *other) {
        rankbench_two a, b;
        memcpy(&a, one, sizeof a);
        memcpy(&b, other, sizeof b);
        memcpy(one, &b, sizeof b);
        memcpy(other, &a, sizeof a);
    }

    /* Adds step u to four numbers of v, and subtracts it from w. */
    static inline void rankbench_move_along(const double *u, double *v, double *w, double step) {
        for (int k = 0; k < 4; k += RANKBENCH_WIDTH) {
            rankbench_lanes along, sum;
            RANKBENCH_LOAD(along, u + k);
            along *= step;
            RANKBENCH_LOAD(sum, v + k);
            sum += along;
            RANKBENCH_STORE(v + k, sum);
            RANKBENCH_LOAD(sum, w + k);
            sum -= along;
            RANKBENCH_STORE(w + k, sum);
        }
    }

    /* A record's user and items. */
    typedef struct { const double *user; double *better, *worse; } rankbench_vectors;

    static inline void rankbench_move_both(
        rankbench_vectors a, rankbench_vectors b, double step, double other_step, Py_ssize_t n
    ) {
        for (Py_ssize_t k = 0; k < n; k += 4) {
            rankbench_move_along(a.user + k, a.better + k, a.worse + k, step);
            rankbench_move_along(b.user + k, b.better + k, b.worse + k, other_step);
        }
    }
    """
    ctypedef struct Three "rankbench_vectors":
        const double *user
        double *better
        double *worse
    void _exchange "rankbench_exchange" (void *one, void *other) noexcept nogil
    # Two moves as `_add_both` makes them, of records without a common item.
    void _move_both "rankbench_move_both" (
        Three a, Three b, double step, double other_step, Py_ssize_t n
    ) noexcept nogil

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


cdef class Box:
    """The penalty and the upper bound of a dual variable a: ridge / 2 a^2, and a <= upper."""

    cdef Bounds bounds

    def __init__(self, *, double ridge, double upper):
        """Take ridge and upper; squared hinge: 1 / (2C) and infinity; hinge: 0 and C."""
        self.bounds = Bounds(ridge, upper)


cdef class Vectors:
    """The users' and the items' vectors, which are changed in place; rows are padded with zeros to whole lanes."""

    cdef double[:, ::1] users
    cdef double[:, ::1] items

    def __init__(self, *, double[:, ::1] users, double[:, ::1] items):
        """Take the arrays, without a copy."""
        if users.shape[1] != items.shape[1]:
            raise ValueError(f"users have rank {users.shape[1]}, items have rank {items.shape[1]}")
        if users.shape[1] == 0 or users.shape[1] % LANES:
            raise ValueError(f"rows of {users.shape[1]} numbers are not padded to whole lanes")
        self.users, self.items = users, items


cdef class TaskRecords:
    """The comparisons of the items' half with their duals: task t holds the records from starts[t] to starts[t + 1]."""

    cdef Record[::1] records
    cdef const int64_t[::1] starts
    cdef Record *first  # NULL if there is none

    def __init__(self, *, Record[::1] records, const int64_t[::1] starts):
        """Take the arrays, without a copy; the passes shuffle the records of a task and change their duals."""
        count_rows(starts, records.shape[0])
        self.records, self.starts = records, starts
        self.first = &records[0] if records.shape[0] > 0 else NULL


def records_of(
    *,
    ComparisonRows comparisons,
    const int32_t[::1] user_order,
    const int32_t[::1] item_group,
    const int32_t[:, ::1] pair_of,
    Py_ssize_t n_tasks,
) -> tuple[Records, Int64s]:
    """The comparisons task by task, users within a task in the order given, and where each task starts.

    Task pair_of[a, b] holds the comparisons between items of the groups a and b; every dual is zero. The time is
    linear: a first pass counts, a second fills.
    """
    agree("users in order", user_order.shape[0], comparisons.view.n)
    within("n_tasks", n_tasks, np.max(pair_of, initial=-1) + 1, INT32_MAX)
    cdef const int64_t[::1] indptr = comparisons.indptr
    cdef const int32_t[::1] better = comparisons.better, worse = comparisons.worse
    starts = np.zeros(n_tasks + 1, np.int64)
    records = zeros(len(better), RECORD)
    cdef int64_t[::1] counts = starts
    cdef Record[::1] out = records
    cdef Py_ssize_t place, row, user, task
    with nogil:
        for row in range(better.shape[0]):
            counts[pair_of[item_group[better[row]], item_group[worse[row]]] + 1] += 1
        for task in range(n_tasks):
            counts[task + 1] += counts[task]
        for place in range(user_order.shape[0]):
            user = user_order[place]
            for row in range(indptr[user], indptr[user + 1]):
                task = pair_of[item_group[better[row]], item_group[worse[row]]]
                out[counts[task]].user = <int32_t> user
                out[counts[task]].better = better[row]
                out[counts[task]].worse = worse[row]
                counts[task] += 1
    return records, np.concatenate([[0], starts[:n_tasks]])  # filling moved each task's start to the next task's


def items_pass(
    *,
    Box box,
    TaskRecords tasks,
    const int64_t[:, ::1] rounds,
    Vectors vectors,
    uint64_t seed,
    bint atomic,
    int threads,
):
    """Update V by a visit to every comparison, round by round; the tasks of a round run in parallel.

    A row of `rounds` has the first task of a round and the end of its tasks. An update reads 3 rank doubles and writes
    2 rank, in about 7 rank flops. `atomic`: no addition to V is lost where tasks of one round share items.
    """
    threads = team(threads)
    _check_rounds(rounds, tasks)
    cdef double[::1] inverses = _inverses(box, vectors, threads)
    cdef ItemsMachine machine = _items_machine(box, vectors, atomic)
    cdef Py_ssize_t turn, task, first, end
    machine.inverses = &inverses[0]
    for turn in range(rounds.shape[0]):
        first, end = rounds[turn, 0], rounds[turn, 1]
        for task in prange(first, end, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
            _visit_task(
                &machine, tasks.first + tasks.starts[task], tasks.starts[task + 1] - tasks.starts[task],
                stream_of(seed, task),
            )


def items_from_duals(*, TaskRecords tasks, const int64_t[:, ::1] rounds, Vectors vectors, int threads) -> Floats:
    """Add all examples times their duals to V: a u_i to row j and -a u_i to row k.

    Returns the sum of the duals and of their squares, task by task.
    """
    threads = team(threads)
    _check_rounds(rounds, tasks)
    cdef Py_ssize_t turn, task, first, end
    cdef double[:, ::1] sums = np.zeros((tasks.starts.shape[0] - 1, 2))
    cdef ItemsMachine machine = _items_machine(None, vectors, False)
    for turn in range(rounds.shape[0]):
        first, end = rounds[turn, 0], rounds[turn, 1]
        for task in prange(first, end, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
            _add_task(
                &machine, tasks.first + tasks.starts[task], tasks.starts[task + 1] - tasks.starts[task],
                &sums[task, 0],
            )
    return np.asarray(sums)


def scale_exponent(*, Box box, double linear, double square, double size) -> int:
    """The exponent of the power of two that all duals are best scaled by.

    `linear` and `square` are the sums of the duals and of their squares, `size` is |w|^2.
    """
    return _scale_exponent(linear, size + box.bounds.ridge * square, box.bounds.upper)


def users_pass(
    *,
    Box box,
    ComparisonRows comparisons,
    float[::1] duals,
    Vectors vectors,
    int passes,
    uint64_t seed,
    int threads,
):
    """Rebuild each user's vector from its duals, and visit its comparisons `passes` times, each in a new order."""
    threads = team(threads)
    within("passes", passes, 0, INT32_MAX)
    agree("users", vectors.users.shape[0], comparisons.view.n)
    agree("duals", duals.shape[0], comparisons.better.shape[0])
    cdef Py_ssize_t user, n_items = vectors.items.shape[0]
    cdef Py_ssize_t longest = longest_row(comparisons.view.indptr, comparisons.view.n)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest, n_items)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef UsersMachine machine = _users_machine(box, duals, vectors)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest, n_items)
        memset(memory.weights, 0, n_items * sizeof(double))
        for user in prange(0, vectors.users.shape[0], 2, schedule="dynamic", chunksize=8):
            _visit_two_users(&machine, comparisons, user, memory, passes, seed)


def drawn_items_pass(*, Box box, TaskRecords tasks, Vectors vectors, rng):
    """Make as many updates of V as there are comparisons, each by a comparison drawn uniformly at random."""
    cdef ItemsMachine machine = _items_machine(box, vectors, False)
    cdef double[::1] inverses = _inverses(box, vectors, 1)
    cdef Draws draws = _draws(tasks, rng, NULL)
    machine.inverses = &inverses[0]
    with rng.bit_generator.lock, nogil:
        _visit_drawn_items(&machine, &draws)


def drawn_users_pass(*, Box box, TaskRecords tasks, float[::1] duals, Vectors vectors, rng):
    """Make as many updates of U as there are comparisons, each by a comparison drawn uniformly at random.

    The dual of a record has the same index in `duals`.
    """
    agree("duals", duals.shape[0], tasks.records.shape[0])
    cdef UsersMachine machine = _users_machine(box, duals, vectors)
    cdef Draws draws = _draws(tasks, rng, machine.duals)
    with rng.bit_generator.lock, nogil:
        _visit_drawn_users(&machine, &draws)


def sums(*, const float[:] duals) -> tuple[float, float]:
    """The sum of the duals, and the sum of their squares."""
    cdef double linear = 0.0, square = 0.0
    cdef Py_ssize_t row
    with nogil:
        for row in range(duals.shape[0]):
            linear += duals[row]
            square += <double> duals[row] * duals[row]
    return linear, square


cdef int _check_rounds(const int64_t[:, ::1] rounds, TaskRecords tasks) except -1:
    """Raise ValueError if a round has tasks that there are not."""
    agree("columns of rounds", rounds.shape[1], 2)
    within("first task of a round", np.min(rounds, initial=0), 0, 0)
    return within("end of a round", np.max(rounds, initial=0), 0, tasks.starts.shape[0] - 1)


cdef Memory _lay_out(Arena *arena, Py_ssize_t longest, Py_ssize_t n_items) noexcept nogil:
    """Scratch memory for the orders of two users' comparisons, and for a weight of each item."""
    cdef Memory memory
    memory.orders[0], memory.orders[1] = ints(arena, longest), ints(arena, longest)
    memory.weights = floats(arena, n_items)
    return memory


# ---- comparisons in random order ----


cdef Draws _draws(TaskRecords tasks, rng, float *duals):
    """Draws from all records; none is drawn yet."""
    cdef Draws draws
    draws.bits, draws.first, draws.n, draws.known = bit_generator(rng), tasks.first, tasks.records.shape[0], 0
    draws.duals = duals
    return draws


cdef inline void _draw_until(Draws *draws, Py_ssize_t place) noexcept nogil:
    """Draw the records up to a place, if there are so many, and ask for each."""
    cdef Py_ssize_t drawn
    while draws.known < min(place, draws.n):
        drawn = below(draws.bits, <uint32_t> draws.n)
        fetch(<double *> (draws.first + drawn), 1)
        if draws.duals:
            fetch(<double *> (draws.duals + drawn), 1)
        draws.records[draws.known % <size_t> _DRAWN] = draws.first + drawn
        draws.known += 1


cdef inline Record *_drawn(const Draws *draws, Py_ssize_t place) noexcept nogil:
    """The record that was drawn for this place."""
    return draws.records[place % <size_t> _DRAWN]


cdef void _visit_drawn_items(const ItemsMachine *shared, Draws *draws) noexcept nogil:
    """Update V by each record, while the next ones are drawn and what they need is asked for."""
    cdef ItemsMachine machine = shared[0]
    cdef Py_ssize_t place = 0, ahead = 0, rank = machine.rank
    cdef Record *one
    while place < draws.n:
        _draw_until(draws, place + _DRAWN)
        while ahead < min(draws.n, place + _DRAWN_AHEAD):
            one = _drawn(draws, ahead)
            read_ahead(machine.users + one.user * rank, rank)
            fetch_both(machine.items + one.better * rank, machine.items + one.worse * rank, rank)
            ahead += 1
        one = _drawn(draws, place)
        if place + 1 < draws.n and _share_no_item(one, _drawn(draws, place + 1)):
            _update_two_records(&machine, one, _drawn(draws, place + 1))
            place += 2
        else:
            _update_items(&machine, one, machine.inverses[one.user])
            place += 1


cdef void _visit_drawn_users(const UsersMachine *shared, Draws *draws) noexcept nogil:
    """Update U by each record, while the next ones are drawn and what they need is asked for."""
    cdef UsersMachine machine = shared[0]
    cdef Py_ssize_t place, ahead = 0, rank = machine.rank
    cdef Record *one
    for place in range(draws.n):
        _draw_until(draws, place + _DRAWN)
        while ahead < min(draws.n, place + _DRAWN_AHEAD):
            one = _drawn(draws, ahead)
            fetch(machine.users + one.user * rank, rank)
            read_ahead(machine.items + one.better * rank, rank)
            read_ahead(machine.items + one.worse * rank, rank)
            ahead += 1
        one = _drawn(draws, place)
        _update_user(
            &machine.bounds, machine.duals + (one - draws.first), machine.users + one.user * rank,
            machine.items + one.better * rank, machine.items + one.worse * rank, rank,
        )


# ---- the items' half ----


cdef ItemsMachine _items_machine(Box box, Vectors vectors, bint atomic):
    """The shared data of the items' half, without `inverses`; `box` may be None if no dual is changed."""
    cdef Bounds bounds = Bounds(0.0, 0.0)
    if box is not None:
        bounds = box.bounds
    return ItemsMachine(bounds, &vectors.users[0, 0], NULL, &vectors.items[0, 0], vectors.items.shape[1], atomic)


cdef _inverses(Box box, Vectors vectors, int threads):
    """By user, 1 / (2 |u|^2 + ridge)."""
    cdef double[::1] inverses = np.empty(vectors.users.shape[0])
    cdef Py_ssize_t user, rank = vectors.users.shape[1]
    cdef double ridge = box.bounds.ridge
    cdef const double *u
    for user in prange(vectors.users.shape[0], nogil=True, schedule="static", num_threads=threads):
        u = &vectors.users[user, 0]
        inverses[user] = _inverse(2.0 * dot(u, u, rank) + ridge)
    return inverses


cdef void _visit_task(const ItemsMachine *shared, Record *records, Py_ssize_t n, Stream stream) noexcept nogil:
    """Visit a task window by window, from a random start and with a random stride that visits each window once."""
    cdef ItemsMachine machine = shared[0]
    cdef Py_ssize_t window = max(<Py_ssize_t> 32, _WINDOW // machine.rank), windows = (n + window - 1) // window
    cdef Py_ssize_t place, following, stride = 1, _turn
    if windows == 0:
        return
    place = below(&stream, <uint32_t> windows)
    if windows > 2:
        stride = 1 + below(&stream, <uint32_t> (windows - 1))
        while _common_divisor(stride, windows) != 1:
            stride = 1 + below(&stream, <uint32_t> (windows - 1))
    for _turn in range(windows):
        following = (place + stride) % windows
        _visit_window(
            &machine, records + place * window, min(window, n - place * window), records + following * window, &stream
        )
        place = following


cdef inline void _visit_window(
    const ItemsMachine *machine, Record *records, Py_ssize_t n, Record *following, Stream *stream
) noexcept nogil:
    """Shuffle the records, and update V by each of them; the records of the following window are asked for."""
    cdef Py_ssize_t place = 0
    _shuffle(records, n, stream)
    while place < n:
        fetch(<double *> (following + place), 1)
        if not machine.atomic and place + 1 < n and _share_no_item(records + place, records + place + 1):
            _fetch_items(machine, records, place + _AHEAD, n)
            _fetch_items(machine, records, place + _AHEAD + 1, n)
            _update_two_records(machine, records + place, records + place + 1)
            place += 2
        else:
            _fetch_items(machine, records, place + _AHEAD, n)
            _update_items(machine, records + place, machine.inverses[records[place].user])
            place += 1


cdef inline void _shuffle(Record *records, Py_ssize_t n, Stream *stream) noexcept nogil:
    """Put records in random order: each, from the last one down, is exchanged with one before it or itself."""
    cdef Py_ssize_t k, many, last = n - 1
    cdef int32_t drawn[_DRAWN]
    while last > 0:
        many = min(last, <Py_ssize_t> _DRAWN)
        draw_below(stream, last + 1, -1, many, drawn)
        for k in range(many):
            _exchange(records + last - k, records + drawn[k])
        last -= many


cdef inline bint _share_no_item(const Record *one, const Record *other) noexcept nogil:
    """Whether two records have four different items."""
    return (
        one.better != other.better and one.better != other.worse
        and one.worse != other.better and one.worse != other.worse
    )


cdef inline void _fetch_items(
    const ItemsMachine *machine, const Record *records, Py_ssize_t place, Py_ssize_t n
) noexcept nogil:
    """Prefetch the items' vectors of a record, if the window has so many."""
    cdef Py_ssize_t rank = machine.rank
    if place < n:
        fetch_both(machine.items + records[place].better * rank, machine.items + records[place].worse * rank, rank)


cdef inline Py_ssize_t _common_divisor(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The greatest common divisor (Euclid)."""
    cdef Py_ssize_t rest
    while b:
        rest = a % b
        a = b
        b = rest
    return a


cdef inline void _update_items(const ItemsMachine *machine, Record *record, double inverse) noexcept nogil:
    """Set one dual to its best value, and move the two items of the record along the user's vector.

    With da the change of the dual a_ijk: v_j += da u_i, v_k -= da u_i; m = u_i . (v_j - v_k) and q = 2 |u_i|^2.
    """
    cdef Py_ssize_t rank = machine.rank
    cdef const double *u = machine.users + record.user * rank
    cdef double *v = machine.items + record.better * rank
    cdef double *w = machine.items + record.worse * rank
    cdef double before = record.dual
    record.dual = _best(&machine.bounds, before, long_dot_difference(u, v, w, rank), inverse)
    if machine.atomic:
        _add_atomically(v, w, u, record.dual - before, rank)
    else:
        _add_both(v, w, u, record.dual - before, rank)


cdef inline void _update_two_records(const ItemsMachine *machine, Record *one, Record *other) noexcept nogil:
    """As `_update_items` for one record and then for the other; they share no item, so neither waits for the other."""
    cdef Py_ssize_t rank = machine.rank
    cdef Three a = _vectors_of(machine, one), b = _vectors_of(machine, other)
    cdef double before = one.dual, other_before = other.dual, step, other_step
    cdef double margin = long_dot_difference(a.user, a.better, a.worse, rank)
    cdef double other_margin = long_dot_difference(b.user, b.better, b.worse, rank)
    one.dual = _best(&machine.bounds, before, margin, machine.inverses[one.user])
    step = one.dual - before
    other.dual = _best(&machine.bounds, other_before, other_margin, machine.inverses[other.user])
    other_step = other.dual - other_before
    _move_both(a, b, step, other_step, rank)


cdef inline Three _vectors_of(const ItemsMachine *machine, const Record *record) noexcept nogil:
    """The vectors of a record's user and items."""
    cdef Py_ssize_t rank = machine.rank
    return Three(
        machine.users + record.user * rank, machine.items + record.better * rank, machine.items + record.worse * rank
    )


cdef void _add_task(const ItemsMachine *shared, const Record *records, Py_ssize_t n, double *sums) noexcept nogil:
    """Add a task's examples to V, each times its dual; sums[0] is the sum of these duals, sums[1] of their squares."""
    cdef ItemsMachine machine = shared[0]
    cdef Py_ssize_t place, rank = machine.rank
    cdef const double *u
    cdef double *v
    cdef double *w
    cdef double linear = 0.0, square = 0.0
    for place in range(n):
        if records[place].dual != 0:
            linear += records[place].dual
            square += <double> records[place].dual * records[place].dual
            u = machine.users + records[place].user * rank
            v = machine.items + records[place].better * rank
            w = machine.items + records[place].worse * rank
            _add_both(v, w, u, records[place].dual, rank)
    sums[0], sums[1] = linear, square


# ---- the users' half ----


cdef UsersMachine _users_machine(Box box, float[::1] duals, Vectors vectors):
    """The shared data of the users' half."""
    cdef float *first = &duals[0] if duals.shape[0] > 0 else NULL
    return UsersMachine(box.bounds, first, &vectors.users[0, 0], &vectors.items[0, 0], vectors.items.shape[1])


cdef inline void _visit_two_users(
    const UsersMachine *machine, ComparisonRows comparisons, Py_ssize_t first, Memory memory, int passes, uint64_t seed
) noexcept nogil:
    """Fit a user and the next, in turns: an update of one does not wait for the end of the other's."""
    cdef User one = _user(machine, comparisons, first, memory.orders[0], seed), other
    if first + 1 < comparisons.view.n:
        other = _user(machine, comparisons, first + 1, memory.orders[1], seed)
    else:
        other = one
        other.n = 0
    _rebuild_user(machine, &one, memory.weights)
    _rebuild_user(machine, &other, memory.weights)
    _fit_two_users(machine, one, other, passes)


cdef inline User _user(
    const UsersMachine *machine, ComparisonRows comparisons, Py_ssize_t user, int32_t *order, uint64_t seed
) noexcept nogil:
    """The machine of one user."""
    cdef Py_ssize_t first = comparisons.view.indptr[user]
    return User(
        comparisons.view.indptr[user + 1] - first, comparisons.view.better + first, comparisons.view.worse + first,
        machine.duals + first, machine.users + user * machine.rank, order, stream_of(seed, user),
    )


cdef void _fit_two_users(const UsersMachine *shared, User one, User other, int passes) noexcept nogil:
    """Visit the comparisons of two users `passes` times, each time in a new order."""
    cdef UsersMachine machine = shared[0]  # a local copy, so that it stays in registers
    cdef Py_ssize_t place, together = min(one.n, other.n)
    cdef int _turn
    for _turn in range(passes):
        shuffled(&one.stream, one.order, one.n)
        shuffled(&other.stream, other.order, other.n)
        for place in range(together):
            _update_two_users(&machine, &one, &other, place)
        for place in range(together, one.n):
            _update_one_user(&machine, &one, place)
        for place in range(together, other.n):
            _update_one_user(&machine, &other, place)


cdef inline void _update_two_users(
    const UsersMachine *machine, const User *one, const User *other, Py_ssize_t place
) noexcept nogil:
    """Visit one comparison of each."""
    cdef Py_ssize_t row = one.order[place], second = other.order[place], rank = machine.rank
    cdef const double *v = machine.items + one.better[row] * rank
    cdef const double *w = machine.items + one.worse[row] * rank
    cdef const double *x = machine.items + other.better[second] * rank
    cdef const double *y = machine.items + other.worse[second] * rank
    cdef double before = one.duals[row], other_before = other.duals[second]
    cdef Difference a = of_long_difference(one.u, v, w, rank)
    cdef Difference b = of_long_difference(other.u, x, y, rank)
    one.duals[row] = _best_along(&machine.bounds, before, a)
    other.duals[second] = _best_along(&machine.bounds, other_before, b)
    _add_difference(one.u, v, w, one.duals[row] - before, rank)
    _add_difference(other.u, x, y, other.duals[second] - other_before, rank)


cdef inline void _update_one_user(const UsersMachine *machine, const User *user, Py_ssize_t place) noexcept nogil:
    """Visit one comparison of a user."""
    cdef Py_ssize_t row = user.order[place], rank = machine.rank
    _update_user(
        &machine.bounds, user.duals + row, user.u, machine.items + user.better[row] * rank,
        machine.items + user.worse[row] * rank, rank,
    )


cdef void _rebuild_user(const UsersMachine *machine, const User *user, double *weights) noexcept nogil:
    """Set u = sum of a (v_j - v_k), with all a scaled by the best power of two for the new V.

    The duals are first added up by item, since a user has many more comparisons than items. Invariant: all `weights`,
    one for each item, are zero before and after.
    """
    cdef Py_ssize_t row, k, n = user.n, rank = machine.rank
    cdef double linear = 0.0, square = 0.0, factor
    cdef double *u = user.u
    cdef float *duals = user.duals
    cdef const int32_t *better = user.better
    cdef const int32_t *worse = user.worse
    cdef const double *items = machine.items
    cdef int exponent
    if n == 0:
        return  # the vector of a user without comparisons stays as it is
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
    exponent = _scale_exponent(linear, dot(u, u, rank) + machine.bounds.ridge * square, machine.bounds.upper)
    if exponent != 0:
        factor = ldexp(1.0, exponent)
        for row in range(n):
            duals[row] = <float> (duals[row] * factor)
        for k in range(rank):
            u[k] *= factor


# ---- updates of duals and vectors, shared by both halves ----


cdef inline int _scale_exponent(double linear, double curvature, double upper) noexcept nogil:
    """The log2, rounded, of the t that minimises the dual t^2/2 (|w|^2 + ridge sum a^2) - t sum a.

    Duals from the previous V (or U) may be far too large for the new one, and one pass does not correct
    them: without scaling the two halves diverge. Multiplying by a power of two is exact, and it is at most a factor
    sqrt 2 from the best t, which always gives a better dual value than a start from zero.
    """
    cdef double best
    if linear <= 0.0 or curvature <= 0.0:
        return 0
    best = rint(log2(linear / curvature))
    if upper < _HUGE:
        best = min(best, 0.0)
    return <int> max(-100.0, min(best, 100.0))


cdef inline void _update_user(
    const Bounds *bounds, float *dual, double *u, const double *v, const double *w, Py_ssize_t rank
) noexcept nogil:
    """Set one dual to its best value, and move the user's vector along v - w, which are v_j and v_k.

    With da the change of the dual a_ijk: u_i += da (v_j - v_k); m = u_i . (v_j - v_k) and q = |v_j - v_k|^2.
    """
    cdef double before = dual[0]  # read first: where rows are drawn, its cache miss overlaps those of the vectors
    dual[0] = _best_along(bounds, before, of_long_difference(u, v, w, rank))
    _add_difference(u, v, w, dual[0] - before, rank)


cdef inline float _best_along(const Bounds *bounds, double dual, Difference difference) noexcept nogil:
    """The best value of one dual of the users' half."""
    return _best(bounds, dual, difference.product, _inverse(difference.square + bounds.ridge))


cdef inline float _best(const Bounds *bounds, double dual, double margin, double inverse) noexcept nogil:
    """clip(a + (1 - m - ridge a) / (q + ridge), 0, upper), rounded as it is stored: w moves by the same amount."""
    return <float> min(max(dual + (1.0 - margin - bounds.ridge * dual) * inverse, 0.0), bounds.upper)


cdef inline double _inverse(double curvature) noexcept nogil:
    """1 / curvature; without curvature a huge number, which takes the dual to its upper bound."""
    return 1.0 / curvature if curvature > 0.0 else _HUGE


cdef inline void _add_difference(
    double *u, const double *v, const double *w, double step, Py_ssize_t n
) noexcept nogil:
    """Add step (v - w) to u."""
    cdef double a, b, c, d
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        a = u[k] + step * (v[k] - w[k])
        b = u[k + 1] + step * (v[k + 1] - w[k + 1])
        c = u[k + 2] + step * (v[k + 2] - w[k + 2])
        d = u[k + 3] + step * (v[k + 3] - w[k + 3])
        u[k], u[k + 1], u[k + 2], u[k + 3] = a, b, c, d


cdef inline void _add_weighted(double *u, const double *v, double *weight, Py_ssize_t n) noexcept nogil:
    """Add weight v to u, and set the weight to zero."""
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
    """Add step u to v, and subtract it from w."""
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
    """Add step u to v and subtract it from w, atomically."""
    cdef Py_ssize_t k
    if step == 0.0:
        return
    for k in range(n):
        _atomic_add(v + k, step * u[k])
        _atomic_add(w + k, -step * u[k])
