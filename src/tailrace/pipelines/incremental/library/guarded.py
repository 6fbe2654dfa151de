"""AES as Spark calls Java's ciphers, raise_error, and the one row of a scalar subquery.

GCM has a vector of 12 bytes and a tag of 16 behind the data, CBC a vector of 16, ECB none; the
vector stands before what was encrypted. CBC and ECB pad by PKCS #7.
"""

from __future__ import annotations

from typing import Any

from tailrace.pipelines.errors import EvaluationError
from tailrace.pipelines.incremental.functions import KEEPS_NULL, simple

MODES = {"GCM": ("NONE", 12), "CBC": ("PKCS", 16), "ECB": ("PKCS", 0)}
_BLOCK, _TAG = 16, 16


def available() -> bool:
    """Whether the package that computes them is installed."""
    try:
        import cryptography.hazmat.primitives.ciphers  # noqa: F401
    except ImportError:
        return False
    return True


def checked_mode(mode: str, padding: str) -> str:
    """The mode in capitals; EvaluationError for a pair that Spark does not have."""
    name = mode.upper()
    if name not in MODES or padding.upper() not in (MODES[name][0], "DEFAULT"):
        raise EvaluationError(
            f"there is no AES-{mode} with the padding {padding}",
            hint="('GCM', 'NONE'), ('CBC', 'PKCS') or ('ECB', 'PKCS')",
        )
    return name


def _cipher(key: bytes, mode: Any) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    if len(key) not in (16, 24, 32):
        raise EvaluationError(f"an AES key has 16, 24 or 32 bytes, not {len(key)}")
    return Cipher(algorithms.AES(key), mode)


def _encrypt(
    data: bytes, key: bytes, mode: str, padding: str, vector: bytes, extra: bytes = b""
) -> bytes:
    from cryptography.hazmat.primitives.ciphers import modes

    name = checked_mode(mode, padding)
    if name != "GCM" and extra:
        raise EvaluationError(f"AES-{name} takes no additional data")
    wanted = MODES[name][1]
    if name == "ECB":
        if vector:
            raise EvaluationError("AES-ECB takes no initialization vector")
        return _run(_cipher(key, modes.ECB()).encryptor(), _padded(data))
    if len(vector) != wanted:
        raise EvaluationError(
            f"the initialization vector of AES-{name} has {wanted} bytes, not {len(vector)}",
            hint="without one the answer would be another each time",
        )
    if name == "CBC":
        return vector + _run(_cipher(key, modes.CBC(vector)).encryptor(), _padded(data))
    encryptor = _cipher(key, modes.GCM(vector)).encryptor()
    encryptor.authenticate_additional_data(extra)
    return vector + _run(encryptor, data) + bytes(encryptor.tag)


def _decrypt(
    data: bytes, key: bytes, mode: str = "GCM", padding: str = "DEFAULT", extra: bytes = b""
) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import modes

    name = checked_mode(mode, padding)
    wanted = MODES[name][1]
    vector, rest = data[:wanted], data[wanted:]
    if len(vector) < wanted or (name == "GCM" and len(rest) < _TAG):
        raise EvaluationError(f"{len(data)} bytes are too few for AES-{name}")
    if name == "GCM":
        decryptor = _cipher(key, modes.GCM(vector, rest[-_TAG:])).decryptor()
        decryptor.authenticate_additional_data(extra)
        try:
            return _run(decryptor, rest[:-_TAG])
        except InvalidTag as error:
            raise EvaluationError(
                "this was not encrypted with that key and that additional data"
            ) from error
    cipher = _cipher(key, modes.ECB() if name == "ECB" else modes.CBC(vector))
    if len(rest) % _BLOCK:
        raise EvaluationError(f"AES-{name} encrypts into blocks of {_BLOCK} bytes")
    return _unpadded(_run(cipher.decryptor(), rest)) if rest else b""


def _run(context: Any, data: bytes) -> bytes:
    return bytes(context.update(data) + context.finalize())


def _padded(data: bytes) -> bytes:
    missing = _BLOCK - len(data) % _BLOCK
    return data + bytes([missing]) * missing


def _unpadded(data: bytes) -> bytes:
    count = data[-1]
    if not 1 <= count <= _BLOCK or data[-count:] != bytes([count]) * count:
        raise EvaluationError("this was not encrypted with that key")
    return data[:-count]


def _try_decrypt(*arguments: Any) -> bytes | None:
    try:
        return _decrypt(*arguments)
    except EvaluationError:
        return None


simple("aes_encrypt", _encrypt)
simple("aes_decrypt", _decrypt)
simple("try_aes_decrypt", _try_decrypt)


def _raise(message: str | None) -> None:
    raise EvaluationError("null" if message is None else message, hint="the SQL raises it")


simple("raise_error", _raise)
KEEPS_NULL.add("raise_error")


def one_row(rows: int | None, value: object) -> object:
    """The value of a subquery that has `rows` rows (NULL: none)."""
    if rows is not None and rows > 1:
        raise EvaluationError(
            "scalar subquery has more than one row",
            hint="aggregate it, or add a condition that leaves one row",
        )
    return value


simple("one_row", one_row)
KEEPS_NULL.add("one_row")
