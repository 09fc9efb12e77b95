"""The asymptotic cost model of Ahrens et al.: task sets, their containment, and the frontier of a schedule space."""
