"""Figures that are published in ``results/``: what is measured, how, and the pages made of it."""
