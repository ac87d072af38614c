"""Endpoint of the QUIC interop runner on aioquic or on its descendant qh3: the argument names the library."""

import asyncio
import importlib
import os
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

LIBRARY = sys.argv[1]


def module(name):
    return importlib.import_module(f"{LIBRARY}.{name}")


asynchronous = module("asyncio")
H3Connection = module("h3.connection").H3Connection
h3 = module("h3.events")
QuicConfiguration = module("quic.configuration").QuicConfiguration
quic = module("quic.events")
QuicProtocolVersion = module("quic.packet").QuicProtocolVersion
CipherSuite = module("tls").CipherSuite

if sys.argv[2:] == ["--version"]:
    print(importlib.import_module(LIBRARY).__version__)
    sys.exit()
TESTCASE = os.environ["TESTCASE"]
HTTP3 = {"http3", "qpack", "webtransport"}
# Files are asked for on the streams of a session.
SESSION = TESTCASE == "webtransport"
CASES = {
    "handshake", "transfer", "longrtt", "multiplexing", "multiconnect", "retry", "resumption",
    "zerortt", "http3", "qpack", "webtransport", "chacha20", "keyupdate", "v2",
}
# Clients of aioquic follow a preferred address; its servers announce none, and qh3 ignores it.
if LIBRARY == "aioquic" and os.environ["ROLE"] == "client":
    CASES.add("connectionmigration")
# aioquic has no ML-KEM; qh3 has one hybrid group, and takes no list.
if LIBRARY == "qh3":
    CASES |= {"postquantum", "postquantum-retry"}


def configuration(is_client):
    settings = QuicConfiguration(
        alpn_protocols=["h3" if TESTCASE in HTTP3 else "hq-interop"],
        is_client=is_client,
        secrets_log_file=open(os.environ["SSLKEYLOGFILE"], "a"),
        idle_timeout=30,
        max_datagram_size=1200,
        max_datagram_frame_size=65536 if SESSION else None,
    )
    if TESTCASE == "v2":
        settings.supported_versions = [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]
        settings.original_version = QuicProtocolVersion.VERSION_1
    else:
        settings.supported_versions = [QuicProtocolVersion.VERSION_1]
    if TESTCASE == "chacha20":
        settings.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    certs = Path(os.environ["CERTS"])
    if is_client:
        settings.load_verify_locations(str(certs / "ca.pem"))
    else:
        settings.load_cert_chain(str(certs / "cert.pem"), str(certs / "priv.key"))
    return settings


class Server(asynchronous.QuicConnectionProtocol):
    """A connection that serves files."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.requests = {}

    def quic_event_received(self, event):
        if isinstance(event, quic.ProtocolNegotiated) and event.alpn_protocol == "h3":
            self.http = connection(self._quic)
        if self.http is not None:
            for message in self.http.handle_event(event):
                if isinstance(message, h3.WebTransportStreamDataReceived):
                    self.on_request(message.stream_id, message.data, message.stream_ended)
                elif isinstance(message, h3.HeadersReceived) and SESSION:
                    fields = [(b":status", b"200"), (b"sec-webtransport-http3-draft", b"draft02")]
                    self.http.send_headers(message.stream_id, fields)
                    self.transmit()
                elif isinstance(message, h3.HeadersReceived):
                    path = dict(message.headers)[b":path"].decode()
                    # The first is in the static table of QPACK.
                    fields = [(b":status", b"200"), (b"server", LIBRARY.encode())]
                    self.http.send_headers(message.stream_id, fields)
                    self.http.send_data(message.stream_id, contents(path), end_stream=True)
                    self.transmit()
        elif isinstance(event, quic.StreamDataReceived):
            self.on_request(event.stream_id, event.data, event.end_stream)

    def on_request(self, stream, data, ended):
        request = self.requests.setdefault(stream, bytearray())
        request += data
        if ended or request.endswith(b"\r\n"):
            path = bytes(request).decode().removeprefix("GET ").strip()
            if path:
                self._quic.send_stream_data(stream, contents(path), True)
                request.clear()
            self.transmit()


def connection(transport):
    return H3Connection(transport, enable_webtransport=SESSION)


def contents(path):
    return (Path(os.environ["WWW"]) / Path(path).name).read_bytes()


class Client(asynchronous.QuicConnectionProtocol):
    """A connection that downloads files."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.waiting = {}
        self.session = None

    def quic_event_received(self, event):
        if isinstance(event, quic.StreamDataReceived) and SESSION and event.stream_id in self.waiting:
            # aioquic forgets that it opened the stream for a session, and would read the answer as frames.
            self.on_data(event.stream_id, event.data, event.end_stream)
        elif self.http is not None:
            for message in self.http.handle_event(event):
                if SESSION and isinstance(message, h3.HeadersReceived):
                    self.session[1].set_result(dict(message.headers)[b":status"])
                elif isinstance(message, (h3.HeadersReceived, h3.DataReceived)):
                    data = message.data if isinstance(message, h3.DataReceived) else b""
                    self.on_data(message.stream_id, data, message.stream_ended)
        elif isinstance(event, quic.StreamDataReceived):
            self.on_data(event.stream_id, event.data, event.end_stream)
        if isinstance(event, quic.StreamReset) and event.stream_id in self.waiting:
            self.waiting.pop(event.stream_id)[1].set_exception(OSError("the stream was reset"))

    def on_data(self, stream, data, ended):
        received, waiter = self.waiting[stream]
        received += data
        if ended and not waiter.done():
            waiter.set_result(bytes(received))

    async def get_over_session(self, url):
        path = urlsplit(url).path
        if self.session is None:
            self.http = connection(self._quic)
            stream = self._quic.get_next_available_stream_id()
            self.session = (stream, asyncio.get_running_loop().create_future())
            fields = [(":method", "CONNECT"), (":scheme", "https"), (":path", "/webtransport"),
                      (":authority", urlsplit(url).netloc), (":protocol", "webtransport"),
                      ("sec-webtransport-http3-draft02", "1")]
            fields = [(name.encode(), value.encode()) for name, value in fields]
            self.http.send_headers(stream, fields)
            self.transmit()
        number, answer = self.session
        if await answer != b"200":
            raise OSError(f"the session was refused: {await answer}")
        stream = self.http.create_webtransport_stream(number)
        waiter = asyncio.get_running_loop().create_future()
        self.waiting[stream] = (bytearray(), waiter)
        self._quic.send_stream_data(stream, f"GET {path}\r\n".encode(), True)
        self.transmit()
        (Path(os.environ["DOWNLOADS"]) / Path(path).name).write_bytes(await waiter)

    async def get(self, url):
        if SESSION:
            return await self.get_over_session(url)
        path = urlsplit(url).path
        stream = self._quic.get_next_available_stream_id()
        waiter = asyncio.get_running_loop().create_future()
        self.waiting[stream] = (bytearray(), waiter)
        if TESTCASE in HTTP3:
            self.http = self.http or connection(self._quic)
            fields = [(":method", "GET"), (":scheme", "https"), (":path", path),
                      (":authority", urlsplit(url).netloc)]
            fields = [(name.encode(), value.encode()) for name, value in fields]
            self.http.send_headers(stream, fields, end_stream=True)
        else:
            self._quic.send_stream_data(stream, f"GET {path}\r\n".encode(), True)
        self.transmit()
        (Path(os.environ["DOWNLOADS"]) / Path(path).name).write_bytes(await waiter)


async def download(settings, urls, early=False):
    server = urlsplit(urls[0])
    async with asynchronous.connect(server.hostname, server.port, configuration=settings,
                       create_protocol=Client, wait_connected=not early,
                       session_ticket_handler=lambda ticket: setattr(settings, "session_ticket", ticket),
                       ) as client:
        if TESTCASE == "keyupdate":
            await client.ping()
            client.request_key_update()
        if TESTCASE == "qpack":
            for url in urls:
                await client.get(url)
        else:
            await asyncio.gather(*(client.get(url) for url in urls))


async def run_client():
    settings = configuration(is_client=True)
    urls = os.environ["REQUESTS"].split()
    if TESTCASE == "multiconnect":
        for url in urls:
            await download(settings, [url])
            settings.session_ticket = None
    elif TESTCASE in ("resumption", "zerortt"):
        await download(settings, urls[:1])
        await download(settings, urls[1:], early=TESTCASE == "zerortt")
    else:
        await download(settings, urls)


async def run_server():
    host, _, port = os.environ["LISTEN"].rpartition(":")
    tickets = {}
    await asynchronous.serve(host.strip("[]"), int(port), configuration=configuration(is_client=False),
                create_protocol=Server, retry=TESTCASE.endswith("retry"),
                session_ticket_fetcher=lambda name: tickets.pop(name, None),
                session_ticket_handler=lambda ticket: tickets.setdefault(ticket.ticket, ticket))
    stopped = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, stopped.set)
    await stopped.wait()


def unsupported(reason):
    print(f"{LIBRARY} {reason}", file=sys.stderr)
    sys.exit(127)


if LIBRARY == "qh3" and len(os.environ.get("REQUESTS", "").split()) > 100:
    unsupported("refuses to open more streams than the server allows, instead of waiting")
if TESTCASE not in CASES:
    unsupported(f"has no way to do {TESTCASE}")
if os.environ.get("GROUPS"):
    unsupported("takes no list of groups")
asyncio.run(run_client() if os.environ["ROLE"] == "client" else run_server())
