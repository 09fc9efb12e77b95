"""sparsetune: sparse tensor algebra that is fast without anyone having to know how."""
