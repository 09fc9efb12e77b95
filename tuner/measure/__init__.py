"""Measurement: candidates run in worker processes, checked, timed until sure, finalists in turn."""
