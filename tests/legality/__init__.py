"""Schedules that keep a precondition and schedules that break it, by rule."""
