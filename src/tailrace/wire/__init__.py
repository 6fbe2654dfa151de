"""Kafka's protocol, without a socket: bytes in, messages out, and back.

`apis` is the table of requests, `frames` their headers, `messages/` the generated
codecs, `produce` and `fetch` the two hot paths by hand.
"""
