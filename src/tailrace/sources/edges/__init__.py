"""Where data comes in without a database: webhooks, records over HTTP, metrics."""
