"""Truth tables: the measured times of schedules drawn from a space, and searches that run in such a table instead of on hardware."""
