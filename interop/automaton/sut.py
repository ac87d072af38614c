"""The system under learning: one implementation, one connection for each word."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from aalpy.base import SUL
from aioquic import tls
from aioquic.tls import Epoch
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

import letters
from wire import ALPN, PACKET_NAMES, Wire, describe

CLOSED = "(closed)"
NOT_SENT = "(not sent)"
# Runs of a word whose outputs contradict earlier ones.
VOTES = 5
# Time in seconds that a client has for its ClientHello.
START_TIME = 10.0
# Words that run at the same time: most of their time is waiting.
PARALLEL = 6

Word = tuple[str, ...]


class Contradiction(Exception):
    """An output that learning already used was noise; learning starts again from the cache."""


class Peer:
    """A running `automaton_peer`."""

    def __init__(self, binary: Path, role: str, name: str) -> None:
        self.process = subprocess.Popen(
            [str(binary), role, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        pem = []
        for line in self.process.stdout:
            if line.startswith("ready"):
                self.ready = line.split()[1:]
                break
            pem.append(line)
        else:
            raise RuntimeError(f"{name} did not start")
        self.pem = "".join(pem)
        # Ports whose datagrams it reads.
        self.ports: set[int] = set()

    def is_idle(self) -> bool:
        """Returns true if all its threads sleep and no datagram waits for it.

        Timers that are due wake a thread at once, so this is exact on a busy machine too.
        """
        tasks = Path(f"/proc/{self.process.pid}/task")
        for task in tasks.iterdir():
            try:
                stat = (task / "stat").read_text()
            except OSError:
                continue
            if stat.rsplit(")", 1)[1].split()[0] != "S":
                return False
        rows = Path(f"/proc/{self.process.pid}/net/udp").read_text().splitlines()[1:]
        for row in rows:
            fields = row.split()
            port, waiting = (int(fields[at].split(":")[1], 16) for at in (1, 4))
            if port in self.ports and waiting > 0:
                return False
        return True

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.terminate()


class Automaton(SUL):
    """Runs words, remembers their outputs and votes where they contradict each other."""

    def __init__(self, alphabet: dict[str, letters.Letter]) -> None:
        super().__init__()
        self.alphabet = alphabet
        # For each word, how often its last letter had which output.
        self.votes: dict[Word, Counter[str]] = {}
        self.answered: dict[Word, str] = {}
        self.reasons: dict[str, Counter[str]] = {}
        self.noisy: Counter[Word] = Counter()
        self.runs = 0
        # Ways to the states that the algorithm asks about.
        self.access: set[Word] = {()}
        self.asked: Counter[tuple[Word, Word]] = Counter()
        self.lock = threading.Lock()

    probes: tuple[Word, ...] = ()

    def open(self) -> Wire:
        """Makes a new connection; each role defines it."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends the implementation; each role defines it."""
        raise NotImplementedError

    def pre(self) -> None:
        """Does nothing: every word has its own connection."""

    def post(self) -> None:
        """Does nothing: every word has its own connection."""

    def step(self, letter: str) -> str:
        raise NotImplementedError("only whole words are run")

    def close(self, wire: Wire) -> None:
        """Closes, which spares the implementation the wait for its timeouts."""
        for epoch in (Epoch.ONE_RTT, Epoch.HANDSHAKE, Epoch.INITIAL):
            if wire.can_send(epoch) and not wire.over:
                payload = letters.frame(0x1C, 0, 0, 0)
                pad = 1200 if epoch == Epoch.INITIAL else 0
                wire.send(wire.protect(epoch, payload, pad=pad, wants_ack=False))
        wire.sock.close()

    def take_step(self, wire: Wire, letter: str) -> str:
        if wire.over:
            return CLOSED
        wire.expected.clear()
        if not self.alphabet[letter](wire):
            return NOT_SENT
        events = wire.collect(letters.TAKES.get(letter))
        acked = [PACKET_NAMES[e] for e, pn in wire.expected if pn in wire.acked[e]]
        wire.acknowledge()
        output = describe(events, acked)
        with self.lock:
            for reason in wire.reasons:
                self.reasons.setdefault(f"{letter}: {output}", Counter())[reason] += 1
        wire.reasons.clear()
        if letter in letters.ENDS_HERE:
            wire.over = True
        return output

    # Words

    def run(self, word: Word) -> None:
        """Runs a word once on a new connection."""
        wire = self.open()
        sent: Word = ()
        outputs: list[tuple[Word, str]] = []
        try:
            for letter in word:
                output = self.take_step(wire, letter)
                if output == CLOSED:
                    break
                outputs.append(((*sent, letter), output))
                if output != NOT_SENT:
                    sent += (letter,)
        finally:
            self.close(wire)
        with self.lock:
            self.runs += 1
            for one, output in outputs:
                self.votes.setdefault(one, Counter())[output] += 1

    def paths(self, word: Word) -> list[Word]:
        """Returns the entries of `votes` that the outputs of a word come from."""
        found: list[Word] = []
        sent: Word = ()
        for letter in word:
            if (*sent, letter) in self.votes:
                found.append((*sent, letter))
                if self.votes[found[-1]].most_common(1)[0][0] != NOT_SENT:
                    sent += (letter,)
        return found

    def run_all(self, words: Iterable[Word]) -> None:
        """Runs the words that are not known, several at a time."""
        unknown = dict.fromkeys(word for word in words if self.known(word) is None)
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(self.run, unknown))

    def repeat(self, words: Iterable[Word]) -> None:
        """Runs words once more, and often where the outputs contradict each other."""
        words = list(words)
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(self.run, words))
        for word in words:
            self.settle(word)

    def settle(self, word: Word) -> None:
        """Votes on a word whose outputs contradict each other."""
        if self.is_contested(word):
            for _ in range(VOTES):
                self.run(word)

    def known(self, word: Word) -> list[str] | None:
        """Returns the outputs of a word if all are known or follow from others."""
        outputs: list[str] = []
        sent: Word = ()
        for letter in word:
            if sent and (outputs[-1] == CLOSED or self.ended(sent)):
                outputs.append(CLOSED)
                continue
            votes = self.votes.get((*sent, letter))
            if not votes:
                return None
            outputs.append(votes.most_common(1)[0][0])
            # A letter that sent nothing changed nothing.
            if outputs[-1] != NOT_SENT:
                sent += (letter,)
        return outputs

    def ended(self, sent: Word) -> bool:
        return ends(sent[-1], self.votes[sent].most_common(1)[0][0])

    def prefetch(self, word: Word) -> None:
        """Runs a word, and those which the algorithm seems to ask for next.

        It asks for the same suffix after every letter from one state. The second word of this form
        gives it away.
        """
        words = [word]
        for end in range(len(word)):
            start, rest = word[:end], word[end + 1 :]
            self.asked[start, rest] += 1
            if start in self.access and self.asked[start, rest] == 2:
                words += [(*start, letter, *rest) for letter in self.alphabet]
        self.run_all(words)

    def query(self, word: Word) -> list[str]:
        word = tuple(word)
        self.num_queries += 1
        self.num_steps += len(word)
        if self.known(word) is None:
            self.prefetch(word)
        if word not in self.answered:
            self.settle(word)
        outputs = self.known(word)
        assert outputs is not None
        self.answer(word, outputs)
        return outputs

    def is_contested(self, word: Word) -> bool:
        contested = [one for one in self.paths(word) if len(self.votes[one]) > 1]
        for one in contested:
            self.noisy[one] += 1
        # A clear majority settles it.
        top = (self.votes[one].most_common(2) for one in contested)
        return any(most < 3 * other + 1 for (_, most), (_, other) in top)

    def answer(self, word: Word, outputs: list[str]) -> None:
        """Records what learning was told; raises if it was told otherwise before."""
        for index, output in enumerate(outputs):
            prefix = word[: index + 1]
            if self.answered.setdefault(prefix, output) != output:
                self.answered.clear()
                raise Contradiction(f"{' '.join(prefix)}: now {output}")


def ends(letter: str, output: str) -> bool:
    return (
        "CLOSE(" in output
        or output == "StatelessReset"
        or (letter in letters.ENDS_HERE and output != NOT_SENT)
    )


class ServerUnderTest(Automaton):
    """A server, and our client that breaks rules."""

    # Words that tell states apart.
    probes: tuple[Word, ...] = (
        ("hello-second-half", "hello", "finished", "stream", "path-challenge"),
        ("finished", "path-challenge", "stream", "key-update", "ping"),
        ("initial-ping", "handshake-ping", "initial-ping", "finished-after-stream"),
    )

    def __init__(self, binary: Path, name: str) -> None:
        super().__init__(letters.against_server())
        self.peer = Peer(binary, "serve", name)
        host, port = self.peer.ready[0].rsplit(":", 1)
        self.address = (host, int(port))
        self.peer.ports.add(int(port))

    def stop(self) -> None:
        self.peer.stop()

    def open(self) -> Wire:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 0))
        sock.connect(self.address)
        wire = Wire(sock, letters.client_session(), is_client=True, is_idle=self.peer.is_idle)
        letters.start_client(wire)
        return wire


class ClientUnderTest(Automaton):
    """A client, and our server that breaks rules."""

    probes: tuple[Word, ...] = (
        ("hello-second-half", "hello", "flight", "handshake-done", "stream", "path-challenge"),
        ("flight-second-half", "flight", "path-challenge", "stream", "key-update", "ping"),
        ("initial-ping", "handshake-ping", "initial-ping", "flight-before-hello", "ping"),
    )

    def __init__(self, binary: Path, name: str) -> None:
        super().__init__(letters.against_client())
        # A process has one connection at a time.
        self.peers = [Peer(binary, "connect", name) for _ in range(PARALLEL)]
        self.free: Queue[Peer] = Queue()
        for peer in self.peers:
            self.free.put(peer)
        self.users: dict[Wire, Peer] = {}

    def open(self) -> Wire:
        peer = self.free.get()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 0))
        wire = Wire(sock, server_session(peer.pem), is_client=False, is_idle=peer.is_idle)
        self.users[wire] = peer
        assert peer.process.stdin is not None
        peer.process.stdin.write(f"{sock.getsockname()[1]}\n")
        peer.process.stdin.flush()
        deadline = time.monotonic() + START_TIME
        while not wire.client_hello:
            wire.collect()
            if time.monotonic() > deadline:
                self.close(wire)
                raise RuntimeError("the client did not start")
        assert wire.peer_address is not None
        peer.ports = {wire.peer_address[1]}
        return wire

    def close(self, wire: Wire) -> None:
        super().close(wire)
        self.free.put(self.users.pop(wire))

    def stop(self) -> None:
        for peer in self.peers:
            peer.stop()


def server_session(pem: str) -> tls.Context:
    session = tls.Context(is_client=False, alpn_protocols=[ALPN])
    session.certificate = x509.load_pem_x509_certificate(pem.encode())
    start = pem.index("-----BEGIN PRIVATE KEY")
    session.certificate_private_key = load_pem_private_key(pem[start:].encode(), None)
    session._cipher_suites = [tls.CipherSuite.AES_128_GCM_SHA256]
    return session
