"""The block of scratch memory that the threads of a kernel share out; how it is used stands in arena.pxd."""

class Scratch:
    def __init__(self, size: int, threads: int) -> None: ...
