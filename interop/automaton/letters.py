"""The inputs: what a letter of the alphabet puts on the wire.

A letter is a function that sends. It returns False where it cannot, for example because it has no
keys yet; then nothing is sent and the output is `(not sent)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from aioquic import tls
from aioquic.buffer import Buffer
from aioquic.quic import crypto, packet
from aioquic.quic.crypto import CryptoContext
from aioquic.tls import Epoch

from wire import ALPN, SERVER_NAME, Wire, crypto_frame, frame, stream_frame

Letter = Callable[[Wire], bool]
PARAMETERS = tls.ExtensionType.QUIC_TRANSPORT_PARAMETERS
PING = b"\x01"
# Ends after which timers decide what an implementation answers.
ENDS_HERE = {"close-transport", "close-application", "key-update-twice"}
# Time in seconds that a letter takes. An end may refuse a second key update for three times the
# probe timeout (RFC 9001 section 6.5).
TAKES = {"wait": 0.3, "key-update": 0.3}


def parameters(wire: Wire) -> packet.QuicTransportParameters:
    """Returns the transport parameters of our end, without those that only servers send."""
    return packet.QuicTransportParameters(
        max_idle_timeout=30_000,
        initial_max_data=1 << 20,
        initial_max_stream_data_bidi_local=1 << 18,
        initial_max_stream_data_bidi_remote=1 << 18,
        initial_max_stream_data_uni=1 << 18,
        initial_max_streams_bidi=16,
        initial_max_streams_uni=16,
        active_connection_id_limit=4,
        initial_source_connection_id=wire.local_cid,
    )


def encoded(params: packet.QuicTransportParameters) -> bytes:
    buf = Buffer(capacity=2048)
    packet.push_quic_transport_parameters(buf, params)
    return buf.data


def client_session() -> tls.Context:
    session = tls.Context(
        is_client=True, alpn_protocols=[ALPN], server_name=SERVER_NAME, verify_mode=0
    )
    session._supported_groups = [tls.Group.X25519]
    session._cipher_suites = [tls.CipherSuite.AES_128_GCM_SHA256]
    session.new_session_ticket_cb = lambda _: None
    return session


def hello(session: tls.Context, extensions: list[tuple[int, bytes]]) -> bytes:
    """Returns the ClientHello of a session."""
    session.handshake_extensions = extensions
    out = {epoch: Buffer(capacity=4096) for epoch in Epoch}
    session.handle_message(b"", out)
    return out[Epoch.INITIAL].data


def other_hello(wire: Wire, change: dict[str, object] | None) -> bytes:
    """Returns the ClientHello of another session, with changed transport parameters or none."""
    if change is None:
        return hello(client_session(), [])
    params = parameters(wire)
    for name, value in change.items():
        setattr(params, name, value)
    return hello(client_session(), [(PARAMETERS, encoded(params))])


def on(epoch: Epoch, payload: bytes, *, times: int = 1, wants_ack: bool = True) -> Letter:
    """Makes a letter that sends a packet with these frames, the same packet `times` times."""

    def send(wire: Wire) -> bool:
        if not wire.can_send(epoch):
            return False
        pad = 1200 if epoch == Epoch.INITIAL else 0
        datagram = wire.protect(epoch, payload, pad=pad, wants_ack=wants_ack)
        for _ in range(times):
            # A packet without frames cannot be padded; zeros behind it are no packet.
            wire.send(datagram.ljust(pad, b"\0"))
        return True

    return send


def initial(payload: Callable[[Wire], bytes], **options: object) -> Letter:
    def send(wire: Wire) -> bool:
        if not wire.can_send(Epoch.INITIAL):
            return False
        settings: dict[str, object] = {"pad": 1200, **options}
        wire.send(wire.protect(Epoch.INITIAL, payload(wire), **settings))  # type: ignore[arg-type]
        return True

    return send


def with_wrong_keys(epoch: Epoch) -> Letter:
    def send(wire: Wire) -> bool:
        keys = CryptoContext()
        suite = tls.CipherSuite.AES_128_GCM_SHA256
        keys.setup(cipher_suite=suite, secret=os.urandom(32), version=1)
        pad = 1200 if epoch in (Epoch.INITIAL, Epoch.ZERO_RTT) else 100
        # Its packet number must not be missing later.
        number = wire.next_pn[epoch]
        wire.send(wire.protect(epoch, PING, keys=keys, pad=pad, wants_ack=False))
        wire.next_pn[epoch] = number
        return True

    return send


def key_update(times: int) -> Letter:
    """Makes a letter that updates our keys and sends a PING with them, `times` times."""

    def send(wire: Wire) -> bool:
        if not wire.can_send(Epoch.ONE_RTT):
            return False
        keys = wire.send_keys[Epoch.ONE_RTT]
        for _ in range(times):
            crypto.apply_key_phase(keys, crypto.next_key_phase(keys), "local_update")
            wire.send(wire.protect(Epoch.ONE_RTT, PING))
        return True

    return send


def reserved_bits(epoch: Epoch) -> Letter:
    def send(wire: Wire) -> bool:
        if not wire.can_send(epoch):
            return False
        wire.send(wire.protect(epoch, PING, reserved=3, pad=100))
        return True

    return send


def flight(epoch: Epoch, change: Callable[[bytes], bytes] = lambda data: data) -> Letter:
    """Makes a letter that sends the TLS bytes of a level, changed."""

    def send(wire: Wire) -> bool:
        data = wire.crypto_out[epoch]
        if not wire.can_send(epoch) or not data:
            return False
        wire.send(wire.protect(epoch, crypto_frame(change(data))))
        return True

    return send


def first(letter: Letter) -> Letter:
    """Allows a letter only before any hello: two hellos in one CRYPTO stream are noise."""

    def send(wire: Wire) -> bool:
        if wire.hello_sent or not letter(wire):
            return False
        wire.hello_sent = True
        return True

    return send


def late(letter: Letter) -> Letter:
    """Allows a letter only after our end of the handshake.

    An end may keep earlier packets for later (RFC 9001 section 5.7), and then every kept packet
    makes a state. `EARLY` has the letters that show whether it does.
    """
    return lambda wire: wire.handshake_sent and letter(wire)


EARLY = {"ping", "stream", "key-update", "wrong-keys", "wait", "reserved-bits"}


def finished(wire: Wire) -> bool:
    if not flight(Epoch.HANDSHAKE)(wire):
        return False
    wire.may_ack_application = wire.handshake_sent = True
    return True


def finished_and_stream(wire: Wire) -> bool:
    """Sends the client's Finished and a stream in one datagram, the stream first."""
    data = wire.crypto_out[Epoch.HANDSHAKE]
    if not data or not wire.can_send(Epoch.ONE_RTT):
        return False
    stream = wire.protect(Epoch.ONE_RTT, stream_frame(0, b"hello", fin=True))
    wire.send(stream)
    wire.send(wire.protect(Epoch.HANDSHAKE, crypto_frame(data)))
    wire.may_ack_application = wire.handshake_sent = True
    return True


def half_hello(second: bool) -> Callable[[Wire], bytes]:
    def payload(wire: Wire) -> bytes:
        data = wire.crypto_out[Epoch.INITIAL]
        half = len(data) // 2
        wire.hello_sent = True
        return crypto_frame(data[half:], half) if second else crypto_frame(data[:half])

    return payload


def whole_hello(wire: Wire) -> bytes:
    wire.hello_sent = True
    return crypto_frame(wire.crypto_out[Epoch.INITIAL])


def small_hello(wire: Wire) -> bytes:
    """Returns the ClientHello for a datagram that servers must drop."""
    return crypto_frame(wire.crypto_out[Epoch.INITIAL])


def unknown_version(wire: Wire) -> bool:
    wire.send(wire.protect(Epoch.INITIAL, PING, version=0x0A0A0A0A, pad=1200, wants_ack=False))
    return True


def flip_last(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def nothing(_wire: Wire) -> bool:
    return True


def frames_of(space: Epoch) -> dict[str, Letter]:
    """Returns the letters that both long-header spaces have."""
    name = {Epoch.INITIAL: "initial", Epoch.HANDSHAKE: "handshake"}[space]
    return {
        f"{name}-ping": on(space, PING),
        f"{name}-empty": on(space, b""),
        f"{name}-stream": on(space, stream_frame(0, b"hello")),
        f"{name}-unknown-frame": on(space, frame(0x3F)),
        f"{name}-ack-unsent": on(space, frame(0x02, 1000, 0, 0, 0), wants_ack=False),
        f"{name}-reserved-bits": reserved_bits(space)
        if space != Epoch.INITIAL
        else initial(lambda _: PING, reserved=3),
        f"{name}-close": on(space, frame(0x1C, 0, 0, 0), wants_ack=False),
        f"{name}-close-application": on(space, frame(0x1D, 0, 0), wants_ack=False),
        f"{name}-crypto-far": on(space, crypto_frame(b"x", 1 << 20)),
        f"{name}-wrong-keys": with_wrong_keys(space),
    }


NEW_ID = bytes(range(8))


def application(local_bidi: int, local_uni: int) -> dict[str, Letter]:
    """Returns the 1-RTT letters of an end with these first streams. The peer's are those ^ 1."""
    peer_bidi, peer_uni = local_bidi ^ 1, local_uni ^ 1
    one = Epoch.ONE_RTT
    payloads = {
        "ping": PING,
        "empty": b"",
        "unknown-frame": frame(0x3F),
        "crypto-empty": crypto_frame(b""),
        "crypto-unexpected": crypto_frame(b"\x01\x00\x00\x00"),
        "crypto-far": crypto_frame(b"x", 1 << 20),
        "stream": stream_frame(local_bidi, b"hello", fin=True),
        "stream-other-final-size": stream_frame(local_bidi, b"hello, you", fin=True),
        "stream-over-window": stream_frame(local_bidi + 4, b"x", 1 << 40),
        "stream-over-limit": stream_frame(local_bidi + 4 * (1 << 40), b"x"),
        "stream-of-peer-unopened": stream_frame(peer_bidi + 400, b"x"),
        "stream-uni-of-peer": stream_frame(peer_uni + 400, b"x"),
        "reset-before-end": frame(0x04, local_bidi, 0, 1),
        "reset-uni-of-peer": frame(0x04, peer_uni + 400, 0, 0),
        "stop-sending-our-uni": frame(0x05, local_uni, 0),
        "stop-sending-peer-unopened": frame(0x05, peer_bidi + 400, 0),
        "max-stream-data-our-uni": frame(0x11, local_uni, 1 << 30),
        "max-stream-data-peer-unopened": frame(0x11, peer_bidi + 400, 1 << 30),
        "stream-data-blocked-uni-of-peer": frame(0x15, peer_uni + 400, 0),
        "max-streams-too-many": frame(0x12, (1 << 60) + 1),
        "streams-blocked-too-many": frame(0x16, (1 << 60) + 1),
        "new-cid-retires-too-much": frame(0x18, 1, 2, b"\x08" + NEW_ID + bytes(16)),
        "new-cid-empty": frame(0x18, 1, 0, b"\x00" + bytes(16)),
        "new-cid-conflict": frame(0x18, 1, 0, b"\x08" + NEW_ID + bytes(16))
        + frame(0x18, 1, 0, b"\x08" + NEW_ID[::-1] + bytes(16)),
        "new-cid-over-limit": b"".join(
            frame(0x18, 1 + i, 0, b"\x08" + NEW_ID[:7] + bytes([i]) + bytes([i]) * 16)
            for i in range(64)
        ),
        "retire-cid-unknown": frame(0x19, 1000),
        "retire-cid-in-use": frame(0x19, 0),
        "path-challenge": frame(0x1A, bytes(8)),
        "path-response-unasked": frame(0x1B, b"unasked!"),
        "new-token-empty": frame(0x07, 0),
        "datagram": frame(0x31, 1, b"x"),
        "data-after-padding": bytes(300) + PING,
        "frame-type-too-long": b"\x40\x01",
    }
    letters = {name: on(one, payload) for name, payload in payloads.items()}
    letters |= {
        "ack-unsent": on(one, frame(0x02, 100_000, 0, 0, 0), wants_ack=False),
        "ack-below-zero": on(one, frame(0x02, 0, 0, 0, 5), wants_ack=False),
        "path-challenge-twice": on(one, frame(0x1A, b"twice..."), times=2),
        "key-update": key_update(1),
        "key-update-twice": key_update(2),
        "reserved-bits": reserved_bits(one),
        "wrong-keys": with_wrong_keys(one),
        "close-transport": on(one, frame(0x1C, 0, 0, 0), wants_ack=False),
        "close-application": on(one, frame(0x1D, 7, 0), wants_ack=False),
        "wait": nothing,
    }
    return {name: one if name in EARLY else late(one) for name, one in letters.items()}


def bad_hello(change: dict[str, object] | None) -> Letter:
    return first(initial(lambda wire: crypto_frame(other_hello(wire, change))))


def against_server() -> dict[str, Letter]:
    """Returns the alphabet of a client that breaks rules."""
    start = Epoch.INITIAL
    letters: dict[str, Letter] = {
        "hello": initial(whole_hello),
        "hello-first-half": initial(half_hello(False)),
        "hello-second-half": initial(half_hello(True)),
        "hello-small-datagram": initial(small_hello, pad=0),
        "hello-invalid-token": initial(whole_hello, token=b"not your token"),
        "hello-no-parameters": bad_hello(None),
        "hello-bad-exponent": bad_hello({"ack_delay_exponent": 21}),
        "hello-server-parameter": bad_hello({"stateless_reset_token": bytes(16)}),
        "hello-wrong-cid-parameter": bad_hello({"initial_source_connection_id": b"another"}),
        "initial-crypto-not-hello": first(on(start, crypto_frame(b"\x14\x00\x00\x20" + bytes(32)))),
        "unknown-version": unknown_version,
        "zero-rtt-wrong-keys": with_wrong_keys(Epoch.ZERO_RTT),
        "finished": finished,
        "finished-after-stream": finished_and_stream,
        "finished-wrong": flight(Epoch.HANDSHAKE, flip_last),
        "finished-twice-in-one": flight(Epoch.HANDSHAKE, lambda data: data + data),
        "handshake-done": late(on(Epoch.ONE_RTT, frame(0x1E))),
        "new-token": late(on(Epoch.ONE_RTT, frame(0x07, 4, b"mine"))),
    }
    letters |= frames_of(Epoch.INITIAL)
    letters |= frames_of(Epoch.HANDSHAKE)
    letters |= application(0, 2)
    return letters


def start_client(wire: Wire) -> None:
    """Prepares the connection of a client: its keys and its ClientHello."""
    wire.set_initial_keys(wire.peer_cid)
    extension = (PARAMETERS, encoded(parameters(wire)))
    wire.crypto_out[Epoch.INITIAL] = hello(wire.tls, [extension])


# The alphabet against clients


def answer_hello(wire: Wire, change: dict[str, object] | None) -> bool:
    """Answers the ClientHello, with changed transport parameters or none; at most once."""
    if not wire.client_hello:
        return False
    params = parameters(wire)
    params.original_destination_connection_id = wire.original_cid
    params.stateless_reset_token = bytes(range(16))
    if wire.retried:
        params.retry_source_connection_id = wire.local_cid
    for name, value in (change or {}).items():
        setattr(params, name, value)
    extension = (PARAMETERS, encoded(params))
    wire.tls.handshake_extensions = [] if change is None else [extension]
    data, wire.client_hello = wire.client_hello, b""
    return wire.feed_tls(data) is None


def is_answered(wire: Wire) -> bool:
    return bool(wire.crypto_out[Epoch.INITIAL]) or answer_hello(wire, {})


def server_hello(answer: Callable[[Wire], bool], *, second_half: bool = False) -> Letter:
    """Makes a letter that sends the ServerHello or its second half."""

    def send(wire: Wire) -> bool:
        if not answer(wire):
            return False
        data = wire.crypto_out[Epoch.INITIAL]
        start = len(data) // 2 if second_half else 0
        wire.send(wire.protect(Epoch.INITIAL, crypto_frame(data[start:], start), pad=1200))
        wire.hello_sent = True
        return True

    return send


def with_parameter(name: str, value: object) -> Letter:
    return server_hello(lambda wire: answer_hello(wire, {name: value}))


def flight_part(pick: Callable[[bytes], tuple[int, bytes]]) -> Letter:
    """Makes a letter that sends a part of the server's Handshake flight."""

    def send(wire: Wire) -> bool:
        if not wire.can_send(Epoch.HANDSHAKE):
            return False
        offset, data = pick(wire.crypto_out[Epoch.HANDSHAKE])
        wire.send(wire.protect(Epoch.HANDSHAKE, crypto_frame(data, offset)))
        wire.handshake_sent |= offset + len(data) >= len(wire.crypto_out[Epoch.HANDSHAKE])
        return True

    return send


def wrong_signature(data: bytes) -> tuple[int, bytes]:
    """Flips a bit of the CertificateVerify."""
    at = 0
    while data[at] != tls.HandshakeType.CERTIFICATE_VERIFY:
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
    end = at + 4 + int.from_bytes(data[at + 1 : at + 4], "big")
    return 0, data[: end - 1] + bytes([data[end - 1] ^ 1]) + data[end:]


def without_certificate(data: bytes) -> tuple[int, bytes]:
    """Leaves out Certificate and CertificateVerify."""
    extensions = 4 + int.from_bytes(data[1:4], "big")
    at = extensions
    while data[at] != tls.HandshakeType.FINISHED:
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
    return 0, data[:extensions] + data[at:]


def flight_before_hello(wire: Wire) -> bool:
    """Sends the Handshake packet first, then the ServerHello that gives its keys."""
    if not is_answered(wire):
        return False
    flight_data = crypto_frame(wire.crypto_out[Epoch.HANDSHAKE])
    wire.send(wire.protect(Epoch.HANDSHAKE, flight_data))
    hello_data = crypto_frame(wire.crypto_out[Epoch.INITIAL])
    wire.send(wire.protect(Epoch.INITIAL, hello_data, pad=1200))
    wire.handshake_sent = wire.hello_sent = True
    return True


def retry(token: bytes, *, good_tag: bool = True) -> Letter:
    def send(wire: Wire) -> bool:
        data = packet.encode_quic_retry(
            version=1,
            source_cid=wire.local_cid,
            destination_cid=wire.peer_cid,
            original_destination_cid=wire.original_cid,
            retry_token=token,
        )
        wire.send(data if good_tag else flip_last(data))
        return True

    return send


def version_negotiation(versions: list[int]) -> Letter:
    def send(wire: Wire) -> bool:
        data = packet.encode_quic_version_negotiation(
            source_cid=wire.original_cid,
            destination_cid=wire.peer_cid,
            supported_versions=versions,
        )
        wire.send(data)
        return True

    return send


def against_client() -> dict[str, Letter]:
    """Returns the alphabet of a server that breaks rules."""
    one = Epoch.ONE_RTT
    letters: dict[str, Letter] = {
        "hello": server_hello(is_answered),
        "hello-second-half": server_hello(is_answered, second_half=True),
        "hello-no-parameters": server_hello(lambda wire: answer_hello(wire, None)),
        "hello-wrong-original-cid": with_parameter(
            "original_destination_connection_id", b"another!"
        ),
        "hello-wrong-cid-parameter": with_parameter("initial_source_connection_id", b"another!"),
        "hello-retry-cid-parameter": with_parameter("retry_source_connection_id", b"another!"),
        "hello-bad-exponent": with_parameter("ack_delay_exponent", 21),
        "flight": flight_part(lambda data: (0, data)),
        "flight-first-half": flight_part(lambda data: (0, data[: len(data) // 2])),
        "flight-second-half": flight_part(lambda data: (len(data) // 2, data[len(data) // 2 :])),
        "flight-wrong-finished": flight_part(lambda data: (0, flip_last(data))),
        "flight-wrong-signature": flight_part(wrong_signature),
        "flight-without-certificate": flight_part(without_certificate),
        "flight-before-hello": flight_before_hello,
        "initial-token": initial(lambda _: PING, token=b"a server has no token"),
        "initial-crypto-not-hello": first(
            on(Epoch.INITIAL, crypto_frame(b"\x14\x00\x00\x20" + bytes(32)))
        ),
        "retry": retry(b"a token"),
        "retry-wrong-tag": retry(b"a token", good_tag=False),
        "retry-empty": retry(b""),
        "version-negotiation": version_negotiation([0x0A0A0A0A]),
        "version-negotiation-with-ours": version_negotiation([0x0A0A0A0A, 1]),
        "handshake-done": late(on(one, frame(0x1E))),
        "new-token": late(on(one, frame(0x07, 4, b"mine"))),
        "stream-answer": late(on(one, stream_frame(0, b"12345678", fin=True))),
    }
    letters |= frames_of(Epoch.INITIAL)
    letters |= frames_of(Epoch.HANDSHAKE)
    letters |= application(1, 3)
    return letters
