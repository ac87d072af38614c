"""Clients of WebTransport (draft-02) and of CONNECT-UDP (RFC 9298) on aioquic, over datagrams.

    client.py session PORT CERTIFICATE
    client.py tunnels PORT CERTIFICATE TARGET_PORT

The first opens a session, and sends on a stream of each kind and in datagrams. The second asks for a target that is
not allowed, and for an echo server; it sends a payload for an unknown context and two for UDP. Both print what comes
back.

aioquic 1.7 forgets that it opened a bidirectional stream for a session: it reads the answer, which has
no header, as frames of HTTP/3. So the first client takes the bytes of these streams from the transport.
"""

import asyncio
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3Connection, H3_ALPN
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived


class Session(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic, enable_webtransport=True)
        self.status = asyncio.get_running_loop().create_future()
        self.datagram = asyncio.get_running_loop().create_future()
        self.streams = {}
        self.opened = set()
        self.ended = asyncio.Queue()

    def on_data(self, stream, data, ended):
        self.streams[stream] = self.streams.get(stream, b"") + data
        if ended:
            self.ended.put_nowait(self.streams[stream])

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id in self.opened:
            return self.on_data(event.stream_id, event.data, event.end_stream)
        for event in self.http.handle_event(event):
            if isinstance(event, HeadersReceived):
                self.status.set_result(dict(event.headers)[b":status"].decode())
            elif isinstance(event, DatagramReceived) and not self.datagram.done():
                self.datagram.set_result(event.data)
            elif isinstance(event, WebTransportStreamDataReceived):
                self.on_data(event.stream_id, event.data, event.stream_ended)

    async def run(self):
        session = self._quic.get_next_available_stream_id()
        fields = {
            ":method": "CONNECT",
            ":scheme": "https",
            ":authority": "localhost",
            ":path": "/echo",
            ":protocol": "webtransport",
            "sec-webtransport-http3-draft02": "1",
        }
        fields = [(name.encode(), value.encode()) for name, value in fields.items()]
        self.http.send_headers(session, fields)
        self.transmit()
        print("status", await self.status)
        for is_uni in (False, True):
            stream = self.http.create_webtransport_stream(session, is_unidirectional=is_uni)
            if not is_uni:
                self.opened.add(stream)
            self._quic.send_stream_data(stream, b"uni" if is_uni else b"bidi", end_stream=True)
            self.transmit()
            # A unidirectional stream is answered on two of the server.
            answers = [await self.ended.get() for _ in range(1 + is_uni)]
            print("stream", *sorted(answer.decode() for answer in answers), sep=", ")
        while not self.datagram.done():
            self.http.send_datagram(session, b"datagram")
            self.transmit()
            await asyncio.wait([self.datagram], timeout=0.1)
        print("datagram", self.datagram.result().decode())


class Http3(H3Connection):
    """Announces datagrams without WebTransport."""

    def _get_local_settings(self):
        settings = super()._get_local_settings()
        settings[0x33] = 1
        return settings


class Tunnels(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = Http3(self._quic)
        self.heads = asyncio.Queue()
        self.datagrams = asyncio.Queue()

    def quic_event_received(self, event):
        for event in self.http.handle_event(event):
            if isinstance(event, HeadersReceived):
                self.heads.put_nowait(dict(event.headers))
            elif isinstance(event, DatagramReceived):
                self.datagrams.put_nowait((event.stream_id, event.data))

    async def ask(self, target, port):
        stream = self._quic.get_next_available_stream_id()
        fields = {
            ":method": "CONNECT",
            ":protocol": "connect-udp",
            ":scheme": "https",
            ":authority": "localhost",
            ":path": f"/.well-known/masque/udp/{target}/{port}/",
            "capsule-protocol": "?1",
        }
        self.http.send_headers(stream, [(n.encode(), v.encode()) for n, v in fields.items()])
        self.transmit()
        head = await self.heads.get()
        told = {b"capsule-protocol", b"proxy-status"} & head.keys()
        print("status", head[b":status"].decode(), *(head[name].decode() for name in sorted(told)))
        return stream

    async def run(self, port):
        await self.ask("192.0.2.1", port)
        stream = await self.ask("127.0.0.1", port)
        for datagram in (b"\x02unknown", b"\x00", b"\x00" + 1000 * b"x"):
            self.http.send_datagram(stream, datagram)
        self.transmit()
        for _ in range(2):
            of, datagram = await self.datagrams.get()
            print("datagram", of == stream, datagram[0], len(datagram) - 1)


async def main(client, port, certificate, *arguments):
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, server_name="localhost", max_datagram_frame_size=65536
    )
    with open(certificate, "rb") as file:
        pem = ssl.DER_cert_to_PEM_cert(file.read())
    configuration.load_verify_locations(cadata=pem.encode())
    protocol = {"session": Session, "tunnels": Tunnels}[client]
    async with connect(
        "127.0.0.1", int(port), configuration=configuration, create_protocol=protocol
    ) as connection:
        await asyncio.wait_for(connection.run(*arguments), 30)


asyncio.run(main(*sys.argv[1:]))
