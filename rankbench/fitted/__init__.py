"""A trained model with the data's own ids: it recommends items to users, ranks items, and is saved and loaded."""

from rankbench.fitted.files import load, save
from rankbench.fitted.model import Fitted
from rankbench.fitted.seen import Seen

__all__ = ["Fitted", "Seen", "load", "save"]
