"""Summaries of many values that aggregates keep instead of them: theta, tuple and KLL sketches,
frequent items, histograms, bitmaps, vectors. `kinds` makes aggregates of them, `approximate`
decides where a sketch serves and where exact values are kept.
"""
