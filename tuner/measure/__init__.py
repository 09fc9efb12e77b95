"""Measurement: candidates run in worker processes, are checked, and are timed until the time is sure; finalists run in turn."""
