"""The console: one HTTP server for people (the page) and programs (the API)."""
