"""The exit codes of the command line."""

OK = 0
FAILED = 1  # what was asked for was done, and something in it failed, differs or was found
USAGE = 2  # a wrong name, value or file: nothing was done
INTERRUPTED = 130  # Ctrl-C
