"""The public calls that join compiler, data files and tuner; each imports what it needs when it is called."""
