"""What the commands that train or judge print, and their exit codes: a module for each kind of them."""
