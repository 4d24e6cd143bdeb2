"""The vectors of users whom a model was not trained on, each at the minimum of their own objective.

For a user min over x of weight loss(s) + lam/2 |x|^2 with the scores s = V x + b, where V has a row for each item that
counts. The loss is smooth and convex in s. Three are known: pairs of the user's items; a user's positives against
all other items of the catalogue; and the choice of the positives among the catalogue, whose loss is -ln of a softmax.

Steps are those of limited-memory BFGS. It starts from H0, the second derivatives at some point, which are computed and
factored anew where steps do not get much shorter any more. Over a catalogue the items with the largest derivatives are
enough for H0. A user is worked on by one thread, so that no bit depends on the number of threads.
"""

from cython.parallel cimport parallel, prange
from libc.math cimport NAN, fabs, isfinite, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from rankbench.kernels.methods.all_pairs cimport (
    PairMemory, Task, TaskPairs, TaskPairsView, Windows, curve, evaluate, lay_out_pairs, lay_out_windows, task_of,
)
from rankbench.kernels.methods.rivals cimport BLOCK, WIDEST, RivalMemory, Rivals, lay_out_rivals, rivals_loss
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.blas cimport add_gram, factor_positive, multiply, multiply_from_left, solve_factored
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.lanes cimport LANES, Beyond, dot, dot_rows, read_ahead, sum_above, sum_rows, total
from rankbench.kernels.shared.line_search cimport sufficient
from rankbench.kernels.shared.losses cimport LOGISTIC, Loss, curvature_of, known_loss
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.powers cimport LN_2, binary_log, powers
from rankbench.kernels.shared.rows cimport Pattern, PatternView, longest_row
from rankbench.kernels.shared.sorting cimport in_order

cdef enum:
    _STEPS = 500  # of a user, at most
    _HALVINGS = 30  # of a step, at most
    _KEPT = 30  # steps that the matrix of second derivatives is corrected by, at most
    _HEAVY = 448  # items that make up H0 over a catalogue, or up to twice as many where some are alike
    _SAMPLED = 250  # of still more that are alike: so many, evenly spread, stand for all
    _BISECTIONS = 16  # to find the items with most of the second derivatives
    _AHEAD = 4  # rows that are on their way while one is copied

cdef enum Kind:
    _PAIRS
    _RIVALS
    _CHOICES

cdef double _ENOUGH = 1e-17  # of lam |x|^2: a step d with d' H0 d below it is the last one
cdef double _MOST = 0.999  # of the sum of the second derivatives that H0 over a catalogue consists of
cdef double _FAR = 0.01  # of |x|^2: how far x must go, squared, before another H0 is worth its while
cdef double _TRACE = 1e-14  # of the sum of H0's diagonal
cdef double _ROUNDING = 1e-13  # of the terms of a sum

cdef struct Problem:
    Kind kind
    Task task  # the pairs
    Loss loss  # of rivals
    const int32_t *own  # positives, ascending
    Py_ssize_t count  # of them
    const double *vectors  # V: n rows in whole lanes
    const double *offsets  # b
    Py_ssize_t n
    Py_ssize_t rank
    double weight
    double lam
    double stale  # of the squared length of the step before: if a step is longer, H0 is made anew

cdef struct Memory:
    # Scratch memory of one thread: numbers per item, then per coordinate, then matrices.
    double *rows  # vectors and offsets of the items in pairs, gathered
    double *offsets
    double *scores
    double *slope  # the derivatives of weight loss(s) by the scores
    double *degree  # the diagonal of its second derivatives
    double *powers  # of e, the scores less their middle, where the loss of pairs was computed from them
    double *moves
    double *gradient
    double *trial
    double *trial_gradient
    double *made_at  # where H0 was made
    double *direction
    double *own_sum
    double *other_sum
    double *matrix  # H0, then its factor
    double *heavy  # vectors of items times the roots of their degrees
    double *steps  # the last changes of x, and those of the gradient
    double *changes
    double *products  # 1 / (step . change)
    double *shares
    Windows windows
    PairMemory pairs
    RivalMemory rivals
    bint by_powers


def pairs(
    *,
    TaskPairs tasks,
    const double[:, ::1] items,
    const double[::1] offsets,
    double weight,
    double lam,
    double[:, ::1] users,
    int threads,
):
    """Move each row of `users` to the minimum of weight times the loss of the task's pairs + lam/2 |x|^2."""
    threads = team(threads)
    agree("users", users.shape[0], tasks.view.n)
    cdef Problem problem = _catalogue(items, offsets, users, weight, lam)
    above_ids("items", items.shape[0], tasks.rows.columns)
    problem.kind, problem.stale = _PAIRS, 0.5
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, &problem, tasks.view.longest, &tasks.view)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Py_ssize_t user
    if tasks.view.longest == 0 or items.shape[1] == 0:
        return
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, &problem, tasks.view.longest, &tasks.view)
        for user in prange(tasks.view.n, schedule="dynamic", chunksize=4):
            _fit_pairs(&problem, &tasks.view, user, &users[user, 0], &memory)


def rivals(
    *,
    Pattern positives,
    const double[:, ::1] items,
    const double[::1] offsets,
    Loss loss,
    double lam,
    double[:, ::1] users,
    int threads,
):
    """Move each row of `users` to the minimum of the mean loss over all pairs of a positive and another item.

    lam/2 |x|^2 is added. Users without a positive, or with all items, stay where they are.
    """
    threads = team(threads)
    known_loss(loss)
    cdef Problem problem = _catalogue(items, offsets, users, 1.0, lam)
    problem.kind, problem.stale, problem.loss = _RIVALS, 0.1, loss
    _fit_all(&problem, positives, users, threads)


def choices(
    *,
    Pattern positives,
    const double[:, ::1] items,
    const double[::1] offsets,
    double lam,
    double[:, ::1] users,
    int threads,
):
    """Move each row of `users` to the minimum of the mean of -ln p over their positives + lam/2 |x|^2.

    p is an item's share of exp(s) over the catalogue. Users without a positive stay where they are.
    """
    threads = team(threads)
    cdef Problem problem = _catalogue(items, offsets, users, 1.0, lam)
    problem.kind, problem.stale = _CHOICES, 0.1
    _fit_all(&problem, positives, users, threads)


cdef Problem _catalogue(
    const double[:, ::1] items, const double[::1] offsets, double[:, ::1] users, double weight, double lam
):
    """The problem as far as it is the same for all users."""
    agree("columns of users", users.shape[1], items.shape[1])
    agree("offsets", offsets.shape[0], items.shape[0])
    if items.shape[1] % LANES:
        raise ValueError(f"rows of {items.shape[1]} numbers are not padded to whole lanes")
    cdef Problem problem
    memset(&problem, 0, sizeof(Problem))
    problem.n, problem.rank, problem.weight, problem.lam = items.shape[0], items.shape[1], weight, lam
    if problem.n * problem.rank > 0:
        problem.vectors, problem.offsets = &items[0, 0], &offsets[0]
    return problem


cdef int _fit_all(Problem *problem, Pattern positives, double[:, ::1] users, int threads) except -1:
    """All users of a catalogue."""
    agree("users", users.shape[0], positives.view.n)
    above_ids("items", problem.n, positives.columns)
    cdef Py_ssize_t user, longest = longest_row(positives.view.indptr, positives.view.n)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, problem, longest, NULL)
    cdef Scratch scratch = Scratch(arena.used, threads)
    if longest == 0 or problem.rank == 0:
        return 0
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, problem, longest, NULL)
        for user in prange(positives.view.n, schedule="dynamic", chunksize=4):
            _fit_positives(problem, &positives.view, user, &users[user, 0], &memory)
    return 0


cdef Memory _lay_out(
    Arena *arena, const Problem *problem, Py_ssize_t longest, const TaskPairsView *tasks
) noexcept nogil:
    """Room for any of the users; in pairs n counts the user's items, and without `tasks` those of the catalogue."""
    cdef bint paired = tasks != NULL
    cdef Py_ssize_t n = (longest if paired else problem.n) + BLOCK, rank = problem.rank
    cdef Memory memory
    memset(&memory, 0, sizeof(Memory))
    memory.rows = floats(arena, longest * rank if paired else 0)
    memory.offsets = floats(arena, longest if paired else 0)
    memory.scores = floats(arena, n)
    memory.slope = floats(arena, n)
    memory.degree = floats(arena, n + LANES)
    memory.powers = floats(arena, n if paired else 0)
    memory.moves = floats(arena, n if paired else 0)
    memory.gradient = floats(arena, rank)
    memory.trial = floats(arena, rank)
    memory.trial_gradient = floats(arena, rank)
    memory.made_at = floats(arena, rank)
    memory.direction = floats(arena, rank)
    memory.own_sum = floats(arena, rank)
    memory.other_sum = floats(arena, rank)
    memory.matrix = floats(arena, rank * rank)
    memory.heavy = floats(arena, (longest if paired else 2 * _HEAVY) * rank)
    memory.steps = floats(arena, _KEPT * rank)
    memory.changes = floats(arena, _KEPT * rank)
    memory.products = floats(arena, _KEPT)
    memory.shares = floats(arena, _KEPT)
    if paired:
        memory.windows = lay_out_windows(arena, longest)
        memory.pairs = lay_out_pairs(arena, tasks)
    else:
        memory.rivals = lay_out_rivals(arena, problem.n, longest)
    return memory


cdef void _fit_pairs(
    const Problem *shared, const TaskPairsView *tasks, Py_ssize_t user, double *x, Memory *memory
) noexcept nogil:
    """One user's items gathered, and their vector."""
    cdef Problem problem = shared[0]
    cdef const int32_t *items = tasks.items + tasks.indptr[user]
    cdef Py_ssize_t i, rank = problem.rank
    problem.task = task_of(tasks, user)
    problem.n = problem.task.n
    for i in range(problem.n):
        if i + _AHEAD < problem.n:
            read_ahead(shared.vectors + items[i + _AHEAD] * rank, rank)
        memcpy(memory.rows + i * rank, shared.vectors + items[i] * rank, rank * sizeof(double))
        memory.offsets[i] = shared.offsets[items[i]]
    problem.vectors, problem.offsets = memory.rows, memory.offsets
    in_order(memory.windows.order, problem.n)
    if problem.n > 0:
        _minimize(&problem, x, memory)


cdef void _fit_positives(
    const Problem *shared, const PatternView *positives, Py_ssize_t user, double *x, Memory *memory
) noexcept nogil:
    """One user's vector over a catalogue."""
    cdef Problem problem = shared[0]
    problem.own = positives.columns + positives.indptr[user]
    problem.count = positives.indptr[user + 1] - positives.indptr[user]
    if problem.count > 0 and (problem.kind == _CHOICES or problem.count < problem.n):
        _minimize(&problem, x, memory)


cdef void _minimize(const Problem *problem, double *x, Memory *memory) noexcept nogil:
    """Steps until one is too short to matter; NaN where the objective at the start is no number, or its derivatives.

    Invariant: value, gradient, slope and degree are those at x, and `kept` steps were taken since H0 was made.
    """
    cdef Py_ssize_t k, kept = 0, rank = problem.rank
    cdef int _step
    cdef double value, squared, before = 0.0
    value = _evaluate(problem, x, memory.gradient, memory)
    if not isfinite(value) or not _make_matrix(problem, x, memory):
        for k in range(rank):
            x[k] = NAN
        return
    for _step in range(_STEPS):
        squared = _find_direction(kept, rank, memory)
        if kept == _KEPT or (kept > 0 and squared > problem.stale * before and _is_old(problem, x, memory)):
            _make_matrix(problem, x, memory)
            kept = 0
            squared = _find_direction(kept, rank, memory)
        if squared <= _ENOUGH * problem.lam * dot(x, x, rank):
            for k in range(rank):
                x[k] += memory.direction[k]
            return
        if not _move(problem, x, &value, kept, memory):
            return
        kept += 1
        before = squared


cdef double _evaluate(const Problem *problem, const double *x, double *gradient, Memory *memory) noexcept nogil:
    """The objective at x, with its gradient; scores, slope and degree are left in the memory."""
    cdef Rivals of_user
    cdef double loss, factor = problem.weight
    cdef Py_ssize_t i, k, n = problem.n, rank = problem.rank
    dot_rows(x, problem.vectors, n, rank, memory.scores)
    for i in range(n):
        memory.scores[i] += problem.offsets[i]
    if problem.kind == _PAIRS:
        loss = _pair_loss(problem, memory)
        factor *= 2.0  # slope and degree are halves
    elif problem.kind == _RIVALS:
        of_user = Rivals(problem.loss, memory.scores, n, problem.own, problem.count)
        loss = rivals_loss(&of_user, memory.slope, memory.degree, &memory.rivals)
    else:
        loss = _choice_loss(problem, memory)
    sum_rows(memory.slope, problem.vectors, n, rank, gradient)
    for k in range(rank):
        gradient[k] = factor * gradient[k] + problem.lam * x[k]
    return problem.weight * loss + 0.5 * problem.lam * dot(x, x, rank)


cdef double _pair_loss(const Problem *problem, Memory *memory) noexcept nogil:
    """The loss of the pairs, with half its slope and degree; powers of the scores, if used, stay in the memory."""
    cdef double low = memory.scores[0], high = memory.scores[0]
    cdef Py_ssize_t i, n = problem.n
    memory.by_powers = problem.task.levels == 0 and problem.task.loss == LOGISTIC
    if memory.by_powers:
        for i in range(n):
            low = min(low, memory.scores[i])
            high = max(high, memory.scores[i])
        memory.by_powers = high - low <= WIDEST
    if not memory.by_powers:
        return evaluate(&problem.task, memory.scores, memory.windows, memory.degree, memory.slope, &memory.pairs)
    powers(memory.scores, 0.5 * (low + high), n, memory.powers)
    for i in range(n):
        memory.slope[i] = memory.degree[i] = 0.0
    return _listed_by_powers(&problem.task, memory.powers, memory.slope, memory.degree)


cdef double _listed_by_powers(const Task *task, const double *power, double *slope, double *degree) noexcept nogil:
    """The logistic loss of a list of pairs, of powers of their scores: see rivals.pxd."""
    cdef Py_ssize_t pair, better, worse
    cdef double loss = 0.0, product = 1.0, both, share, curvature
    for pair in range(task.pairs):
        better, worse = task.better[pair], task.worse[pair]
        both = power[better] + power[worse]
        share = power[worse] / both
        curvature = 0.5 * share * (power[better] / both)
        product *= power[better] / both
        if product < 1e-200:
            loss += LN_2 * binary_log(1.0 / product)
            product = 1.0
        slope[better] -= 0.5 * share
        slope[worse] += 0.5 * share
        degree[better] += curvature
        degree[worse] += curvature
    return loss + LN_2 * binary_log(1.0 / product)


cdef double _choice_loss(const Problem *problem, Memory *memory) noexcept nogil:
    """The mean of -ln p over the positives; the slope is p less the share of each positive, the degree is p."""
    cdef Py_ssize_t i, n = problem.n
    cdef double top = memory.scores[0], whole, mean = 0.0, share = 1.0 / <double> problem.count
    for i in range(n):
        top = max(top, memory.scores[i])
    powers(memory.scores, top, n, memory.degree)
    whole = total(memory.degree, n)
    for i in range(n):
        memory.degree[i] /= whole
        memory.slope[i] = memory.degree[i]
    for i in range(problem.count):
        memory.slope[problem.own[i]] -= share
        mean += memory.scores[problem.own[i]] * share
    return LN_2 * binary_log(whole) + (top - mean)


cdef bint _is_old(const Problem *problem, const double *x, Memory *memory) noexcept nogil:
    """Whether H0 at x would be a better one: it is exact for pairs, and else x must have gone a tenth of its length."""
    cdef Py_ssize_t k
    cdef double gone = 0.0
    for k in range(problem.rank):
        gone += (x[k] - memory.made_at[k]) * (x[k] - memory.made_at[k])
    return problem.kind == _PAIRS or gone > _FAR * dot(x, x, problem.rank)


cdef bint _make_matrix(const Problem *problem, const double *x, Memory *memory) noexcept nogil:
    """H0 at x as its Cholesky factor; false if it has none. A trace of it on the diagonal outweighs rounding."""
    cdef Py_ssize_t k, rank = problem.rank
    cdef double trace = 0.0
    memcpy(memory.made_at, x, rank * sizeof(double))
    if problem.kind == _PAIRS:
        _curve_pairs(problem, memory)
    else:
        _curve_catalogue(problem, memory)
    for k in range(rank):
        trace += memory.matrix[k * rank + k]
    for k in range(rank):
        memory.matrix[k * rank + k] += problem.lam + _TRACE * trace
    return factor_positive(memory.matrix, <int> rank) == 0


cdef void _curve_pairs(const Problem *problem, Memory *memory) noexcept nogil:
    """matrix = weight V^T L V, where L has the second derivatives of the pairs' losses by the scores."""
    cdef Py_ssize_t i, k, pair, n = problem.n, rank = problem.rank
    cdef double *product = memory.heavy  # L V, or half its transpose
    cdef double curvature
    if problem.task.levels:
        for k in range(rank):
            for i in range(n):
                memory.moves[i] = problem.vectors[i * rank + k]
            curve(
                &problem.task, memory.scores, memory.windows, memory.degree, memory.moves, product + k * n,
                &memory.pairs,
            )
        multiply(product, problem.vectors, memory.matrix, <int> rank, <int> rank, <int> n)
    else:
        memset(product, 0, n * rank * sizeof(double))
        for pair in range(problem.task.pairs):
            i, k = problem.task.better[pair], problem.task.worse[pair]
            curvature = 0.5 * _curvature_of_pair(problem.task.loss, i, k, memory)
            if curvature != 0.0:
                _add_difference(
                    curvature, problem.vectors + i * rank, problem.vectors + k * rank, product + i * rank,
                    product + k * rank, rank,
                )
        multiply_from_left(
            problem.vectors, product, memory.matrix, <int> rank, <int> rank, <int> n, <int> rank
        )
    for k in range(rank * rank):
        memory.matrix[k] *= 2.0 * problem.weight


cdef inline double _curvature_of_pair(
    Loss loss, Py_ssize_t better, Py_ssize_t worse, Memory *memory
) noexcept nogil:
    """The second derivative of a pair's loss by its margin."""
    cdef double both
    if memory.by_powers:
        both = memory.powers[better] + memory.powers[worse]
        return (memory.powers[better] / both) * (memory.powers[worse] / both)
    return curvature_of(loss, memory.scores[better] - memory.scores[worse])


cdef inline void _add_difference(
    double factor, const double *one, const double *other, double *to_one, double *to_other, Py_ssize_t rank
) noexcept nogil:
    """Add factor (one - other) to the first sum, and subtract it from the second."""
    cdef Py_ssize_t k
    cdef double change
    for k in range(rank):
        change = factor * (one[k] - other[k])
        to_one[k] += change
        to_other[k] -= change


cdef void _curve_catalogue(const Problem *problem, Memory *memory) noexcept nogil:
    """matrix ~ the sum of degree v v^T less what the items have in common, from the items with the largest degrees.

    Where very many are alike, every second, third ... stands for its neighbours. The degrees of the others count as if
    their vectors pointed everywhere alike. A softmax has m m^T in common, the mean of v; pairs of positives and
    rivals have (a c^T + c a^T) / T, the sums of degree v over both sides and the sum of degrees of either: as if a
    pair's second derivative were the product of its items' degrees over T. All this is positive semidefinite.
    """
    cdef Py_ssize_t i, k, every, taken = 0, seen = 0, met = 0, n = problem.n, rank = problem.rank
    cdef double limit, degree, root, whole = total(memory.degree, n), of_own = 0.0, of_others = 0.0, trace = 0.0, rest
    cdef double *row
    cdef double *common
    limit = _limit_of_heavy(memory.degree, n, whole)
    every = sum_above(memory.degree, n, limit).count
    every = 1 if every <= 2 * _HEAVY else every // _SAMPLED + 1
    memset(memory.matrix, 0, rank * rank * sizeof(double))
    memset(memory.own_sum, 0, rank * sizeof(double))
    memset(memory.other_sum, 0, rank * sizeof(double))
    for i in range(n):
        while met < problem.count and problem.own[met] < i:
            met += 1
        if not memory.degree[i] > limit:
            continue
        seen += 1
        if seen % every:
            continue
        degree = memory.degree[i] * <double> every
        root = sqrt(degree)
        row = memory.heavy + taken * rank
        taken += 1
        common = memory.other_sum
        if problem.kind == _RIVALS and met < problem.count and problem.own[met] == i:
            common = memory.own_sum
            of_own += degree
        else:
            of_others += degree
        for k in range(rank):
            row[k] = root * problem.vectors[i * rank + k]
            common[k] += degree * problem.vectors[i * rank + k]
    add_gram(memory.heavy, memory.matrix, <int> taken, <int> rank)
    for k in range(rank):
        trace += memory.matrix[k * rank + k]
    rest = max(0.0, whole - of_own - of_others) / max(of_own + of_others, 1e-300) * trace / <double> rank
    if problem.kind == _RIVALS:
        _subtract_products(
            memory.matrix, memory.own_sum, memory.other_sum, max(0.5 * whole, of_own, of_others), rank
        )
        _subtract_products(
            memory.matrix, memory.other_sum, memory.own_sum, max(0.5 * whole, of_own, of_others), rank
        )
    else:
        _subtract_products(memory.matrix, memory.other_sum, memory.other_sum, max(1.0, of_others), rank)
    for k in range(rank):
        memory.matrix[k * rank + k] += rest


cdef inline double _limit_of_heavy(const double *degree, Py_ssize_t n, double whole) noexcept nogil:
    """A limit above which there are some _HEAVY degrees, or almost all of the whole."""
    cdef double low = 0.0, high = 0.0, middle
    cdef Beyond above
    cdef Py_ssize_t i
    cdef int _bisection
    for i in range(n):
        high = max(high, degree[i])
    for _bisection in range(_BISECTIONS):
        middle = 0.5 * (low + high) if _bisection else high * 1e-6
        above = sum_above(degree, n, middle)
        if above.count < _HEAVY and above.total < _MOST * whole:
            high = middle
        else:
            low = middle
    return low


cdef inline void _subtract_products(
    double *matrix, const double *left, const double *right, double over, Py_ssize_t rank
) noexcept nogil:
    """matrix -= left right^T / over, the upper triangle."""
    cdef Py_ssize_t i, k
    cdef double factor
    if over > 0.0:
        for i in range(rank):
            factor = left[i] / over
            for k in range(i, rank):
                matrix[i * rank + k] -= factor * right[k]


cdef double _find_direction(Py_ssize_t kept, Py_ssize_t rank, Memory *memory) noexcept nogil:
    """direction = -H^-1 gradient, H being H0 corrected by the steps kept (Nocedal 1980); the square of its length."""
    cdef Py_ssize_t k, number
    cdef double *d = memory.direction
    cdef double share
    for k in range(rank):
        d[k] = -memory.gradient[k]
    for number in range(kept - 1, -1, -1):
        share = memory.products[number] * dot(memory.steps + number * rank, d, rank)
        memory.shares[number] = share
        for k in range(rank):
            d[k] -= share * memory.changes[number * rank + k]
    solve_factored(memory.matrix, d, <int> rank)
    for number in range(kept):
        share = memory.shares[number] - memory.products[number] * dot(memory.changes + number * rank, d, rank)
        for k in range(rank):
            d[k] += share * memory.steps[number * rank + k]
    return -dot(memory.gradient, d, rank)


cdef bint _move(const Problem *problem, double *x, double *value, Py_ssize_t kept, Memory *memory) noexcept nogil:
    """Halve the step until the objective falls as Armijo asks, and take it; false if no step is left.

    Near the minimum the value says nothing any more: there it may stay as it is, if at the step's end the function does
    not rise along it by half as much as it fell at its start. Where it still falls, it has fallen, being convex.
    """
    cdef Py_ssize_t k, rank = problem.rank
    cdef int _halving
    cdef double length = 1.0, slope = dot(memory.gradient, memory.direction, rank), trial, product
    cdef double *step = memory.steps + kept * rank
    cdef double *change = memory.changes + kept * rank
    for _halving in range(_HALVINGS):
        for k in range(rank):
            memory.trial[k] = x[k] + length * memory.direction[k]
        trial = _evaluate(problem, memory.trial, memory.trial_gradient, memory)
        if sufficient(trial, value[0], length, slope) or (
            trial <= value[0] + _rounding(problem, value[0], memory)
            and dot(memory.trial_gradient, memory.direction, rank) <= -0.5 * slope
        ):
            for k in range(rank):
                step[k] = memory.trial[k] - x[k]
                change[k] = memory.trial_gradient[k] - memory.gradient[k]
                x[k] = memory.trial[k]
                memory.gradient[k] = memory.trial_gradient[k]
            product = dot(step, change, rank)
            memory.products[kept] = 1.0 / product if product > 0.0 else 0.0
            value[0] = trial
            return True
        length *= 0.5
    return False


cdef double _rounding(const Problem *problem, double value, Memory *memory) noexcept nogil:
    """By how much the value may rise by rounding alone; the squares of scores are terms of the loss of pairs."""
    cdef Py_ssize_t i
    cdef double terms = 1.0
    if problem.kind == _PAIRS:
        for i in range(problem.n):
            terms += memory.degree[i] * memory.scores[i] * memory.scores[i]
    return _ROUNDING * (fabs(value) + problem.weight * terms)
