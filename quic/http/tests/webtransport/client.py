"""A client of WebTransport on aioquic (draft-02).

    client.py PORT CERTIFICATE

Opens a session, sends on a stream of each kind and in datagrams, and prints what comes back.

aioquic 1.7 forgets that it opened a bidirectional stream for a session: it reads the answer, which has
no header, as frames of HTTP/3. So this client takes the bytes of these streams from the transport.
"""

import asyncio
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived


class Client(QuicConnectionProtocol):
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


async def main(port, certificate):
    configuration = QuicConfiguration(
        alpn_protocols=["h3"], server_name="localhost", max_datagram_frame_size=65536
    )
    with open(certificate, "rb") as file:
        pem = ssl.DER_cert_to_PEM_cert(file.read())
    configuration.load_verify_locations(cadata=pem.encode())
    async with connect(
        "127.0.0.1", int(port), configuration=configuration, create_protocol=Client
    ) as client:
        await asyncio.wait_for(client.run(), 30)


asyncio.run(main(*sys.argv[1:]))
