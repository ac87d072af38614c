//! The flags for the axes, which every scenario has.

/// A flag for an axis.
pub(crate) struct AxisFlag {
    pub(crate) axis: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) value: &'static str,
    pub(crate) help: &'static str,
}

pub(crate) const AXES: [AxisFlag; 14] = [
    AxisFlag {
        axis: "group",
        aliases: &["groups"],
        value: "NAMES",
        help: "Key-exchange groups, or `all` [default: X25519MLKEM768]",
    },
    AxisFlag {
        axis: "driver",
        aliases: &["stack", "stacks"],
        value: "NAMES",
        help: "Stacks, or `all` that are built in (`netbench drivers`) [default: hybriq]",
    },
    AxisFlag {
        axis: "client",
        aliases: &[],
        value: "NAMES",
        help: "The client's stack, where it is another",
    },
    AxisFlag {
        axis: "provider",
        aliases: &["tls"],
        value: "NAMES",
        help: "TLS provider of the server: rustls, s2n-tls [default: rustls]. Clients have rustls, \
               which can offer exactly one group",
    },
    AxisFlag {
        axis: "hello_retry",
        aliases: &[],
        value: "yes,no",
        help: "Whether the client first sends a share of another group, so that the server asks \
               for one more round trip [default: no]",
    },
    AxisFlag {
        axis: "certificate",
        aliases: &[],
        value: "NAMES",
        help: "Certificates: ecdsa-p256, ecdsa-p384, rsa-2048, ed25519, ml-dsa-44, ml-dsa-65, \
               ml-dsa-87, or `all` [default: ecdsa-p256]",
    },
    AxisFlag {
        axis: "chain",
        aliases: &[],
        value: "N",
        help: "Certificates that a server sends [default: 1]",
    },
    AxisFlag {
        axis: "workers",
        aliases: &[],
        value: "N",
        help: "Workers of the server, each with a socket and a thread of its own; hybriq only \
               [default: 1, on the thread of the application]",
    },
    AxisFlag {
        axis: "suite",
        aliases: &[],
        value: "NAMES",
        help: "Cipher suites, or `all` [default: TLS_AES_128_GCM_SHA256]",
    },
    AxisFlag {
        axis: "resumption",
        aliases: &[],
        value: "NAMES",
        help: "How connections begin: full, psk, 0-rtt, or `all` [default: full]",
    },
    AxisFlag {
        axis: "client_auth",
        aliases: &[],
        value: "yes,no",
        help: "Whether clients show a certificate too [default: no]",
    },
    AxisFlag {
        axis: "congestion",
        aliases: &[],
        value: "NAMES",
        help: "Congestion controllers, for stacks that have a choice (`netbench drivers`) [default: \
               the stack's]",
    },
    AxisFlag {
        axis: "link",
        aliases: &["cases"],
        value: "LINKS",
        help: "Links between client and server: clean, fast, lossy, shallow, bursts, reordered, \
               blackout, long, marked, `all`, none, or in the words of `netbench link`: \
               \"--delay 25ms --rate 20mbit\". Repeatable [default: none]",
    },
    AxisFlag {
        axis: "profile",
        aliases: &[],
        value: "NAME",
        help: "Rules of an authority: default, cnsa2, bsi, anssi, asd, fips140. Groups, suites and \
               certificates that are not given are its first choice; what it forbids is refused",
    },
];
