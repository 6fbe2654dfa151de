"""Who calls the log: over the Kafka protocol, or in this process.

`writer`, `admin` and `fetcher` are light synchronous clients on our own wire, used by
capture, ticks and views; `log` holds what users get from `tr.connect` and `tr.open`.
"""
