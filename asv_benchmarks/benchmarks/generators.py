"""The time and memory to generate data at about the papers' sizes."""

import numpy as np

from rankbench.data import DATASETS


class Generators:
    """A data set of each kind, with some hundred thousand rows."""

    params = (
        "btl[users=3000]",
        "low-rank[users=6000]",
        "monotone[users=6000]",
        "partial-orders[users=3000,density=0.5]",
        "feature-low-rank[users=3000]",
        "lookalike:ml-20m[ratings=1000000]",
        "lookalike:netflix[ratings=1000000]",
        "lookalike:hetrec2011-ml-2k[features=true]",
        "lookalike:jester[share=0.1]",
    )
    param_names = ("data",)

    def setup(self, name: str) -> None:
        """Make the data set's object, without data."""
        self.source = DATASETS.make(name)

    def time_view(self, name: str) -> None:
        """The time to draw all rows and check them."""
        self.source.view(np.random.default_rng(0))

    def peakmem_view(self, name: str) -> None:
        """The largest resident size of the process."""
        self.source.view(np.random.default_rng(0))
