# Metrics of places (ranks counted from 0), from the ties of one user's candidates. Candidates of equal score are
# tied: they earn what they earn on average over all of their orders, each as likely as any other. The definitions
# of the metrics stand in rankbench/metrics/records.py.

from libc.math cimport NAN
from libc.stdint cimport int64_t

from rankbench.kernels.metrics.codes cimport (
    AUC,
    AVERAGE_PRECISION,
    NDCG,
    NDCG_LINEAR,
    PRECISION,
    RECALL,
    RECIPROCAL_RANK,
)
from rankbench.kernels.metrics.requests cimport Request, Requests, request_at
from rankbench.kernels.shared.checks cimport within
from rankbench.kernels.shared.ranked cimport Item, Tie

cdef struct Places:
    bint whole  # whether all items of the catalogue are candidates
    Py_ssize_t candidates
    Py_ssize_t n  # of them held out
    const double *truth  # of the held-out ones, in any order
    const double *highest  # their highest truths, falling: as many as NDCG needs
    const Item *items  # the held-out ones best first, as far as any cut goes
    const Tie *ties  # best first; those without a held-out item may be missing
    Py_ssize_t n_ties

cdef struct Depth:
    # How far metrics of places look at one user's candidates.
    Py_ssize_t places  # how many of the best candidates; 0: none
    Py_ssize_t highest  # how many of the highest truths; 0: none

cdef extern from "<math.h>" nogil:
    double exp2(double)

cdef extern from "Python.h" nogil:
    const Py_ssize_t PY_SSIZE_T_MAX


cdef inline bint of_places(int code) noexcept nogil:
    """Whether a metric depends on the places of the best candidates alone."""
    return code in (NDCG, NDCG_LINEAR, PRECISION, RECALL, RECIPROCAL_RANK, AVERAGE_PRECISION, AUC)


cdef inline bint of_gains(int code) noexcept nogil:
    """Whether a metric is a share of the best discounted gain."""
    return code in (NDCG, NDCG_LINEAR)


cdef inline Py_ssize_t furthest(Request request) noexcept nogil:
    """How many places a metric of places looks at, at most."""
    if request.code == AUC or request.cut == 0:
        return PY_SSIZE_T_MAX
    return request.cut


cdef inline Depth deepened(Depth depth, Request request) noexcept nogil:
    """The depth that also serves this metric of places; NDCG needs the highest truths for the best order."""
    cdef Py_ssize_t reach = furthest(request)
    return Depth(max(depth.places, reach), max(depth.highest, reach) if of_gains(request.code) else depth.highest)


cdef inline int enough_discounts(Requests requests, Py_ssize_t candidates) except -1:
    """A ValueError unless there is a discount for each place that an NDCG of so many candidates looks at."""
    cdef Py_ssize_t m, places = 0
    cdef Request request
    for m in range(requests.view.n):
        request = request_at(&requests.view, m)
        if of_gains(request.code):
            places = max(places, min(furthest(request), candidates))
    return within("places of NDCG", places, 0, requests.discounts.shape[0])


cdef inline double metric_of_places(const Places *user, Request request, const double *discounts) noexcept nogil:
    """One metric of one user; NaN where it has no value."""
    cdef Py_ssize_t cut = min(request.cut, user.candidates) if request.cut > 0 else user.candidates
    if of_gains(request.code):
        return _dcg_ratio(user, cut, request.code == NDCG_LINEAR, discounts)
    if request.code == PRECISION:
        return _hits(user, cut, request.threshold) / max(cut, request.cut if user.whole else 0)
    if request.code == RECALL:
        return _ratio(_hits(user, cut, request.threshold), relevant_truths(user.truth, user.n, request.threshold))
    if request.code == RECIPROCAL_RANK:
        return _reciprocal_rank(user, cut, request.threshold)
    if request.code == AVERAGE_PRECISION:
        return _average_precision(user, cut, request.threshold)
    if request.code == AUC:
        return _auc(user, request.threshold)
    return NAN  # no metric of places


cdef inline double relevant_truths(const double *truth, Py_ssize_t n, double threshold) noexcept nogil:
    """How many truths reach the threshold."""
    cdef Py_ssize_t i, count = 0
    for i in range(n):
        count += truth[i] >= threshold
    return <double> count


cdef inline double _ratio(double part, double whole) noexcept nogil:
    """part / whole, NaN for a whole of 0."""
    return part / whole if whole > 0.0 else NAN


cdef inline double _gain(double truth, bint linear) noexcept nogil:
    """What an item of this truth earns: 2^truth - 1, or the truth itself; a whole power of 2 needs no library."""
    if linear:
        return truth
    if 0.0 <= truth < 62.0 and <double> <int64_t> truth == truth:
        return <double> ((<int64_t> 1) << <int64_t> truth) - 1.0
    return exp2(truth) - 1.0


cdef inline double _dcg_ratio(
    const Places *user, Py_ssize_t cut, bint linear, const double *discounts
) noexcept nogil:
    """sum over the first places of gain x discount, divided by that of the best order; NaN if that is 0."""
    cdef double ideal = 0.0, found = 0.0, gain = 0.0, share
    cdef Py_ssize_t t, i
    cdef Tie tie
    for i in range(min(cut, user.n)):
        if i == 0 or user.highest[i] != user.highest[i - 1]:
            gain = _gain(user.highest[i], linear)
        ideal += gain * discounts[i]
    for t in range(user.n_ties):
        tie = user.ties[t]
        if tie.place >= cut:
            break
        if tie.size == 1:
            found += _gain(user.items[tie.first].truth, linear) * discounts[tie.place]
            continue
        gain = 0.0
        for i in range(tie.first, tie.end):
            gain += _gain(user.items[i].truth, linear)
        share = 0.0
        for i in range(tie.place, min(tie.place + tie.size, cut)):
            share += discounts[i]
        found += gain / tie.size * share
    return _ratio(found, ideal)


cdef inline double _relevant(const Places *user, Tie tie, double threshold) noexcept nogil:
    """How many items of a tie are relevant."""
    cdef Py_ssize_t i, count = 0
    for i in range(tie.first, tie.end):
        count += user.items[i].truth >= threshold
    return <double> count


cdef inline double _hits(const Places *user, Py_ssize_t cut, double threshold) noexcept nogil:
    """How many relevant items stand on the first `cut` places."""
    cdef double hits = 0.0
    cdef Py_ssize_t t
    cdef Tie tie
    for t in range(user.n_ties):
        tie = user.ties[t]
        if tie.place >= cut:
            break
        hits += _relevant(user, tie, threshold) * min(tie.size, cut - tie.place) / tie.size
    return hits


cdef inline double _reciprocal_rank(const Places *user, Py_ssize_t cut, double threshold) noexcept nogil:
    """1 / place of the first relevant item, 0 beyond the cut; NaN if none is relevant.

    It stands in the first tie with a relevant item: r of m. The chance that it is the j-th there is
    C(m - j, r - 1) / C(m, r): r / m for j = 1, then times (m - j - r + 1) / (m - j) from j to j + 1.
    """
    cdef double expected = 0.0, relevant = 0.0, chance
    cdef Py_ssize_t t, j
    cdef Tie tie = user.ties[0]
    if relevant_truths(user.truth, user.n, threshold) == 0.0:
        return NAN
    for t in range(user.n_ties):
        tie = user.ties[t]
        relevant = _relevant(user, tie, threshold)
        if tie.place >= cut or relevant > 0.0:
            break
    chance = relevant / tie.size
    for j in range(1, min(tie.size, cut - tie.place) + 1):
        if chance == 0.0:
            break
        expected += chance / (tie.place + j)
        if j < tie.size:
            chance *= (tie.size - j - relevant + 1.0) / (tie.size - j)
    return expected


cdef inline double _average_precision(const Places *user, Py_ssize_t cut, double threshold) noexcept nogil:
    """Mean over the relevant items of the share of relevant ones up to their places, 0 beyond the cut.

    In a tie with r relevant of m, after c relevant ones: place j of the tie holds a relevant one with
    chance r / m, and then (j - 1) (r - 1) / (m - 1) relevant ones are expected among those before it there.
    """
    cdef double sum_ = 0.0, earlier = 0.0, relevant, more, in_tie
    cdef Py_ssize_t t, j
    cdef Tie tie
    for t in range(user.n_ties):
        tie = user.ties[t]
        if tie.place >= cut:
            break
        relevant = _relevant(user, tie, threshold)
        if relevant > 0.0:
            more = (relevant - 1.0) / (tie.size - 1) if tie.size > 1 else 0.0
            in_tie = 0.0
            for j in range(1, min(tie.size, cut - tie.place) + 1):
                in_tie += (earlier + 1.0 + (j - 1) * more) / (tie.place + j)
            sum_ += relevant / tie.size * in_tie
            earlier += relevant
    return _ratio(sum_, relevant_truths(user.truth, user.n, threshold))


cdef inline double _auc(const Places *user, double threshold) noexcept nogil:
    """Share of the pairs of a relevant and another candidate with the relevant one first; NaN without any.

    Invariant: `earlier` is how many relevant candidates stand before this tie, `wrong` how many pairs of a
    relevant one and another before it there are up to there, a pair within a tie counting one half.
    """
    cdef double wrong = 0.0, earlier = 0.0, relevant, pairs
    cdef Py_ssize_t t
    cdef Tie tie
    for t in range(user.n_ties):
        tie = user.ties[t]
        relevant = _relevant(user, tie, threshold)
        wrong += relevant * (tie.place - earlier + 0.5 * (tie.size - relevant))
        earlier += relevant
    pairs = earlier * (user.candidates - earlier)
    return 1.0 - wrong / pairs if pairs > 0.0 else NAN
