//! The stacks that netbench can measure.

use std::fmt;

/// A stack: an implementation of QUIC, or TLS over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stack {
    /// This project's stack.
    Hybriq,
    /// nginx: a program of its own, which serves HTTP/3.
    Nginx,
    /// noq with rustls.
    Noq,
    /// quic-go: such a program.
    QuicGo,
    /// quiche with BoringSSL.
    Quiche,
    /// quinn with rustls.
    Quinn,
    /// s2n-quic with rustls or s2n-tls.
    S2nQuic,
    /// rustls over TCP, with yamux for several streams.
    TcpTls,
    /// tokio-quiche: a program of its own.
    TokioQuiche,
}

impl Stack {
    /// All stacks, in the order of their names.
    pub(crate) const ALL: [Self; 9] = [
        Self::Hybriq,
        Self::Nginx,
        Self::Noq,
        Self::QuicGo,
        Self::Quiche,
        Self::Quinn,
        Self::S2nQuic,
        Self::TcpTls,
        Self::TokioQuiche,
    ];

    /// Returns its name on the command line and in files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hybriq => "hybriq",
            Self::Nginx => "nginx",
            Self::Noq => "noq",
            Self::QuicGo => "quic-go",
            Self::Quiche => "quiche",
            Self::Quinn => "quinn",
            Self::S2nQuic => "s2n-quic",
            Self::TcpTls => "tcp-tls",
            Self::TokioQuiche => "tokio-quiche",
        }
    }

    /// Returns true if it is a program of its own, which netbench starts as a server.
    pub(crate) const fn is_program(self) -> bool {
        matches!(self, Self::Nginx | Self::QuicGo | Self::TokioQuiche)
    }

    /// Returns the cargo feature that builds it in; `None` if it is always built in, or is a program.
    pub(crate) const fn feature(self) -> Option<&'static str> {
        match self {
            Self::Hybriq | Self::Nginx | Self::QuicGo | Self::TcpTls | Self::TokioQuiche => None,
            Self::Noq => Some("noq"),
            Self::Quiche => Some("quiche"),
            Self::Quinn => Some("quinn"),
            Self::S2nQuic => Some("s2n-quic"),
        }
    }

    /// Returns true if it is a part of this program.
    pub(crate) const fn is_built_in(self) -> bool {
        match self {
            Self::Hybriq | Self::TcpTls => true,
            Self::Nginx | Self::QuicGo | Self::TokioQuiche => false,
            Self::Noq => cfg!(feature = "noq"),
            Self::Quiche => cfg!(feature = "quiche"),
            Self::Quinn => cfg!(feature = "quinn"),
            Self::S2nQuic => cfg!(feature = "s2n-quic"),
        }
    }

    /// Returns the stacks that this program can run.
    pub(crate) fn built_in() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|stack| stack.is_built_in())
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
