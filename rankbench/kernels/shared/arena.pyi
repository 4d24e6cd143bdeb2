"""Scratch memory for the threads of a kernel; arena.pxd describes how it is used."""

LINE: int

class Scratch:
    def __init__(self, size: int, threads: int) -> None: ...
