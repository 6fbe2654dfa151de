"""A plugin that cannot be imported."""

raise ImportError("it lacks something")
