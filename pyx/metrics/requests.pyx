"""The metrics that a kernel is asked for, as one argument."""

from libc.stdint cimport INT32_MAX, int32_t

from rankbench.kernels.metrics.codes cimport KNOWN
from rankbench.kernels.shared.checks cimport within
from rankbench.kernels.shared.rows cimport first_id, first_value


cdef class Requests:
    """Metrics by their codes, with the places that count (0: all) and the threshold of each, and NDCG's discounts.

    A metric without a cut or a threshold ignores its own. `discounts` holds the weight of each place, for as many
    places as any user has candidates, or as the largest cut of an NDCG allows.
    """

    def __init__(
        self,
        *,
        const int32_t[::1] codes,
        const int32_t[::1] cuts,
        const double[::1] thresholds,
        const double[::1] discounts,
    ):
        """Take the arrays, without a copy."""
        if not codes.shape[0] == cuts.shape[0] == thresholds.shape[0]:
            raise ValueError("each metric must have a code, a cut and a threshold")
        for code in codes:
            if not 0 <= code < KNOWN:
                raise ValueError(f"no metric has the code {code}: they are 0 to {KNOWN - 1}")
        for cut in cuts:
            within("cut", cut, 0, INT32_MAX)
        self.codes, self.cuts, self.thresholds, self.discounts = codes, cuts, thresholds, discounts
        self.view = RequestView(
            codes.shape[0], first_id(codes), first_id(cuts), first_value(thresholds), first_value(discounts)
        )
