"""Arrays in files: npz archives, arrays mapped into memory, and checks of what was read."""
