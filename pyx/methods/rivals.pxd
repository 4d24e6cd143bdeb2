# The mean loss over all pairs of one of a user's positives and another item, of which the positive should be above.
#
# With the logistic loss a pair of scores p and r costs log(1 + e^(r - p)), its derivative by r is
# q = e^r / (e^p + e^r), and the second one is q - q^2. So no pair needs an exponential of its own. The logarithms are
# those of products, whose exponents are counted apart, so that none overflows.
#
# All these are analytic in p, and their nearest poles are pi away from the real line. So the polynomial through K
# Chebyshev nodes has an error of about rho^-K, where rho = pi/w + sqrt(1 + (pi/w)^2) and 2 w is how far the positives'
# scores lie apart: about 30 nodes give all digits. Where there are more positives than that, nodes meet the rivals in
# their place, each with a weight, and the positives' sums are read off the polynomial through the nodes' sums.

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, floats
from rankbench.kernels.shared.lanes cimport dot_any, total
from rankbench.kernels.shared.losses cimport LOGISTIC, MARGINS, NEVER, ONCE, Loss, Outcomes, Parabolas, parabolas_of
from rankbench.kernels.shared.powers cimport LN_2, binary_log, powers

cdef enum:
    BLOCK = 16  # rivals at a time

cdef extern from *:
    """
    #include <string.h>

    #define RANKBENCH_WIDEST 200.0
    #define RANKBENCH_DIGITS 30.0
    #define RANKBENCH_PI 3.14159265358979323846

    typedef double rankbench_four_rivals __attribute__((vector_size(32)));
    typedef unsigned long long rankbench_four_bits __attribute__((vector_size(32)));

    /* Four nodes with the powers `nodes` meet n rivals, a multiple of 16: `by_rival` gets the sums of weight q over the
       nodes, `by_node` those of q over the rivals, and both `squared` ones those of q^2. Returns the sum of
       weight log(node + rival) over all pairs. A rival of power 0 adds nothing but the logarithms of the nodes. */
    static inline double rankbench_meet(
        const double *nodes, const double *weights, const double *rivals, Py_ssize_t n,
        double *by_rival, double *squared_by_rival, double *by_node, double *squared_by_node
    ) {
        rankbench_four_rivals sums[4] = {{0}}, squares[4] = {{0}}, fractions[4];
        rankbench_four_bits exponents[4] = {{0}};
        double logs = 0.0, logs_of_fractions[4];
        for (int i = 0; i < 4; i++)
            fractions[i] = (rankbench_four_rivals) {1.0, 1.0, 1.0, 1.0};
        for (Py_ssize_t start = 0; start < n; start += 16) {
            for (Py_ssize_t k = start; k < start + 16; k += 4) {
                rankbench_four_rivals rival, slope, square, sum[4], q[4], share;
                memcpy(&rival, rivals + k, sizeof rival);
                memcpy(&slope, by_rival + k, sizeof slope);
                memcpy(&square, squared_by_rival + k, sizeof square);
                for (int i = 0; i < 4; i++) {
                    sum[i] = nodes[i] + rival;
                    fractions[i] *= sum[i];
                }
                share = rival / (sum[0] * sum[1]);  /* one division for two pairs */
                q[0] = share * sum[1];
                q[1] = share * sum[0];
                share = rival / (sum[2] * sum[3]);
                q[2] = share * sum[3];
                q[3] = share * sum[2];
                for (int i = 0; i < 4; i++) {
                    rankbench_four_rivals weighted = weights[i] * q[i];
                    slope += weighted;
                    square += weighted * q[i];
                    sums[i] += q[i];
                    squares[i] += q[i] * q[i];
                }
                memcpy(by_rival + k, &slope, sizeof slope);
                memcpy(squared_by_rival + k, &square, sizeof square);
            }
            for (int i = 0; i < 4; i++) {
                rankbench_four_bits bits = (rankbench_four_bits) fractions[i];
                exponents[i] += bits >> 52;
                fractions[i] = (rankbench_four_rivals) ((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
            }
        }
        for (int i = 0; i < 4; i++) {
            double of_node = 0.0;
            fractions[i] -= 1.0;
            memcpy(logs_of_fractions, &fractions[i], sizeof logs_of_fractions);
            rankbench_all_logs_of_one_plus(logs_of_fractions, 4, logs_of_fractions);
            by_node[i] = (sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]);
            squared_by_node[i] = (squares[i][0] + squares[i][1]) + (squares[i][2] + squares[i][3]);
            for (int lane = 0; lane < 4; lane++)
                of_node += logs_of_fractions[lane]
                    + ((double) exponents[i][lane] - 1023.0 * (double) (n / 16)) * RANKBENCH_LN_2;
            logs += weights[i] * of_node;
        }
        return logs;
    }
    """
    double _meet "rankbench_meet" (
        const double *nodes, const double *weights, const double *rivals, Py_ssize_t n,
        double *by_rival, double *squared_by_rival, double *by_node, double *squared_by_node
    ) noexcept nogil
    const double WIDEST "RANKBENCH_WIDEST"  # scores further apart have exponentials whose products may overflow
    const double _DIGITS "RANKBENCH_DIGITS"  # -ln of the polynomial's error
    const double _PI "RANKBENCH_PI"

cdef struct Rivals:
    # One user's scores of all items, and which of these are positives.
    Loss loss
    const double *scores
    Py_ssize_t n
    const int32_t *own  # ascending
    Py_ssize_t count

cdef struct Nodes:
    # Scratch memory for as many nodes as there are positives, in whole lanes.
    double *scores
    double *powers
    double *weights
    double *sums
    double *squares
    double *places  # within -1 and 1
    double *polynomials  # Chebyshev's of one degree, and of the one before
    double *before

cdef struct RivalMemory:
    # Scratch memory: numbers per item, in whole blocks, then numbers per positive.
    double *powers
    double *squares
    Nodes nodes
    Nodes own  # the positives


cdef inline RivalMemory lay_out_rivals(Arena *arena, Py_ssize_t n, Py_ssize_t longest) noexcept nogil:
    """Room for n items and any user's positives."""
    return RivalMemory(
        floats(arena, n + BLOCK), floats(arena, n + BLOCK), _lay_out_nodes(arena, longest + 4),
        _lay_out_nodes(arena, longest + 4),
    )


cdef inline Nodes _lay_out_nodes(Arena *arena, Py_ssize_t n) noexcept nogil:
    return Nodes(
        floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, n),
        floats(arena, n), floats(arena, n),
    )


cdef inline double rivals_loss(
    const Rivals *rivals, double *slope, double *degree, RivalMemory *memory
) noexcept nogil:
    """The mean, its derivatives by the scores, and each item's sum of second derivatives over its pairs.

    There is at least one positive, and one other item. `slope` has room for whole blocks.
    """
    cdef const double *scores = rivals.scores
    cdef double lowest = scores[0], highest = scores[0], found, share
    cdef Py_ssize_t k, n = rivals.n
    for k in range(n):
        lowest = min(lowest, scores[k])
        highest = max(highest, scores[k])
    memset(slope, 0, (n + BLOCK) // BLOCK * BLOCK * sizeof(double))
    memset(degree, 0, n * sizeof(double))
    if rivals.loss == LOGISTIC and highest - lowest <= WIDEST:
        found = _by_powers(rivals, 0.5 * (lowest + highest), slope, degree, memory)
    else:
        found = _pair_by_pair(rivals, slope, degree)
    share = 1.0 / (<double> rivals.count * <double> (n - rivals.count))
    for k in range(n):
        slope[k] *= share
        degree[k] *= share
    return found * share


cdef inline double _by_powers(
    const Rivals *rivals, double middle, double *slope, double *degree, RivalMemory *memory
) noexcept nogil:
    """The logistic loss, four nodes at a time. A positive, and what fills the last block, has the power 0."""
    cdef RivalMemory use = memory[0]
    cdef Nodes nodes = use.nodes
    cdef const int32_t *own = rivals.own
    cdef Py_ssize_t k, n = rivals.n, whole = (n + BLOCK - 1) // BLOCK * BLOCK, count = rivals.count, n_nodes
    cdef double found = 0.0
    powers(rivals.scores, middle, n, use.powers)
    for k in range(n, whole):
        use.powers[k] = 0.0
    for k in range(count):
        use.own.scores[k] = rivals.scores[own[k]] - middle
        use.powers[own[k]] = 0.0
    memset(use.squares, 0, whole * sizeof(double))
    n_nodes = _choose_nodes(&use.own, count, &nodes)
    for k in range(0, n_nodes, 4):
        found += _meet(
            nodes.powers + k, nodes.weights + k, use.powers, whole, slope, use.squares, nodes.sums + k,
            nodes.squares + k,
        )
    for k in range(n_nodes):
        found -= <double> whole * nodes.weights[k] * nodes.scores[k]
    if n_nodes < count:
        _read_off(&nodes, n_nodes, nodes.sums, &use.own, count, use.own.sums)
        _read_off(&nodes, n_nodes, nodes.squares, &use.own, count, use.own.squares)
    else:
        use.own.sums, use.own.squares = nodes.sums, nodes.squares
    for k in range(n):
        degree[k] = slope[k] - use.squares[k]
    for k in range(count):
        slope[own[k]] = -use.own.sums[k]
        degree[own[k]] = use.own.sums[k] - use.own.squares[k]
    return found


cdef inline double _sine(double x) noexcept nogil:
    """sin(x) for |x| <= pi / 2, by its Taylor series up to x^23."""
    cdef double factor = 1.0
    cdef Py_ssize_t k
    for k in range(22, 0, -2):
        factor = 1.0 - factor * x * x / <double> (k * (k + 1))
    return x * factor


cdef inline Py_ssize_t _choose_nodes(Nodes *own, Py_ssize_t count, Nodes *nodes) noexcept nogil:
    """Scores, powers and weights of the nodes, in whole lanes; the positives themselves, unless fewer nodes will do.

    The sum of f over the positives is that of weight f over the nodes for every f that the polynomials can follow. With
    Chebyshev's polynomials T_m and the places u_k of K nodes, weight_k = 2/K sum_m T_m(u_k) sum over positives of T_m,
    the term of m = 0 counting half.
    """
    cdef double low = own.scores[0], high = own.scores[0], middle, half, ratio, moment
    cdef Py_ssize_t k, _degree, n, lanes
    for k in range(count):
        low = min(low, own.scores[k])
        high = max(high, own.scores[k])
    middle, half = 0.5 * (low + high), max(0.5 * (high - low), 1e-6)
    ratio = _PI / half
    n = (<Py_ssize_t> (_DIGITS / (LN_2 * binary_log(ratio + sqrt(1.0 + ratio * ratio)))) + 5) // 4 * 4
    if n < count:
        for k in range(n):
            nodes.places[k] = _sine(_PI * (0.5 - (<double> k + 0.5) / <double> n))
            nodes.scores[k] = middle + half * nodes.places[k]
            nodes.weights[k] = <double> count / <double> n
        for k in range(count):
            own.places[k] = (own.scores[k] - middle) / half
        _first(nodes, n)
        _first(own, count)
        for _degree in range(1, n):
            moment = 2.0 / <double> n * total(own.polynomials, count)
            for k in range(n):
                nodes.weights[k] += moment * nodes.polynomials[k]
            _next(nodes, n)
            _next(own, count)
        lanes = n
    else:
        n, lanes = count, (count + 3) // 4 * 4
        for k in range(lanes):
            nodes.scores[k] = own.scores[k] if k < n else 0.0
            nodes.weights[k] = 1.0 if k < n else 0.0
    powers(nodes.scores, 0.0, lanes, nodes.powers)
    return lanes


cdef inline void _read_off(
    Nodes *nodes, Py_ssize_t n, const double *values, Nodes *own, Py_ssize_t count, double *out
) noexcept nogil:
    """Fill `out` with the polynomial through these values at the nodes, at the places of the positives."""
    cdef Py_ssize_t k, _degree
    cdef double coefficient = total(values, n) / <double> n
    for k in range(count):
        out[k] = coefficient
    _first(nodes, n)
    _first(own, count)
    for _degree in range(1, n):
        coefficient = 2.0 / <double> n * dot_any(nodes.polynomials, values, n)
        for k in range(count):
            out[k] += coefficient * own.polynomials[k]
        _next(nodes, n)
        _next(own, count)


cdef inline void _first(Nodes *nodes, Py_ssize_t n) noexcept nogil:
    """Chebyshev's polynomials of the first degree, and before them of degree zero."""
    cdef Py_ssize_t k
    for k in range(n):
        nodes.before[k] = 1.0
        nodes.polynomials[k] = nodes.places[k]


cdef inline void _next(Nodes *nodes, Py_ssize_t n) noexcept nogil:
    """Those of the next degree: T_(m + 1) = 2 u T_m - T_(m - 1)."""
    cdef Py_ssize_t k
    cdef double value
    for k in range(n):
        value = 2.0 * nodes.places[k] * nodes.polynomials[k] - nodes.before[k]
        nodes.before[k] = nodes.polynomials[k]
        nodes.polynomials[k] = value


cdef inline double _pair_by_pair(const Rivals *rivals, double *slope, double *degree) noexcept nogil:
    """Any loss."""
    cdef Py_ssize_t i, k, place, met, count
    cdef int32_t j
    cdef double found = 0.0
    cdef double margins[MARGINS]
    cdef Py_ssize_t others[MARGINS]
    cdef Parabolas pairs
    for i in range(rivals.count):
        j, met, place = rivals.own[i], 0, 0
        while place < rivals.n:
            count = 0
            while place < rivals.n and count < MARGINS:
                if met < rivals.count and rivals.own[met] == place:
                    met += 1
                else:
                    others[count], margins[count] = place, rivals.scores[j] - rivals.scores[place]
                    count += 1
                place += 1
            parabolas_of(rivals.loss, Outcomes(&margins[0], ONCE, NEVER), count, 0, &pairs)
            for k in range(count):
                found += pairs.values[k]
                slope[j] += pairs.slopes[k]
                slope[others[k]] -= pairs.slopes[k]
                degree[j] += pairs.curvatures[k]
                degree[others[k]] += pairs.curvatures[k]
    return found
