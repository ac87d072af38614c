"""A client of CONNECT-UDP (RFC 9298) on aioquic, over datagrams.

    client.py PORT CERTIFICATE TARGET_PORT

Asks for a target that is not allowed, and for an echo server; sends a payload for an unknown context and two for UDP,
and prints what comes back.
"""

import asyncio
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3Connection, H3_ALPN
from aioquic.h3.events import DatagramReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Http3(H3Connection):
    """Announces datagrams without WebTransport."""

    def _get_local_settings(self):
        settings = super()._get_local_settings()
        settings[0x33] = 1
        return settings


class Client(QuicConnectionProtocol):
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


async def main(port, certificate, target):
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, server_name="localhost", max_datagram_frame_size=65536
    )
    with open(certificate, "rb") as file:
        pem = ssl.DER_cert_to_PEM_cert(file.read())
    configuration.load_verify_locations(cadata=pem.encode())
    async with connect(
        "127.0.0.1", int(port), configuration=configuration, create_protocol=Client
    ) as client:
        await asyncio.wait_for(client.run(target), 30)


asyncio.run(main(*sys.argv[1:]))
