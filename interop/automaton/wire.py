"""QUIC packets made and read one by one, for an end that breaks rules on purpose.

aioquic gives packet protection and TLS. Its connection is not used: it would refuse to send most
of what a probe has to send.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from aioquic import tls
from aioquic.buffer import Buffer, BufferReadError, encode_uint_var
from aioquic.quic import crypto, packet
from aioquic.quic.crypto import CryptoContext
from aioquic.tls import Epoch

VERSION = 1
CID_LEN = 8
ALPN = "hybriq-interop"
SERVER_NAME = "localhost"
# An endpoint may delay an acknowledgement by 25 ms (RFC 9000 section 18.2, the default).
ANSWER_TIME = 0.075
SILENT_TIME = 0.05
QUIET_TIME = 0.02
# On a busy machine the peer gets more time, until it is idle.
LONGEST_TIME = 5.0
PACKET_NAMES = {Epoch.INITIAL: "Initial", Epoch.HANDSHAKE: "Handshake", Epoch.ONE_RTT: "1-RTT"}
LONG_TYPES = {Epoch.INITIAL: 0, Epoch.ZERO_RTT: 1, Epoch.HANDSHAKE: 2}

varint = encode_uint_var


def frame(kind: int, *fields: int | bytes) -> bytes:
    """Encodes a frame: integers become variable-length integers, bytes are copied."""
    parts = [field if isinstance(field, bytes) else varint(field) for field in fields]
    return varint(kind) + b"".join(parts)


def crypto_frame(data: bytes, offset: int = 0) -> bytes:
    return frame(0x06, offset, len(data), data)


def stream_frame(stream: int, data: bytes, offset: int = 0, *, fin: bool = False) -> bytes:
    return frame(0x0E | int(fin), stream, offset, len(data), data)


# Fields after the type: v is a variable-length integer, a number is a count of bytes.
FRAMES: dict[int, tuple[str, str]] = {
    0x04: ("RESET_STREAM", "vvv"),
    0x05: ("STOP_SENDING", "vv"),
    0x10: ("MAX_DATA", "v"),
    0x11: ("MAX_STREAM_DATA", "vv"),
    0x12: ("MAX_STREAMS", "v"),
    0x13: ("MAX_STREAMS", "v"),
    0x14: ("DATA_BLOCKED", "v"),
    0x15: ("STREAM_DATA_BLOCKED", "vv"),
    0x16: ("STREAMS_BLOCKED", "v"),
    0x17: ("STREAMS_BLOCKED", "v"),
    0x19: ("RETIRE_CONNECTION_ID", "v"),
    0x1A: ("PATH_CHALLENGE", "8"),
    0x1B: ("PATH_RESPONSE", "8"),
    0x1E: ("HANDSHAKE_DONE", ""),
}


@dataclass(frozen=True)
class Frame:
    """A received frame: its name, what tells it from a retransmission, and its content."""

    name: str
    identity: tuple[object, ...]
    data: bytes = b""
    offset: int = 0
    numbers: tuple[int, ...] = ()


def read_frames(payload: bytes) -> list[Frame]:
    """Decodes the frames of a packet, without PADDING."""
    buf = Buffer(data=payload)
    frames = []
    while not buf.eof():
        kind = buf.pull_uint_var()
        if kind == 0:
            continue
        frames.append(_read_frame(kind, buf))
    return frames


def _read_frame(kind: int, buf: Buffer) -> Frame:
    if kind == 0x01:
        return Frame("PING", ())
    if kind in (0x02, 0x03):
        ranges, _ = packet.pull_ack_frame(buf)
        if kind == 0x03:
            for _ in range(3):
                buf.pull_uint_var()
        return Frame("ACK", (), numbers=tuple(n for one in ranges for n in one))
    if kind == 0x06:
        offset = buf.pull_uint_var()
        data = buf.pull_bytes(buf.pull_uint_var())
        return Frame("CRYPTO", (offset, len(data)), data, offset)
    if kind == 0x07:
        return Frame("NEW_TOKEN", (buf.pull_bytes(buf.pull_uint_var()),))
    if 0x08 <= kind <= 0x0F:
        stream = buf.pull_uint_var()
        offset = buf.pull_uint_var() if kind & 4 else 0
        length = buf.pull_uint_var() if kind & 2 else buf.capacity - buf.tell()
        data = buf.pull_bytes(length)
        fin = bool(kind & 1)
        name = f"STREAM({stream})" if not fin else f"STREAM({stream})+FIN"
        return Frame(name, (stream, offset, length, fin), data, offset)
    if kind == 0x18:
        sequence = buf.pull_uint_var()
        buf.pull_uint_var()
        buf.pull_bytes(buf.pull_uint8())
        return Frame("NEW_CONNECTION_ID", (sequence,), buf.pull_bytes(16))
    if kind in (0x1C, 0x1D):
        code = buf.pull_uint_var()
        if kind == 0x1C:
            buf.pull_uint_var()
        reason = buf.pull_bytes(buf.pull_uint_var())
        name = f"CLOSE({code:#x})" if kind == 0x1C else f"APPLICATION_CLOSE({code:#x})"
        return Frame(name, (code,), reason)
    if kind in (0x30, 0x31):
        length = buf.pull_uint_var() if kind == 0x31 else buf.capacity - buf.tell()
        return Frame("DATAGRAM", (buf.pull_bytes(length),))
    if kind not in FRAMES:
        raise ValueError(f"unknown frame {kind:#x}")
    name, layout = FRAMES[kind]
    values: list[object] = [kind]
    for field in layout:
        values.append(buf.pull_uint_var() if field == "v" else buf.pull_bytes(int(field)))
    return Frame(name, tuple(values))


class CryptoStream:
    """The received CRYPTO bytes of one encryption level, put in order."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.read = 0

    def add(self, offset: int, data: bytes) -> bytes:
        """Adds a piece and returns the bytes that are new and in order."""
        if len(data) > len(self.pieces.get(offset, b"")):
            self.pieces[offset] = data
        ready = b""
        for start in sorted(self.pieces):
            piece = self.pieces[start]
            if start <= self.read < start + len(piece):
                ready += piece[self.read - start :]
                self.read = start + len(piece)
        return ready


class Wire:
    """One connection seen from our end: keys, packet numbers and the TLS session."""

    def __init__(
        self,
        sock: socket.socket,
        session: tls.Context,
        *,
        is_client: bool,
        is_idle: Callable[[], bool],
    ) -> None:
        self.sock = sock
        # Returns true if the peer has read all it was sent and waits for something new.
        self.is_idle = is_idle
        self.tls = session
        self.is_client = is_client
        self.local_cid = os.urandom(CID_LEN)
        self.peer_cid = os.urandom(CID_LEN)
        self.original_cid = self.peer_cid
        self.peer_address: tuple[str, int] | None = None
        self.send_keys: dict[Epoch, CryptoContext] = {}
        self.recv_keys: dict[Epoch, CryptoContext] = {}
        self.next_pn = dict.fromkeys(Epoch, 0)
        self.received: dict[Epoch, set[int]] = {epoch: set() for epoch in Epoch}
        self.to_ack: dict[Epoch, bool] = dict.fromkeys(Epoch, False)
        self.acked: dict[Epoch, set[int]] = {epoch: set() for epoch in Epoch}
        self.crypto_in = {epoch: CryptoStream() for epoch in Epoch}
        # TLS bytes that our end has to send, in order; the letters choose when.
        self.crypto_out: dict[Epoch, bytes] = dict.fromkeys(Epoch, b"")
        self.seen: set[tuple[Epoch, str, tuple[object, ...]]] = set()
        self.undecrypted: list[bytes] = []
        self.reset_tokens: set[bytes] = set()
        self.reasons: list[str] = []
        # Packets sent in the current step which the peer should acknowledge.
        self.expected: set[tuple[Epoch, int]] = set()
        # True once the peer closed or both ends may have forgotten the connection.
        self.over = False
        self.may_ack_application = not is_client
        # True once our end sent bytes of a hello, and its last TLS bytes of the handshake.
        self.hello_sent = False
        self.handshake_sent = False
        self.client_hello = b""
        self.retried = False
        session.update_traffic_key_cb = self._on_traffic_key

    # Keys and TLS

    def set_initial_keys(self, cid: bytes) -> None:
        pair = crypto.CryptoPair()
        pair.setup_initial(cid=cid, is_client=self.is_client, version=VERSION)
        self.send_keys[Epoch.INITIAL] = pair.send
        self.recv_keys[Epoch.INITIAL] = pair.recv

    def _on_traffic_key(
        self, direction: tls.Direction, epoch: Epoch, suite: tls.CipherSuite, secret: bytes
    ) -> None:
        keys = CryptoContext()
        keys.setup(cipher_suite=suite, secret=secret, version=VERSION)
        to = self.send_keys if direction == tls.Direction.ENCRYPT else self.recv_keys
        to[epoch] = keys

    def feed_tls(self, data: bytes) -> str | None:
        """Hands bytes to TLS and returns an alert's name if it refused them."""
        out = {epoch: Buffer(capacity=16384) for epoch in Epoch}
        try:
            self.tls.handle_message(data, out)
        except tls.Alert as alert:
            return type(alert).__name__
        for epoch, buf in out.items():
            self.crypto_out[epoch] += buf.data
        return None

    # Sending

    def protect(
        self,
        epoch: Epoch,
        payload: bytes,
        *,
        token: bytes = b"",
        version: int = VERSION,
        reserved: int = 0,
        pad: int = 0,
        keys: CryptoContext | None = None,
        wants_ack: bool = True,
    ) -> bytes:
        """Makes a packet with the next packet number. `pad` is the least size of the packet."""
        keys = keys or self.send_keys[epoch]
        pn = self.next_pn[epoch]
        self.next_pn[epoch] += 1
        if payload and pad:
            ids = 2 + len(self.peer_cid) + CID_LEN
            header_len = 5 + ids + len(varint(len(token))) + len(token) + 2 + 4
            payload += bytes(max(0, pad - header_len - len(payload) - 16))
        elif len(payload) in (1, 2, 3):
            payload += bytes(3)
        if epoch == Epoch.ONE_RTT:
            first = 0x43 | reserved << 3 | keys.key_phase << 2
            header = bytes([first]) + self.peer_cid
        else:
            first = 0xC3 | LONG_TYPES[epoch] << 4 | reserved << 2
            header = bytes([first]) + version.to_bytes(4, "big")
            header += bytes([len(self.peer_cid)]) + self.peer_cid
            header += bytes([CID_LEN]) + self.local_cid
            if epoch == Epoch.INITIAL:
                header += varint(len(token)) + token
            header += (0x4000 | len(payload) + 4 + 16).to_bytes(2, "big")
        header += pn.to_bytes(4, "big")
        if wants_ack:
            self.expected.add((epoch, pn))
        return keys.encrypt_packet(header, payload, pn)

    def can_send(self, epoch: Epoch) -> bool:
        return epoch in self.send_keys

    def send(self, datagram: bytes) -> None:
        try:
            if self.peer_address is None:
                self.sock.send(datagram)
            else:
                self.sock.sendto(datagram, self.peer_address)
        except ConnectionRefusedError:
            pass

    # Receiving

    def collect(self, patience: float | None = None) -> list[tuple[Epoch | None, str]]:
        """Reads until the peer is silent; returns the new events, without acknowledgements."""
        start = time.monotonic()
        last = start
        events: list[tuple[Epoch | None, str]] = []
        while True:
            now = time.monotonic()
            waits_for_ack = any(pn not in self.acked[epoch] for epoch, pn in self.expected)
            limit = ANSWER_TIME if waits_for_ack else SILENT_TIME
            if patience is not None:
                limit = patience
            deadline = start + limit
            if last > start and not (waits_for_ack and patience is None and now < deadline):
                deadline = last + QUIET_TIME if patience is None else deadline
            is_done = now >= deadline and (self.is_idle() or now > start + LONGEST_TIME)
            if is_done and not select.select([self.sock], [], [], 0)[0]:
                return events
            ready, _, _ = select.select([self.sock], [], [], max(deadline - now, 0.002))
            if not ready:
                continue
            try:
                datagram, address = self.sock.recvfrom(65536)
            except ConnectionRefusedError:
                continue
            last = time.monotonic()
            if not self.is_client:
                self.peer_address = address
            events += self._on_datagram(datagram)
            if self.over:
                return events

    def _on_datagram(self, datagram: bytes) -> list[tuple[Epoch | None, str]]:
        events: list[tuple[Epoch | None, str]] = []
        rest = datagram
        while rest:
            try:
                header = packet.pull_quic_header(Buffer(data=rest), host_cid_length=CID_LEN)
            except (ValueError, BufferReadError):
                if datagram[-16:] in self.reset_tokens:
                    events.append((None, "StatelessReset"))
                    self.over = True
                break
            one, rest = rest[: header.packet_length], rest[header.packet_length :]
            if header.packet_type == packet.QuicPacketType.VERSION_NEGOTIATION:
                events.append((None, "VersionNegotiation"))
                break
            if header.packet_type == packet.QuicPacketType.RETRY:
                events.append((None, "Retry"))
                break
            if not self.is_client and header.packet_type == packet.QuicPacketType.INITIAL:
                self._on_client_initial(header)
            if header.source_cid:
                self.peer_cid = header.source_cid
            if datagram[-16:] in self.reset_tokens:
                events.append((None, "StatelessReset"))
                self.over = True
                break
            events += self._on_packet(one)
            progress = True
            while progress and self.undecrypted:
                waiting, self.undecrypted = self.undecrypted, []
                for one in waiting:
                    events += self._on_packet(one)
                progress = len(self.undecrypted) < len(waiting)
        return events

    def _on_client_initial(self, header: packet.QuicHeader) -> None:
        """Takes the keys of a client's first Initial, and of its first one after a Retry."""
        if Epoch.INITIAL not in self.send_keys:
            self.original_cid = header.destination_cid
            self.set_initial_keys(header.destination_cid)
        elif header.token and not self.retried and header.destination_cid == self.local_cid:
            self.retried = True
            self.set_initial_keys(header.destination_cid)
            self.seen = {one for one in self.seen if one[0] != Epoch.INITIAL}

    def _on_packet(self, data: bytes) -> list[tuple[Epoch | None, str]]:
        buf = Buffer(data=data)
        header = packet.pull_quic_header(buf, host_cid_length=CID_LEN)
        kinds = packet.QuicPacketType
        epochs = {kinds.INITIAL: Epoch.INITIAL, kinds.HANDSHAKE: Epoch.HANDSHAKE}
        epoch = epochs.get(header.packet_type, Epoch.ONE_RTT)
        keys = self.recv_keys.get(epoch)
        if keys is None:
            self.undecrypted.append(data)
            return []
        if header.packet_type == kinds.ONE_RTT:
            offset = 1 + CID_LEN
        else:
            # The packet number follows the length field.
            buf.seek(1 + 4 + 1 + len(header.destination_cid) + 1 + len(header.source_cid))
            if epoch == Epoch.INITIAL:
                buf.pull_bytes(buf.pull_uint_var())
            buf.pull_uint_var()
            offset = buf.tell()
        expected = max(self.received[epoch], default=-1) + 1
        try:
            _, payload, pn, updated = keys.decrypt_packet(data, offset, expected)
        except crypto.CryptoError:
            return []
        if updated:
            crypto.apply_key_phase(keys, crypto.next_key_phase(keys), "remote_update")
        if pn in self.received[epoch]:
            return []
        self.received[epoch].add(pn)
        return self._on_frames(epoch, read_frames(payload))

    def _on_frames(self, epoch: Epoch, frames: list[Frame]) -> list[tuple[Epoch | None, str]]:
        events: list[tuple[Epoch | None, str]] = []
        for one in frames:
            if one.name == "ACK":
                self.acked[epoch].update(one.numbers)
                continue
            if "CLOSE(" in one.name:
                self.reasons.append(one.data.decode(errors="replace"))
                events.append((epoch, one.name))
                self.over = True
                continue
            self.to_ack[epoch] = True
            # Probes and retransmissions depend on timers, so they are no output.
            is_known = (epoch, one.name, one.identity) in self.seen
            if one.name == "PING" or (is_known and one.name != "PATH_RESPONSE"):
                continue
            self.seen.add((epoch, one.name, one.identity))
            if one.name == "NEW_CONNECTION_ID":
                self.reset_tokens.add(one.data)
            if one.name == "CRYPTO":
                ready = self.crypto_in[epoch].add(one.offset, one.data)
                # A server keeps the ClientHello until a letter chooses how to answer it.
                if ready and not self.is_client and epoch == Epoch.INITIAL:
                    self.client_hello += ready
                    ready = b""
                alert = self.feed_tls(ready) if ready else None
                if alert is not None:
                    events.append((epoch, f"CRYPTO-that-aioquic-refuses({alert})"))
                    continue
            events.append((epoch, one.name))
        return events

    def ack_frame(self, epoch: Epoch) -> bytes:
        """Acknowledges all packets received on that level."""
        numbers = sorted(self.received[epoch], reverse=True)
        if not numbers:
            return b""
        ranges = packet.RangeSet()
        for number in numbers:
            ranges.add(number, number + 1)
        buf = Buffer(capacity=1200)
        packet.push_ack_frame(buf, ranges, 0, 1000)
        return b"\x02" + buf.data

    def acknowledge(self) -> None:
        """Acknowledges 1-RTT packets, so that no probe timer runs between two steps."""
        if not self.to_ack[Epoch.ONE_RTT] or not self.may_ack_application or self.over:
            return
        self.to_ack[Epoch.ONE_RTT] = False
        if self.can_send(Epoch.ONE_RTT):
            payload = self.ack_frame(Epoch.ONE_RTT)
            self.send(self.protect(Epoch.ONE_RTT, payload, wants_ack=False))

    def on_transport_parameters(self, data: bytes) -> None:
        """Learns the reset token of a server's parameters."""
        try:
            params = packet.pull_quic_transport_parameters(Buffer(data=data))
        except (ValueError, BufferReadError):
            return
        if params.stateless_reset_token:
            self.reset_tokens.add(params.stateless_reset_token)


def describe(events: list[tuple[Epoch | None, str]], acked: list[str]) -> str:
    """Turns the events of a step into one output symbol."""
    parts = sorted({name for epoch, name in events if epoch is None})
    closes = any("CLOSE(" in name for _, name in events)
    for epoch, name in PACKET_NAMES.items():
        names = {event for at, event in events if at == epoch}
        # A FIN may come in a frame of its own, and a close with or without an acknowledgement.
        names -= {one.removesuffix("+FIN") for one in names if one.endswith("+FIN")}
        listed = sorted(names)
        if name in acked and not closes:
            listed.insert(0, "ACK")
        if listed:
            parts.append(f"{name}[{' '.join(listed)}]")
    return " ".join(parts) or "–"
