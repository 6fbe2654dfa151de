"""Quotas: who may send and fetch how much, and what happens to those who do more."""
