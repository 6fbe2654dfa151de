"""Stored queries, matched against each event.

language.py   the text of a query → a tree; what is wrong with it, and where
fields.py     the columns a query can name, and what their values are compared with
queries.py    many trees, indexed by the words they need
batch.py      some documents as bit sets: the answer of each leaf for all of them at once
"""
