"""The public calls that join compiler, data files and tuner: what each needs is imported when it is called."""
