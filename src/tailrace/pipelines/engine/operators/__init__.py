"""The stateful steps of a view: plain classes, each with the layout of its state on top."""
