"""ListTransactions: generated from Apache Kafka 4.3.1's definitions by codegen/generate.py; do not edit."""

# mypy: ignore-errors

from __future__ import annotations

from struct import Struct, pack, unpack_from

from tailrace.wire.message import (
    ELEMENTS_LIMIT,
    NEW,
    TAGS_LIMIT,
    TOO_MANY_ELEMENTS,
    Message,
    fail,
    read_long_varint,
    read_varint,
    skip_tags,
    write_bytes,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
    write_varint,
)

_struct_ih = Struct(">ih")
_read_ih = _struct_ih.unpack_from
_write_ih = _struct_ih.pack
_struct_q = Struct(">q")
_read_q = _struct_q.unpack_from
_write_q = _struct_q.pack


class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern",)

    def __init__(
        self,
        state_filters: list[str] = NEW,
        producer_id_filters: list[int] = NEW,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is NEW else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is NEW else producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern


class TransactionState(Message):
    __slots__ = ("transactional_id", "producer_id", "transaction_state",)

    def __init__(
        self,
        transactional_id: str = '',
        producer_id: int = 0,
        transaction_state: str = '',
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states",)

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = NEW,
        transaction_states: list[TransactionState] = NEW,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is NEW else unknown_state_filters
        self.transaction_states: list[TransactionState] = [] if transaction_states is NEW else transaction_states


def _decode_list_transactions_request_0(b: memoryview, p: int = 0) -> ListTransactionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("state_filters is null")
    if n > end - p:
        raise fail("state_filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    state_filters_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("state_filters is null")
        q = p + n
        if q > end:
            raise fail("state_filters past the end")
        state_filters_1_each = str(b[p:q], "utf-8")
        p = q
        state_filters_1.append(state_filters_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("producer_id_filters is null")
    if n * 8 > end - p:
        raise fail("producer_id_filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    producer_id_filters_1 = list(unpack_from(f">{n}q", b, p))
    p += 8 * n
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListTransactionsRequest(state_filters_1, producer_id_filters_1, -1, None)


def _decode_list_transactions_request_1(b: memoryview, p: int = 0) -> ListTransactionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("state_filters is null")
    if n > end - p:
        raise fail("state_filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    state_filters_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("state_filters is null")
        q = p + n
        if q > end:
            raise fail("state_filters past the end")
        state_filters_1_each = str(b[p:q], "utf-8")
        p = q
        state_filters_1.append(state_filters_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("producer_id_filters is null")
    if n * 8 > end - p:
        raise fail("producer_id_filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    producer_id_filters_1 = list(unpack_from(f">{n}q", b, p))
    p += 8 * n
    (duration_filter_1,) = _read_q(b, p)
    p += 8
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListTransactionsRequest(state_filters_1, producer_id_filters_1, duration_filter_1, None)


def _decode_list_transactions_request_2(b: memoryview, p: int = 0) -> ListTransactionsRequest:
    end = len(b)
    left = ELEMENTS_LIMIT
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("state_filters is null")
    if n > end - p:
        raise fail("state_filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    state_filters_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("state_filters is null")
        q = p + n
        if q > end:
            raise fail("state_filters past the end")
        state_filters_1_each = str(b[p:q], "utf-8")
        p = q
        state_filters_1.append(state_filters_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("producer_id_filters is null")
    if n * 8 > end - p:
        raise fail("producer_id_filters has more elements than bytes")
    left -= n
    if left < 0:
        raise fail(TOO_MANY_ELEMENTS)
    producer_id_filters_1 = list(unpack_from(f">{n}q", b, p))
    p += 8 * n
    (duration_filter_1,) = _read_q(b, p)
    p += 8
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        transactional_id_pattern_1 = None
    else:
        q = p + n
        if q > end:
            raise fail("transactional_id_pattern past the end")
        transactional_id_pattern_1 = str(b[p:q], "utf-8")
        p = q
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListTransactionsRequest(state_filters_1, producer_id_filters_1, duration_filter_1, transactional_id_pattern_1)


DECODE_LIST_TRANSACTIONS_REQUEST = {
    0: _decode_list_transactions_request_0,
    1: _decode_list_transactions_request_1,
    2: _decode_list_transactions_request_2,
}


def _encode_list_transactions_request_0(m: ListTransactionsRequest, out: bytearray) -> None:
    each_1 = m.state_filters
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    each_2 = m.producer_id_filters
    write_varint(out, len(each_2) + 1)
    out += pack(f">{len(each_2)}q", *each_2)
    out.append(0)


def _encode_list_transactions_request_1(m: ListTransactionsRequest, out: bytearray) -> None:
    each_1 = m.state_filters
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    each_2 = m.producer_id_filters
    write_varint(out, len(each_2) + 1)
    out += pack(f">{len(each_2)}q", *each_2)
    out += _write_q(m.duration_filter)
    out.append(0)


def _encode_list_transactions_request_2(m: ListTransactionsRequest, out: bytearray) -> None:
    each_1 = m.state_filters
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    each_2 = m.producer_id_filters
    write_varint(out, len(each_2) + 1)
    out += pack(f">{len(each_2)}q", *each_2)
    out += _write_q(m.duration_filter)
    write_compact_nullable_string(out, m.transactional_id_pattern)
    out.append(0)


ENCODE_LIST_TRANSACTIONS_REQUEST = {
    0: _encode_list_transactions_request_0,
    1: _encode_list_transactions_request_1,
    2: _encode_list_transactions_request_2,
}


def _decode_list_transactions_response_0(b: memoryview, p: int = 0) -> ListTransactionsResponse:
    end = len(b)
    throttle_time_ms_1, error_code_1 = _read_ih(b, p)
    p += 6
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("unknown_state_filters is null")
    if n > end - p:
        raise fail("unknown_state_filters has more elements than bytes")
    unknown_state_filters_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("unknown_state_filters is null")
        q = p + n
        if q > end:
            raise fail("unknown_state_filters past the end")
        unknown_state_filters_1_each = str(b[p:q], "utf-8")
        p = q
        unknown_state_filters_1.append(unknown_state_filters_1_each)
    n = b[p] - 1
    p += 1
    if n > 126:
        n, p = read_long_varint(b, p - 1)
        n -= 1
    if n < 0:
        raise fail("transaction_states is null")
    if n * 11 > end - p:
        raise fail("transaction_states has more elements than bytes")
    transaction_states_1 = []
    for _ in range(n):
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("transactional_id is null")
        q = p + n
        if q > end:
            raise fail("transactional_id past the end")
        transactional_id_2 = str(b[p:q], "utf-8")
        p = q
        (producer_id_2,) = _read_q(b, p)
        p += 8
        n = b[p] - 1
        p += 1
        if n > 126:
            n, p = read_long_varint(b, p - 1)
            n -= 1
        if n < 0:
            raise fail("transaction_state is null")
        q = p + n
        if q > end:
            raise fail("transaction_state past the end")
        transaction_state_2 = str(b[p:q], "utf-8")
        p = q
        if b[p]:
            p = skip_tags(b, p)
        else:
            p += 1
        transaction_states_1.append(TransactionState(transactional_id_2, producer_id_2, transaction_state_2))
    if b[p]:
        p = skip_tags(b, p)
    else:
        p += 1
    return ListTransactionsResponse(throttle_time_ms_1, error_code_1, unknown_state_filters_1, transaction_states_1)


DECODE_LIST_TRANSACTIONS_RESPONSE = {
    0: _decode_list_transactions_response_0,
    1: _decode_list_transactions_response_0,
    2: _decode_list_transactions_response_0,
}


def _encode_list_transactions_response_0(m: ListTransactionsResponse, out: bytearray) -> None:
    out += _write_ih(m.throttle_time_ms, m.error_code)
    each_1 = m.unknown_state_filters
    write_varint(out, len(each_1) + 1)
    for each_1_m in each_1:
        write_compact_string(out, each_1_m)
    each_2 = m.transaction_states
    write_varint(out, len(each_2) + 1)
    for each_2_m in each_2:
        write_compact_string(out, each_2_m.transactional_id)
        out += _write_q(each_2_m.producer_id)
        write_compact_string(out, each_2_m.transaction_state)
        out.append(0)
    out.append(0)


ENCODE_LIST_TRANSACTIONS_RESPONSE = {
    0: _encode_list_transactions_response_0,
    1: _encode_list_transactions_response_0,
    2: _encode_list_transactions_response_0,
}
