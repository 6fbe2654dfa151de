"""One module per family of requests; each offers `routes(broker)`."""
