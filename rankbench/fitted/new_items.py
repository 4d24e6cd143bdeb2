"""Features of items that come after training, as a matrix below those of training."""

from typing import Any

import numpy as np
import scipy.sparse

from rankbench.core.errors import UserError


def matrix_of(features: Any) -> Any:
    """Item features as a matrix of finite numbers."""
    try:
        sparse = scipy.sparse.issparse(features)
        if np.iscomplexobj(features):
            raise TypeError("complex numbers would be cut")
        found = scipy.sparse.csr_array(features, dtype=np.float64) if sparse else np.asarray(features, np.float64)
    except (ValueError, TypeError):
        raise UserError("the features are no numbers", remedy="give a matrix of numbers, a row per new item") from None
    if not np.isfinite(found.data if scipy.sparse.issparse(found) else found).all():
        raise UserError("the features hold NaN or infinite values", remedy="fill or drop them first")
    return found


def stacked(known: Any, new: Any) -> Any:
    """The rows of both matrices, sparse if the first is."""
    if scipy.sparse.issparse(known):
        return scipy.sparse.csr_array(scipy.sparse.vstack([known, scipy.sparse.csr_array(new)]))
    return np.vstack([known, (new.toarray() if scipy.sparse.issparse(new) else new).astype(known.dtype)])
