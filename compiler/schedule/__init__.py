"""The scheduling language: directives as text and values, their application to programs, their preconditions."""
