#!/usr/bin/env python3
"""Compares file_transfer with one TCP stream, as scp has, over the link of `hybriq-interop hosts`.

  sudo target/release/hybriq-interop hosts --delay-ms 50 --loss-percent 1 --rate-mbit 100 -- \\
      examples/src/bin/file_transfer/compare.py target/release/file_transfer [MIB] [REPETITIONS]

TCP is that of the kernel, with CUBIC, the default of Linux, and with BBR where the kernel has it. Its
times have neither a handshake of TLS or SSH, nor checksums; those of file_transfer have everything from the
start of the program to its end. The ways take turns, so that disturbances affect all alike.
"""

import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = os.environ["SERVER"]
PORT = int(os.environ["PORT"])
ON = {"client": os.environ["ON_CLIENT"].split(), "server": os.environ["ON_SERVER"].split()}
ALLOWED = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def tcp_server(congestion):
    """Takes one stream, and answers a byte at its end."""
    listener = socket.create_server((SERVER, PORT))
    print("listening", flush=True)
    stream, _ = listener.accept()
    while stream.recv(1 << 20):
        pass
    stream.sendall(b"!")


def tcp_client(congestion, path):
    """Sends a file and waits for the answer. Prints the seconds."""
    start = time.monotonic()
    stream = socket.socket()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    stream.connect((SERVER, PORT))
    with open(path, "rb") as file:
        stream.sendfile(file)
    stream.shutdown(socket.SHUT_WR)
    assert stream.recv(1) == b"!"
    print(time.monotonic() - start)


def start(where, *words):
    """Starts a server, which prints a line once it listens."""
    process = subprocess.Popen(ON[where] + list(words), stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def tcp(congestion, path):
    server = start("server", sys.executable, __file__, "tcp-server", congestion)
    words = [sys.executable, __file__, "tcp-client", congestion, path]
    done = subprocess.run(ON["client"] + words, stdout=subprocess.PIPE, text=True, check=True)
    server.wait()
    return float(done.stdout)


def quic(program, congestion, path):
    with tempfile.TemporaryDirectory() as place:
        options = lambda end: ["--config", f"{place}/{end}", "--congestion", congestion]
        Path(place, "served").mkdir()
        listen = ["--listen", f"{SERVER}:{PORT}", "--accept-first"]
        server = start("server", program, "serve", f"{place}/served", *options("server"), *listen)
        try:
            began = time.monotonic()
            words = [program, "push", path, f"{SERVER}:{PORT}", "--accept-new", "--quiet"]
            subprocess.run(ON["client"] + words + options("client"), check=True)
            took = time.monotonic() - began
            assert Path(place, "served", Path(path).name).read_bytes() == Path(path).read_bytes()
            return took
        finally:
            server.terminate()
            server.wait()


def main(program, mib=32, repetitions=5):
    mib, repetitions = int(mib), int(repetitions)
    program = os.path.abspath(program)
    ways = {"TCP, cubic": lambda path: tcp("cubic", path)}
    if "bbr" in Path(ALLOWED).read_text().split():
        ways["TCP, bbr"] = lambda path: tcp("bbr", path)
    for congestion in ["cubic", "bbr"]:
        ways[f"file_transfer, {congestion}"] = lambda path, it=congestion: quic(program, it, path)
    took = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/file"
        Path(path).write_bytes(random.Random(1).randbytes(mib << 20))
        for repetition in range(repetitions):
            for way, run in ways.items():
                took[way].append(run(path))
                print(f"{repetition + 1}: {way}: {took[way][-1]:.1f} s", flush=True)
    print(f"\n{mib} MiB, {repetitions} repetitions\n\n| way | median, s | range, s | Mbit/s |\n|---|---|---|---|")
    for way, seconds in took.items():
        median = statistics.median(seconds)
        rate = (mib << 20) * 8 / median / 1e6
        print(f"| {way} | {median:.1f} | {min(seconds):.1f} to {max(seconds):.1f} | {rate:.1f} |")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    kind, *words = sys.argv[1:]
    {"tcp-server": tcp_server, "tcp-client": tcp_client}.get(kind, lambda *words: main(kind, *words))(*words)
