from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.wire.scram import (
    MECHANISMS,
    ScramClient,
    ScramError,
    ScramServer,
    make_credential,
    read_first,
)

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)


def test_the_example_of_rfc_7677() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = client.final(challenge)
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(name=NAMES, password=NAMES)
def test_a_client_with_the_password_gets_in_and_knows_the_server(
    mechanism: str, name: str, password: str
) -> None:
    credential = make_credential(mechanism, password.encode(), iterations=10)
    client = ScramClient(mechanism, name, password)
    first = read_first(client.first())
    assert (first.username, first.token) == (name, False)
    server = ScramServer(first, credential)
    client.verify(server.finish(client.final(server.challenge())))


@given(password=NAMES, other=NAMES)
def test_another_password_does_not(password: str, other: str) -> None:
    if password == other:
        other += "x"
    server_side = make_credential("SCRAM-SHA-256", password.encode(), iterations=10)
    client = ScramClient("SCRAM-SHA-256", "u", other)
    server = ScramServer(read_first(client.first()), server_side)
    with pytest.raises(ScramError, match="proof is wrong"):
        server.finish(client.final(server.challenge()))


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = ScramClient("SCRAM-SHA-256", "u", "right")
    server = ScramServer(
        read_first(client.first()), make_credential("SCRAM-SHA-256", b"right", iterations=10)
    )
    client.final(server.challenge())
    for answer in (b"v=AAAA", b"", b"e=other-error", b"v=%%"):
        with pytest.raises(ScramError):
            client.verify(answer)


def test_a_proof_is_of_no_use_a_second_time() -> None:
    credential = make_credential("SCRAM-SHA-256", b"p", iterations=10)
    client = ScramClient("SCRAM-SHA-256", "u", "p")
    first = read_first(client.first())
    once = ScramServer(first, credential)
    final = client.final(once.challenge())
    once.finish(final)
    with pytest.raises(ScramError, match="nonce"):
        ScramServer(first, credential).finish(final)


def test_delegation_tokens_say_so() -> None:
    assert read_first(ScramClient("SCRAM-SHA-256", "id", "mac", token=True).first()).token


@pytest.mark.parametrize(
    "message",
    [
        b"", b"n", b"n,,", b"p=tls-unique,,n=u,r=x", b"n,,r=x", b"n,,n=u", b"n,,n=u,r=", b"\xff",
        b"n,,m=must,n=u,r=x", b"n,a=other,n=u,r=x", b"n,,n=u=v,r=x",
    ],
)  # fmt: skip
def test_what_is_no_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(ScramError):
        read_first(message)


@pytest.mark.parametrize(
    "challenge",
    [
        b"", b"r=mine,s=AAAA,i=4096", b"r=other1,s=AAAA,i=4096", b"r=mine1,s=%,i=4096",
        b"r=mine1,s=AAAA,i=x", b"r=mine1,s=AAAA,i=0", b"r=mine1,s=AAAA,i=99999999",
    ],
)  # fmt: skip
def test_a_challenge_that_is_none_or_costs_too_much_is_refused(challenge: bytes) -> None:
    with pytest.raises(ScramError):
        ScramClient("SCRAM-SHA-256", "u", "p", nonce="mine").final(challenge)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_scram_error(message: bytes) -> None:
    credential = make_credential("SCRAM-SHA-512", b"p", iterations=1)
    first = read_first(b"n,,n=u,r=x")
    with pytest.raises(ScramError):
        ScramServer(first, credential).finish(message)
    try:
        read_first(message)
    except ScramError:
        pass


def test_a_credential_shows_nothing_of_what_it_keeps() -> None:
    credential = make_credential("SCRAM-SHA-256", b"secret", salt=b"s" * 16, iterations=10)
    assert repr(credential) == "ScramCredential(mechanism='SCRAM-SHA-256', iterations=10)"
