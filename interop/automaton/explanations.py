"""Reasons for the differences that `report.py` finds."""

INTRODUCTION = """
# Results

Learned with `learn.py` as [README.md](README.md) describes, and compared by `report.py`, which wrote this page. The machines
are in `machines/`: all transitions as JSON, those that neither close the connection nor stay in their state as dot.

Each machine is a hypothesis: the time for its last walks was limited (see "walks"), so it may have states too few. Therefore
`report.py` ran every line of the tables again, on all three implementations, and kept only what happened.

A line of a table is a letter that the implementations answer differently after the same words. `close 0xa` is a
CONNECTION_CLOSE with that code, `–` is silence, and `·` is an implementation that already differed earlier on the way there.
NEW_CONNECTION_ID and NEW_TOKEN are not compared: an end sends them when it likes.

The comparison found one defect of hybriq: its server closed the connection when a client sent a CRYPTO frame *without data*
after the handshake. Such a frame breaks no rule (RFC 9000 §19.6). It is mended, with a test
(`a_crypto_frame_without_data_after_the_handshake`).
"""

ANY = ".*"
SERVER, CLIENT, BOTH = "server", "client", "server client"
GENERIC = "The generic PROTOCOL_VIOLATION can always stand for a specific code (RFC 9000 §11); hybriq sends the specific one"
TLS_ALERT = (
    "s2n-quic reports most TLS errors as handshake_failure; RFC 9001 §4.8 allows a generic alert"
)
FIRST = (
    "s2n-quic forgets a connection whose first datagram is wrong and says nothing; hybriq and quinn tell the client, as "
    "RFC 9000 §11 recommends"
)
APPLICATION_CLOSE = "0x1d is allowed only in 0-RTT and 1-RTT packets (RFC 9000 §12.5), so hybriq answers PROTOCOL_VIOLATION"
UNKNOWN = "(initial-|handshake-)?unknown-frame"
MALFORMED = "max-streams-too-many|streams-blocked-too-many|new-cid-retires-too-much|new-cid-empty|ack-below-zero"

DRAINING = "The connection is closed. A draining end MUST NOT send (RFC 9000 §10.2.2); quinn still reports a packet with reserved bits"
TOKEN = "quinn drops Initial packets whose token is not that of the first one, a close too; RFC 9000 §17.2.2 knows no such rule"
NOTHING_YET = (
    "A close before the ClientHello is whole: hybriq has no connection yet, so there is nothing to close; the others made "
    "one and let it drain. Initial packets are not authenticated, and ignoring the close is allowed (RFC 9000 §21.2)"
)
INITIAL_CLOSE = (
    "s2n-quic's client dropped its Initial keys already, so it does not see the close; RFC 9001 §4.9.1 keeps them until the "
    "first Handshake packet is sent"
)
GIVES_UP = "A client MUST give up when Version Negotiation lists no version of its own (RFC 9000 §6.2); s2n-quic ignores it"
EARLY = (
    "hybriq keeps 1-RTT packets that come before their keys, a MAY of RFC 9001 §5.7, and finds the wrong one later; the others "
    "drop them"
)

# Roles, letter or whole word, verdict of hybriq, quinn and s2n-quic (regular expressions), reason.
EXPLANATIONS: list[tuple[str, str, tuple[str, str, str], str]] = [
    (BOTH, "(initial|handshake)-reserved-bits", ("–", "close 0xa", "–"), DRAINING),
    (CLIENT, "version-negotiation .*", (ANY, ANY, ANY), GIVES_UP),
    (CLIENT, ".*initial-close .*", ("–", ANY, ANY), INITIAL_CLOSE),
    (CLIENT, "hello-no-parameters .*", ("close.*", "close.*", "close 0x128"), TLS_ALERT),
    (CLIENT, "hello reserved-bits .*", ("close 0xa", ANY, ANY), EARLY),
    (SERVER, "(.* )?hello-invalid-token .+", (ANY, ANY, ANY), TOKEN),
    (SERVER, "initial-close .*", (ANY, ANY, ANY), NOTHING_YET),
    (BOTH, f"{UNKNOWN}|{MALFORMED}", ("close 0x7", "close 0x7", "close 0xa"), GENERIC),
    (
        SERVER,
        "new-token-empty",
        ("close 0x7", ANY, ANY),
        (
            "An empty token is FRAME_ENCODING_ERROR for a client (RFC 9000 "
            "§19.7), any token is PROTOCOL_VIOLATION for a server; hybriq decodes the frame before it looks at the role"
        ),
    ),
    (
        BOTH,
        "retire-cid-in-use",
        ("close 0xa", ANY, ANY),
        "An end MAY close with PROTOCOL_VIOLATION (RFC 9000 §19.16)",
    ),
    (
        BOTH,
        "frame-type-too-long",
        ("close 0xa", ANY, ANY),
        "An end MAY close with PROTOCOL_VIOLATION (RFC 9000 §12.4)",
    ),
    (
        BOTH,
        "new-cid-conflict",
        ("close 0xa", ANY, ANY),
        "An end MAY close with PROTOCOL_VIOLATION (RFC 9000 §19.15)",
    ),
    (
        BOTH,
        "stop-sending-our-uni",
        ("close 0x5", ANY, "1-RTT.*"),
        "A MUST of RFC 9000 §19.5, which s2n-quic does not check",
    ),
    (
        BOTH,
        "key-update-twice",
        ("close 0xe", ANY, ANY),
        "An end MAY close with KEY_UPDATE_ERROR (RFC 9001 §6.2)",
    ),
    (
        BOTH,
        "close-(application|transport)",
        ("–", "close 0x0", "–"),
        "Before it drains, an end MAY answer with one CONNECTION_CLOSE (RFC 9000 §10.2.2)",
    ),
    (
        BOTH,
        "reset-before-end",
        (".*RESET_STREAM.*", ANY, ANY),
        (
            "The application decides: after a reset the echo of hybriq "
            "resets its own direction, that of the others finishes it"
        ),
    ),
    (
        BOTH,
        "crypto-unexpected",
        ("close 0x10a", "close 0x132", ANY),
        (
            "The message is a ClientHello without content: hybriq "
            "looks at its type first, quinn at its length; s2n-quic's server does not read it (RFC 8446 §6.2 demands "
            "unexpected_message)"
        ),
    ),
    (
        SERVER,
        "crypto-far",
        ("close 0x10a", ANY, ANY),
        (
            "A client has no TLS message to send after the handshake, so hybriq "
            "refuses any byte; the others wait for the bytes before it"
        ),
    ),
    (
        BOTH,
        "crypto-empty",
        ("1-RTT.*", ANY, ANY),
        "A frame without data breaks no rule (RFC 9000 §19.6)",
    ),
    (
        BOTH,
        "(initial|handshake)-crypto-far",
        ("close 0xd", ANY, ANY),
        (
            "CRYPTO_BUFFER_EXCEEDED (RFC 9000 §7.5); the others "
            "refuse any new byte of a level that is over first, and s2n-quic forgets a connection that begins so"
        ),
    ),
    (BOTH, "(initial|handshake)-close-application", ("close 0xa", ANY, ANY), APPLICATION_CLOSE),
    (
        SERVER,
        "initial-close-application",
        ("–", "–", "close 0xa"),
        (
            "hybriq has no connection before the ClientHello is whole, "
            "and a close of nothing needs no answer"
        ),
    ),
    (SERVER, "finished-wrong", ("close 0x133", ANY, "close 0x128"), TLS_ALERT),
    (
        CLIENT,
        "flight-wrong-.*|flight-without-certificate",
        ("close 0x.*", ANY, "close 0x128"),
        TLS_ALERT,
    ),
    (
        SERVER,
        "finished-twice-in-one",
        ("close 0xa", ANY, ANY),
        (
            "Data that is left when the keys change is "
            "PROTOCOL_VIOLATION (RFC 9001 §4.1.3), or unexpected_message of TLS"
        ),
    ),
    (
        SERVER,
        "finished-after-stream|finished",
        ("(1-RTT|close).*", ANY, ANY),
        (
            "hybriq keeps early 1-RTT packets and reads "
            "them after the Finished (a MAY of RFC 9001 §5.7); the others drop them"
        ),
    ),
    (
        CLIENT,
        "flight-before-hello|hello|flight",
        (".*1-RTT.*", ANY, ANY),
        (
            "hybriq keeps packets that come before their keys, "
            "a MAY of RFC 9000 §5.2.1 and RFC 9001 §5.7; the others drop them"
        ),
    ),
    (
        SERVER,
        "(key-update|key-update-twice|reserved-bits)",
        ("–", "close 0x[ae]", "–"),
        (
            "1-RTT packets MUST NOT be processed "
            "before the handshake is complete (RFC 9001 §5.7); quinn opens them"
        ),
    ),
    (
        SERVER,
        "hello-small-datagram",
        ("–", ANY, ANY),
        (
            "A server MUST discard an Initial packet in a datagram below 1200 bytes "
            "(RFC 9000 §14.1); quinn does so for the first one only"
        ),
    ),
    (
        SERVER,
        "hello-invalid-token",
        ("Initial.*", ANY, ANY),
        (
            "A server that cannot use a token SHOULD proceed as without it "
            "(RFC 9000 §8.1.3); s2n-quic drops such a first packet, quinn such a later one"
        ),
    ),
    (
        SERVER,
        "initial-ack-unsent",
        ("–", "close 0xa", ANY),
        (
            "Before the ClientHello is whole hybriq holds no connection and sent "
            "nothing that an ACK could be compared with; RFC 9000 §13.1 says SHOULD"
        ),
    ),
    (
        BOTH,
        "initial-reserved-bits",
        ("close 0xa", ANY, ANY),
        (
            "A MUST of RFC 9000 §17.2; s2n-quic does not look at the bits of "
            "Initial packets, quinn drops the packet when it comes first"
        ),
    ),
    (
        CLIENT,
        "initial-token",
        ("–", ANY, ANY),
        "A client MUST discard the packet or close (RFC 9000 §17.2.2); quinn accepts it",
    ),
    (CLIENT, "initial-crypto-not-hello", ("close 0x10a", ANY, "close 0xa"), GENERIC),
    (
        CLIENT,
        "hello|hello-second-half|initial-.*",
        (ANY, ANY, "–"),
        (
            "s2n-quic's client drops its Initial keys with the "
            "ServerHello, before it sends a Handshake packet; RFC 9001 §4.9.1 says when it sends one first"
        ),
    ),
    (SERVER, "initial-crypto-not-hello", ("close 0x10a", "close 0x10a", "close 0xa"), GENERIC),
    (SERVER, "hello-.*|initial-.*", ("close.*", "close.*", "–"), FIRST),
    (SERVER, "hello-no-parameters|hello-.*", ("close.*", "close.*", "close 0x128"), TLS_ALERT),
    (
        CLIENT,
        "version-negotiation",
        (ANY, ANY, ANY),
        "s2n-quic's client ignores Version Negotiation",
    ),
]
