"""Who serves the log: sockets, routing, handlers, coordinators."""
