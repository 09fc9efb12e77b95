"""From an expression to a loaded kernel; knows nothing of tuning, files or databases."""
