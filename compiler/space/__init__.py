"""The schedule space of an expression as an object: counted, listed, sampled and searched without being stored."""
