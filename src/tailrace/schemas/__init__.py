"""What the bytes mean: schemas of three languages, what may follow what, and the subjects of a
registry. Pure: no socket, no log, no clock. `registry/` serves it."""
