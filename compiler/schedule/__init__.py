"""The scheduling language: directives as texts and as values, how they change programs, and their preconditions."""
