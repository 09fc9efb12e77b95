"""The subcommands of ``tune-kernel``, a module each."""
