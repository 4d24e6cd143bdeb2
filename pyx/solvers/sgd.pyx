"""Pairwise stochastic gradient descent on factors, one pass at a time, user by user.

Users are visited in random order, and all comparisons of a user in random order: u_i stays in the first-level cache
while two rows of V are loaded, which makes an update several times cheaper than drawing comparisons at random from all
of Omega, and lowers the objective as fast per pass. An update reads and writes 3 rank doubles, in about 12 rank flops.
The updates of a user wait for each other, so four users take turns, and the updates of a turn overlap. Each one's pairs
are first copied in the order of their visits: read in place, they would be spread over more than that cache holds.

There are two parallel schedules. In rounds: tasks of one round share neither a user nor an item, so that any number of
threads gives the same bits. A task is visited window by window: the comparisons of a window belong to few users, whose
vectors stay in the first-level cache. Without locks (Hogwild): each thread takes one user at a time, and threads may
overwrite each other's items.
"""

# Roof of serial_pass, an update: 8 bytes; 12 * rank + 20 flops; rank / 4 + 2 lines.
# Roof of rounds_pass, an update: 12 bytes; 12 * rank + 20 flops; rank / 4 + 3 lines; 1 calls.

from cython.parallel cimport parallel, prange
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t

from numpy.random cimport bitgen_t

from rankbench.kernels.methods.pairwise cimport (
    DescentFactors, FactorsView, Keep, descend_on, fetch_items, fetch_user, margin_of, move_doubles, step_size,
)
from rankbench.kernels.methods.rotation cimport TaskRows
from rankbench.kernels.methods.turns cimport SEATS, Turn, apart, margins_of_four, size_four
from rankbench.kernels.shared.arena cimport Arena, Scratch, ints, taken
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.draws cimport Stream, bit_generator, draw_next, next_word, shuffled, stream_of
from rankbench.kernels.shared.lanes cimport fetch_both
from rankbench.kernels.shared.losses cimport LOGISTIC, Loss, known_loss, slope_of, two_logistic_slopes
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport ComparisonRows, count_rows, first_id, first_value, longest_row
from rankbench.kernels.shared.sorting cimport in_order

cdef enum:
    _AHEAD = 4  # how many comparisons ahead the rows of V are prefetched
    _WINDOW = 64  # rows of a task, sorted by user, that are visited together
    _USUAL = 12  # numbers in a vector of the default rank, with padding

cdef struct Model:
    Loss loss
    FactorsView factors

cdef struct Visits:
    # Comparisons of a task in the order in which they are visited.
    Py_ssize_t n
    int32_t *order  # indices into the three arrays
    const int32_t *users
    const int32_t *better
    const int32_t *worse
    const double *weights  # of their slopes; NULL: all are 1

cdef struct Pair:
    int32_t better
    int32_t worse

cdef struct Seat:
    # A user whose comparisons are visited, maybe in turns with others.
    Py_ssize_t user
    Pair *pairs  # the user's comparisons, in random order
    Py_ssize_t n
    Py_ssize_t place  # of the next pair
    int32_t *order  # scratch memory for the order

cdef struct Orders:
    # Scratch memory of one thread.
    int32_t *parts  # windows of a task
    int32_t *rows  # of a task


cdef class Descent:
    """Factors that gradient descent changes in place, and the loss that it decreases."""

    cdef DescentFactors factors
    cdef Model model

    def __init__(self, *, DescentFactors factors, Loss loss):
        """Take the factors, without a copy."""
        known_loss(loss)
        self.factors = factors
        self.model = Model(loss, factors.view)


def serial_pass(*, Descent descent, ComparisonRows comparisons, double updates, rng):
    """Visit every comparison once, on one thread; `updates` were made before this pass.

    Users come in random order. Four take turns, an update each, and who has no comparison left makes room for the next.
    """
    agree("users", len(descent.factors.users), comparisons.view.n)
    cdef Py_ssize_t n_users = comparisons.view.n, longest = longest_row(comparisons.view.indptr, n_users)
    cdef Py_ssize_t place, seat = 0
    cdef uint64_t seed
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Seat seats[SEATS]
    cdef Arena arena = Arena(NULL, 0)
    cdef int32_t *order = _lay_out_seats(&arena, n_users, longest, seats)
    cdef Scratch scratch = Scratch(arena.used, 1)
    arena = scratch.share(0)
    order = _lay_out_seats(&arena, n_users, longest, seats)
    with rng.bit_generator.lock, nogil:
        seed = next_word(bits)
        seed |= <uint64_t> next_word(bits) << 32
        in_order(order, n_users)
        for place in range(n_users):
            while seats[seat].place < seats[seat].n:
                seat += 1
                if seat == SEATS:
                    updates = _take_turns(&descent.model, seats, updates)
                    seat = 0
            _sit_down(&seats[seat], comparisons, draw_next(bits, order, place, n_users), seed)
        for seat in range(SEATS):
            updates = _visit_rest(&descent.model, &seats[seat], updates)


def rounds_pass(
    *,
    Descent descent,
    TaskRows rows,
    const int64_t[::1] round_starts,
    const int32_t[::1] tasks,
    const double[::1] updates,
    uint64_t seed,
    int threads,
):
    """Visit every comparison once, round by round; the tasks of a round share neither user nor item.

    Round r runs tasks[round_starts[r] : round_starts[r + 1]] in parallel. A task draws the order of its rows from its
    own random stream, and takes updates[place] as the number of updates before the task at this place of `tasks`, so no
    bit depends on the number of threads.
    """
    threads = team(threads)
    agree("numbers of updates", updates.shape[0], tasks.shape[0])
    count_rows(round_starts, tasks.shape[0])
    above_ids("tasks", rows.starts.shape[0] - 1, tasks)
    cdef Py_ssize_t longest = longest_row(&rows.starts[0], rows.starts.shape[0] - 1)
    cdef Py_ssize_t windows = (longest + _WINDOW - 1) // _WINDOW
    cdef Py_ssize_t rounds = round_starts.shape[0] - 1, this_round, place, first, end
    cdef Arena arena = Arena(NULL, 0)
    cdef Orders orders = _lay_out(&arena, windows, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    this_round, first, end = 0, 0, 0  # private to each thread
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        orders = _lay_out(&arena, windows, longest)
        for this_round in range(rounds):
            first = round_starts[this_round]
            end = round_starts[this_round + 1]
            for place in prange(first, end, schedule="dynamic", chunksize=1):
                _run_task(&descent.model, rows, tasks[place], orders, updates[place], seed)


def hogwild_pass(
    *,
    Descent descent,
    ComparisonRows comparisons,
    const int32_t[::1] user_order,
    const double[::1] updates,
    uint64_t seed,
    int threads,
):
    """Visit every comparison once, users in parallel; items are read and written without locks, on purpose.

    updates[place] is the number of updates before the user at this place of `user_order`, in a serial pass.
    """
    threads = team(threads)
    agree("users", len(descent.factors.users), comparisons.view.n)
    agree("users in order", user_order.shape[0], comparisons.view.n)
    agree("numbers of updates", updates.shape[0], user_order.shape[0])
    cdef Py_ssize_t place, longest = longest_row(comparisons.view.indptr, comparisons.view.n)
    cdef Arena arena = Arena(NULL, 0)
    cdef Seat seat = _lay_out_seat(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        seat = _lay_out_seat(&arena, longest)
        for place in prange(user_order.shape[0], schedule="dynamic", chunksize=8):
            _run_user(&descent.model, comparisons, user_order[place], seat, updates[place], seed)


cdef Orders _lay_out(Arena *arena, Py_ssize_t parts, Py_ssize_t longest) noexcept nogil:
    """Scratch memory for an order of so many windows, and for one of the rows of a task."""
    return Orders(ints(arena, parts), ints(arena, longest))


cdef Seat _lay_out_seat(Arena *arena, Py_ssize_t longest) noexcept nogil:
    """A seat that nobody has taken, with room for so many comparisons."""
    return Seat(0, <Pair *> taken(arena, longest, sizeof(Pair)), 0, 0, ints(arena, longest))


cdef int32_t *_lay_out_seats(Arena *arena, Py_ssize_t n_users, Py_ssize_t longest, Seat *seats) noexcept nogil:
    """Seats that nobody has taken, and scratch memory for an order of the users."""
    cdef Py_ssize_t k
    for k in range(SEATS):
        seats[k] = _lay_out_seat(arena, longest)
    return ints(arena, n_users)


cdef inline void _sit_down(Seat *seat, ComparisonRows comparisons, Py_ssize_t user, uint64_t seed) noexcept nogil:
    """Let a user take this seat, with the comparisons in random order."""
    cdef Py_ssize_t first = comparisons.view.indptr[user], place
    cdef const int32_t *better = comparisons.view.better + first
    cdef const int32_t *worse = comparisons.view.worse + first
    cdef Stream stream = stream_of(seed, user)
    seat.user, seat.place, seat.n = user, 0, comparisons.view.indptr[user + 1] - first
    shuffled(&stream, seat.order, seat.n)
    for place in range(seat.n):
        seat.pairs[place] = Pair(better[seat.order[place]], worse[seat.order[place]])


cdef double _take_turns(const Model *model, Seat *seats, double updates) noexcept nogil:
    """Visit comparisons of all seats in turns, until one of them has none left; return the number of updates so far."""
    if model.factors.rank == _USUAL:
        return _take_turns_of(model, seats, updates, _USUAL)  # loops of a known length are unrolled
    return _take_turns_of(model, seats, updates, model.factors.rank)


cdef inline double _take_turns_of(const Model *shared, Seat *seats, double updates, Py_ssize_t rank) noexcept nogil:
    """The turns, with vectors of this length.

    The next turn is drawn after the lengths of this one, for which its moves wait: draws take no time of their own.
    """
    cdef Model model = shared[0]
    cdef Turn turns[2]
    cdef Turn *turn
    cdef Py_ssize_t left = INT64_MAX, number, k
    cdef bint together
    for k in range(SEATS):
        left = min(left, seats[k].n - seats[k].place)
        for number in range(2):
            turns[number].rows[0][k] = model.factors.users + seats[k].user * model.factors.row
            turns[number].shrinks[0][k] = model.factors.rates.user_shrink[seats[k].user]
    _draw_turn(&model, seats, turns)
    for number in range(left):
        turn = turns + (number & 1)
        together = not model.factors.single and apart(turn.ring)
        if together:
            _measure(&model, turn, updates, rank)
        else:
            for k in range(SEATS):
                _visit(&model, seats[k].user, turn.ring[k], turn.ring[SEATS + k], updates + k, 1.0)
        if number + 1 < left:
            _draw_turn(&model, seats, turns + 1 - (number & 1))
        if together:
            _move_four(&model, turn, rank)
        updates += SEATS
    return updates


cdef inline void _draw_turn(const Model *model, Seat *seats, Turn *turn) noexcept nogil:
    """The next comparison of each seat, whose items' rows are asked for."""
    cdef const FactorsView *factors = &model.factors
    cdef Py_ssize_t k
    cdef int32_t better, worse
    for k in range(SEATS):
        better, worse = seats[k].pairs[seats[k].place].better, seats[k].pairs[seats[k].place].worse
        turn.ring[k] = turn.ring[2 * SEATS + k] = better
        turn.ring[SEATS + k] = worse
        turn.shrinks[1][k], turn.shrinks[2][k] = factors.rates.item_shrink[better], factors.rates.item_shrink[worse]
        turn.rows[1][k], turn.rows[2][k] = factors.items + better * factors.row, factors.items + worse * factors.row
        fetch_both(<double *> turn.rows[1][k], <double *> turn.rows[2][k], factors.row // sizeof(double))
        seats[k].place += 1


cdef inline void _measure(const Model *model, Turn *turn, double updates, Py_ssize_t rank) noexcept nogil:
    """The lengths of four updates that share no item, and the shares that their rows keep."""
    cdef double margins[SEATS]
    cdef Py_ssize_t k
    margins_of_four(turn, rank, margins)
    if model.loss == LOGISTIC:
        for k in range(0, SEATS, 2):
            two_logistic_slopes(margins[k], margins[k + 1], turn.lengths + k)
    else:
        for k in range(SEATS):
            turn.lengths[k] = slope_of(model.loss, margins[k])
    size_four(turn, model.factors.rates.step, model.factors.rates.decay, updates)
    for k in range(SEATS):
        turn.lengths[k] *= turn.etas[k]


cdef inline void _move_four(const Model *model, Turn *turn, Py_ssize_t rank) noexcept nogil:
    """Make the updates that were measured."""
    cdef Py_ssize_t k, held = model.factors.held
    for k in range(SEATS):
        move_doubles(
            <double *> turn.rows[0][k], <double *> turn.rows[1][k], <double *> turn.rows[2][k],
            Keep(turn.kept[0][k], turn.kept[1][k], turn.kept[2][k]), turn.lengths[k], rank,
        )
    if held >= 0:
        for k in range(SEATS):
            (<double *> turn.rows[0][k])[held] = 1.0


cdef double _visit_rest(const Model *shared, Seat *seat, double updates) noexcept nogil:
    """Visit the comparisons that a seat has left; return the number of updates so far."""
    cdef Model model = shared[0]
    cdef Pair *pair
    while seat.place < seat.n:
        pair = seat.pairs + seat.place
        if seat.place + _AHEAD < seat.n:
            fetch_items(&model.factors, pair[_AHEAD].better, pair[_AHEAD].worse)
        _visit(&model, seat.user, pair.better, pair.worse, updates, 1.0)
        updates += 1.0
        seat.place += 1
    return updates


cdef void _run_task(
    const Model *model, TaskRows rows, Py_ssize_t task, Orders orders, double updates, uint64_t seed
) noexcept nogil:
    """Visit a task's rows in random order, window by window."""
    cdef Py_ssize_t first = rows.starts[task]
    cdef Visits visits = Visits(
        rows.starts[task + 1] - first, orders.rows,
        first_id(rows.users) + first, first_id(rows.better) + first, first_id(rows.worse) + first,
        NULL,
    )
    if rows.weights is not None:
        visits.weights = first_value(rows.weights) + first
    cdef Stream stream = stream_of(seed, task)
    _order_task(&stream, visits.n, orders)
    _visit_task(model, &visits, updates)


cdef void _order_task(Stream *stream, Py_ssize_t n, Orders orders) noexcept nogil:
    """Put the rows of a task in random order, window by window: its windows in random order, each one's rows too."""
    cdef Py_ssize_t windows = (n + _WINDOW - 1) // _WINDOW, place, row, first, count, filled = 0
    shuffled(stream, orders.parts, windows)
    for place in range(windows):
        first = orders.parts[place] * _WINDOW
        count = min(<Py_ssize_t> _WINDOW, n - first)
        shuffled(stream, orders.rows + filled, count)
        for row in range(filled, filled + count):
            orders.rows[row] += <int32_t> first
        filled += count


cdef void _run_user(
    const Model *model, ComparisonRows comparisons, Py_ssize_t user, Seat seat, double updates, uint64_t seed
) noexcept nogil:
    """Visit a user's comparisons in random order."""
    _sit_down(&seat, comparisons, user, seed)
    _visit_rest(model, &seat, updates)


cdef void _visit_task(const Model *shared, const Visits *visits, double updates) noexcept nogil:
    """Visit all comparisons of one task in the given order; its few users and items stay in the cache.

    Two that share no vector become one step if the loss needs an exponential: one computes both at a time.
    """
    cdef Model model = shared[0]
    cdef Py_ssize_t place = 0
    if model.loss != LOGISTIC:
        for place in range(visits.n):
            _fetch_ahead(&model, visits, place)
            _visit_row(&model, visits, place, updates)
        return
    while place < visits.n:
        if place + 1 < visits.n and _two_apart(visits, place):
            _visit_two(&model, visits, place, updates)
            place += 2
        else:
            _fetch_ahead(&model, visits, place)
            _visit_row(&model, visits, place, updates)
            place += 1


cdef inline void _fetch_ahead(const Model *model, const Visits *visits, Py_ssize_t place) noexcept nogil:
    """Prefetch the vectors of the comparison that is visited some places later."""
    cdef Py_ssize_t ahead
    if place + _AHEAD < visits.n:
        ahead = visits.order[place + _AHEAD]
        fetch_user(&model.factors, visits.users[ahead])
        fetch_items(&model.factors, visits.better[ahead], visits.worse[ahead])


cdef inline bint _two_apart(const Visits *visits, Py_ssize_t place) noexcept nogil:
    """Whether the comparison at this place shares neither user nor item with the next one."""
    cdef Py_ssize_t row = visits.order[place], other = visits.order[place + 1]
    cdef int32_t better = visits.better[row], worse = visits.worse[row]
    cdef int32_t other_better = visits.better[other], other_worse = visits.worse[other]
    return (
        (visits.users[row] != visits.users[other]) & (better != other_better) & (better != other_worse)
        & (worse != other_better) & (worse != other_worse)
    )


cdef inline void _visit_two(const Model *model, const Visits *visits, Py_ssize_t place, double updates) noexcept nogil:
    """Visit the comparison at this place and the next one, which are apart, under the logistic loss.

    What is visited later is prefetched while the exponentials are computed, which takes no time of its own.
    """
    cdef double slopes[2]
    cdef double eta
    cdef Py_ssize_t k, row = visits.order[place], other = visits.order[place + 1]
    two_logistic_slopes(
        margin_of(&model.factors, visits.users[row], visits.better[row], visits.worse[row]),
        margin_of(&model.factors, visits.users[other], visits.better[other], visits.worse[other]),
        slopes,
    )
    _fetch_ahead(model, visits, place)
    _fetch_ahead(model, visits, place + 1)
    for k in range(2):
        row = visits.order[place + k]
        eta = step_size(&model.factors, updates + (place + k))
        descend_on(
            &model.factors, visits.users[row], visits.better[row], visits.worse[row],
            eta, eta * _weight(visits, row) * slopes[k],
        )


cdef inline void _visit_row(const Model *model, const Visits *visits, Py_ssize_t place, double updates) noexcept nogil:
    """Visit the comparison at this place."""
    cdef Py_ssize_t row = visits.order[place]
    _visit(
        model, visits.users[row], visits.better[row], visits.worse[row], updates + place, _weight(visits, row)
    )


cdef inline double _weight(const Visits *visits, Py_ssize_t row) noexcept nogil:
    return 1.0 if visits.weights == NULL else visits.weights[row]


cdef inline void _visit(
    const Model *model, Py_ssize_t user, Py_ssize_t better, Py_ssize_t worse, double updates, double weight
) noexcept nogil:
    """One comparison. The report's listings take the new u for the steps of v and w, its formulas the old one."""
    cdef double margin = margin_of(&model.factors, user, better, worse)
    cdef double eta = step_size(&model.factors, updates)
    descend_on(&model.factors, user, better, worse, eta, eta * weight * slope_of(model.loss, margin))
