"""`python -m rankbench` is `rankbench`."""

from rankbench.cli import main

if __name__ == "__main__":
    main()
