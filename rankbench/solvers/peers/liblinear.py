"""A linear RankSVM on differences of item features, by LIBLINEAR in scikit-learn (Fan et al. 2008)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons
from rankbench.methods import peers
from rankbench.methods.factors import seed_of
from rankbench.methods.tasks import checked_features
from rankbench.models import ItemScores
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Weight


@dataclass(frozen=True)
class LIBLINEAR(Checked):
    """`sklearn.svm.LinearSVC` on the differences x_better - x_worse of all comparisons: one order for all users.

    min_w 1/2 |w|^2 + C sum over comparisons of the squared hinge (or the hinge) of w . (x_j - x_k), the problem of
    `ranksvm-joint`, with every comparison listed as a row. `form` is the primal by a trust region Newton method, or
    the dual by coordinate descent, which the hinge needs. A step is the whole fit, to the package's own `tolerance`.
    """

    C: Weight = 1.0
    loss: Literal["squared-hinge", "hinge"] = "squared-hinge"
    form: Literal["primal", "dual"] = "primal"
    tolerance: Annotated[float, Limits(low=1e-12, high=1)] = 1e-4
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    title: ClassVar = "LIBLINEAR"
    needs: ClassVar = Needs(("sklearn.svm",), peers.INSTALL)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss == "hinge" and self.form == "primal":
            raise UserError("loss=hinge has no primal form in LIBLINEAR", subject="LIBLINEAR", remedy="add form=dual")

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Comparisons, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """One model."""
        checked_threads(threads)
        package = peers.required("sklearn.svm", "LIBLINEAR")
        features = checked_features(train.item_features)
        if not len(train):
            yield Step(ItemScores(np.zeros(train.n_items)))
            return
        items = peers.table_of(features)
        signs = np.where(np.arange(len(train)) % 2, -1.0, 1.0)  # it needs two classes, and a sign changes no loss
        rows = items[train.better] - items[train.worse]
        rows = scipy.sparse.diags_array(signs) @ rows if scipy.sparse.issparse(rows) else rows * signs[:, None]
        if len(train) == 1:
            rows, signs = peers.with_zero_row(rows), np.array([1.0, -1.0])
        trained = package.LinearSVC(
            C=self.C,
            loss=self.loss.replace("-", "_"),
            dual=self.form == "dual",
            tol=self.tolerance,
            fit_intercept=False,
            max_iter=100_000,
            random_state=seed_of(rng) % 2**31,
        )
        with peers.fitting("LIBLINEAR"):
            trained.fit(rows, signs)
        yield Step(ItemScores(features.times(trained.coef_[0])))
