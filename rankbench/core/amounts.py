"""How many there are of something, in words."""


def amount(number: int, what: str) -> str:
    """A number with what it counts: 1 step, 2,000 steps."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
