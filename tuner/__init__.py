"""Static pruning, empirical search, measurement, the schedule database, run-time lookup and the command line."""
