"""From scheduled concrete notation to the loop IR: iterators, iteration lattices, assembly of results."""
