"""From scheduled concrete notation to the loop IR: loops by iteration lattices, and the assembly of results."""
