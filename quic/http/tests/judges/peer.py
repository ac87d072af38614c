"""A client and a server of HTTP/3 on aioquic or qh3, whose interfaces are alike.

    peer.py aioquic|qh3 client PORT CERTIFICATE
    peer.py aioquic|qh3 server CERTIFICATE KEY

The client asks for the cases that all judges share and prints a line of JSON for each. The server
prints its address, and serves until its input ends.
"""

import asyncio
import hashlib
import importlib
import json
import sys

stack = sys.argv[1]
stack_asyncio = importlib.import_module(f"{stack}.asyncio")
protocol = importlib.import_module(f"{stack}.asyncio.protocol")
h3 = importlib.import_module(f"{stack}.h3.connection")
events = importlib.import_module(f"{stack}.h3.events")
configuration = importlib.import_module(f"{stack}.quic.configuration")


def pattern(n):
    return bytes(i % 251 for i in range(251)) * (n // 251) + bytes(range(n % 251))


class Http(protocol.QuicConnectionProtocol):
    """A connection that collects what comes on each stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = h3.H3Connection(self._quic)
        self.waiting = {}
        self.received = {}

    def quic_event_received(self, event):
        for event in self.http.handle_event(event):
            if not isinstance(event, (events.HeadersReceived, events.DataReceived)):
                continue
            fields, chunks = self.received.setdefault(event.stream_id, ([], []))
            if isinstance(event, events.HeadersReceived):
                fields.extend(event.headers)
            else:
                chunks.append(event.data)
            if event.stream_ended:
                self.on_message(event.stream_id, *self.received.pop(event.stream_id))

    def on_message(self, stream, fields, chunks):
        self.waiting.pop(stream).set_result((fields, b"".join(chunks)))

    async def ask(self, name, method, path, body=b""):
        stream = self._quic.get_next_available_stream_id()
        fields = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path.encode()),
        ]
        self.http.send_headers(stream, fields, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        waiter = self.waiting[stream] = asyncio.get_running_loop().create_future()
        self.transmit()
        fields, body = await asyncio.wait_for(waiter, 30)
        values = {key.decode(): value.decode() for key, value in fields}
        answer = {
            "case": name,
            "status": int(values[":status"]),
            "len": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "group": values.get("x-group", ""),
            "fields": sum(key.startswith("x-field-") for key in values),
        }
        print(json.dumps(answer), flush=True)


class Server(Http):
    """A connection that answers."""

    def on_message(self, stream, fields, chunks):
        values = dict(fields)
        path = values[b":path"].decode().strip("/").split("/")
        status, extra, body = 200, [], b""
        match path:
            case ["bytes", n]:
                body = pattern(int(n))
            case ["echo"]:
                body = b"".join(chunks)
            case ["fields", n]:
                extra = [(b"x-field-%d" % i, b"v" * i) for i in range(int(n))]
            case _:
                status = 404
        length = (b"content-length", str(len(body)).encode())
        fields = [(b":status", str(status).encode()), length, *extra]
        if values[b":method"] == b"HEAD":
            body = b""
        self.http.send_headers(stream, fields, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()


async def client(port, certificate):
    config = configuration.QuicConfiguration(is_client=True, alpn_protocols=["h3"])
    config.load_verify_locations(certificate)
    config.server_name = "localhost"
    connecting = stack_asyncio.connect(
        "127.0.0.1", port, configuration=config, create_protocol=Http
    )
    async with connecting as http:
        await http.ask("small", "GET", "/bytes/10")
        await http.ask("empty", "GET", "/bytes/0")
        await http.ask("large", "GET", "/bytes/5000000")
        await http.ask("upload", "POST", "/echo", pattern(1_000_000))
        # aioquic takes the length of a response without a body for a fault of the server.
        await http.ask("head", "HEAD", "/bytes/0" if stack == "aioquic" else "/bytes/1000")
        await http.ask("fields", "GET", "/fields/100")
        await http.ask("missing", "GET", "/missing")
        # Both stacks fail, and do not wait, beyond the server's limit of 100 streams.
        turn = asyncio.Semaphore(40)

        async def ask(i):
            async with turn:
                await http.ask("parallel", "GET", f"/bytes/{1000 + i}")

        await asyncio.gather(*[ask(i) for i in range(100)])


async def server(certificate, key):
    config = configuration.QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    config.load_cert_chain(certificate, key)
    serving = await stack_asyncio.serve(
        "127.0.0.1", 0, configuration=config, create_protocol=Server
    )
    transport = getattr(serving, "_transport")
    host, port = transport.get_extra_info("sockname")[:2]
    print(f"{host}:{port}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


match sys.argv[2:]:
    case ["client", port, certificate]:
        asyncio.run(client(int(port), certificate))
    case ["server", certificate, key]:
        asyncio.run(server(certificate, key))
