"""Who comes in: certificates, log-in over SASL, users, tokens. What they may do is decided elsewhere."""
