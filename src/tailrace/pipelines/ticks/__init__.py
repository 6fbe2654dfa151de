"""Ticks: all views of a project move from one cut of their sources to the next.

A tick is planned from the last committed tick row (`planner`), run as one Spark job
(`job`), and committed by one log transaction that holds the changelog records of all
views and the new tick row (`driver`). What no committed row names never happened.
"""
