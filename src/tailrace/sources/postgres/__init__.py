"""Postgres from its write-ahead log: pgoutput over psycopg's `pq` layer."""
