"""A server of WebTransport on aioquic (draft-02).

    server.py CERTIFICATE KEY

Prints its port, and sends back what comes on streams and in datagrams of sessions, until its input ends.
"""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate


class Server(QuicConnectionProtocol):
    http = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.streams = {}

    def on_data(self, event):
        data = self.streams.get(event.stream_id, b"") + event.data
        self.streams[event.stream_id] = data
        if not event.stream_ended:
            return
        stream = event.stream_id
        if stream & 2:
            stream = self.http.create_webtransport_stream(event.session_id, is_unidirectional=True)
        self._quic.send_stream_data(stream, data, end_stream=True)

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic, enable_webtransport=True)
        if self.http is None:
            return
        for event in self.http.handle_event(event):
            if isinstance(event, HeadersReceived):
                self.http.send_headers(event.stream_id, [(b":status", b"200")])
            elif isinstance(event, DatagramReceived):
                self.http.send_datagram(event.stream_id, event.data)
            elif isinstance(event, WebTransportStreamDataReceived):
                self.on_data(event)
        self.transmit()


def read(path):
    with open(path, "rb") as file:
        return file.read()


async def main(certificate, key):
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["h3"], max_datagram_frame_size=65536
    )
    configuration.certificate = load_der_x509_certificate(read(certificate))
    configuration.private_key = load_der_private_key(read(key), None)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
