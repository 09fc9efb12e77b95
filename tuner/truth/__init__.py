"""Truth tables: what schedules take that were drawn over a space and measured, and searches in such a table instead of on hardware."""
