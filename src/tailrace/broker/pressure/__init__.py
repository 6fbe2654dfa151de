"""Slow consumers and fast producers: what a topic does when a group cannot keep up."""
