//! quiche on BoringSSL. quiche does no I/O: an [`Endpoint`] moves its datagrams, and a [`Line`] lets
//! many tasks wait for one connection. Nothing here is `Send`: it runs in a `LocalSet`.

mod endpoint;
mod line;
mod pump;
mod socket;
mod stream;
mod tls;

use std::fmt;

pub use ::quiche::Config;
pub use endpoint::{Admission, Endpoint};
pub use line::{Kind, Line, Shares};
pub use stream::{Receiver, Sender};
pub use tls::curve;

use super::{Close, Failure, Tls, Transport};

/// Limits that quiche's own tools use; the library's defaults allow a peer nothing.
const STREAM_WINDOW: u64 = 1_000_000;
const CONNECTION_WINDOW: u64 = 10_000_000;
const STREAMS: u64 = 100;
const IDLE_TIMEOUT_MS: u64 = 30_000;
const DATAGRAM_SIZE: u16 = 1350;
/// Maximum number of unreliable datagrams waiting to be sent or received.
const DATAGRAM_QUEUE: usize = 1024;

/// Reason for the end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Closed by a transport.
    Transport(Close),
    /// Closed by an application, of either end.
    Application {
        /// Error code.
        code: u64,
        /// Reason that the application gave.
        reason: String,
    },
    /// Nothing came from the peer for too long.
    TimedOut,
    /// The peer lost the connection.
    Lost,
}

impl Ended {
    fn of(quic: &line::Quic) -> Self {
        use hybriq::error::By;
        let (by, error) = match (quic.peer_error(), quic.local_error()) {
            (Some(error), _) => (By::Peer, error),
            (None, Some(error)) => (By::Local, error),
            (None, None) if quic.is_timed_out() => return Self::TimedOut,
            (None, None) => return Self::Lost,
        };
        let reason = String::from_utf8_lossy(&error.reason).into_owned();
        let code = error.error_code;
        if error.is_app {
            Self::Application { code, reason }
        } else {
            Self::Transport(Close { by, code, reason })
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(close) => f.write_str(&close.reason),
            Self::Application { code, reason } => write!(f, "closed with {code}: {reason}"),
            Self::TimedOut => f.write_str("nothing came"),
            Self::Lost => f.write_str("the peer lost the connection"),
        }
    }
}

/// Failure of a stream or of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The peer stopped the stream with that code.
    Stopped(u64),
    /// The peer reset the stream with that code.
    Reset(u64),
    /// The connection is over.
    Ended(Ended),
    /// Anything else.
    Other(::quiche::Error),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(code) => write!(f, "the peer wants no more of it: {code}"),
            Self::Reset(code) => write!(f, "the peer gave it up: {code}"),
            Self::Ended(ended) => ended.fmt(f),
            Self::Other(error) => error.fmt(f),
        }
    }
}

/// Returns a server's configuration.
pub fn server(tls: &Tls<'_>, settings: &Transport<'_>) -> Result<Config, Failure> {
    configured(tls::server(tls)?, tls, settings)
}

/// Returns a client's configuration.
pub fn client(tls: &Tls<'_>, settings: &Transport<'_>) -> Result<Config, Failure> {
    configured(tls::client(tls)?, tls, settings)
}

fn configured(
    boring: boring::ssl::SslContextBuilder,
    tls: &Tls<'_>,
    settings: &Transport<'_>,
) -> Result<Config, Failure> {
    let mut config = Config::with_boring_ssl_ctx_builder(::quiche::PROTOCOL_VERSION, boring)?;
    config.set_application_protos(&[tls.alpn.as_bytes()])?;
    if tls.tickets == super::Tickets::EarlyData {
        config.enable_early_data();
    }
    if let Some(windows) = settings.windows {
        config.set_max_connection_window(windows.connection.into());
        config.set_max_stream_window(windows.stream.into());
    }
    let window = |of: fn(super::Windows) -> u32, default| {
        settings
            .windows
            .map_or(default, |windows| of(windows).into())
    };
    let stream = window(|windows| windows.stream, STREAM_WINDOW);
    config.set_initial_max_data(window(|windows| windows.connection, CONNECTION_WINDOW));
    config.set_initial_max_stream_data_bidi_local(window(
        |windows| windows.local_stream,
        STREAM_WINDOW,
    ));
    config.set_initial_max_stream_data_bidi_remote(stream);
    config.set_initial_max_stream_data_uni(stream);
    let streams = settings.max_streams.unwrap_or(STREAMS);
    config.set_initial_max_streams_bidi(streams);
    config.set_initial_max_streams_uni(streams);
    let timeout = settings.idle_timeout.map(|time| time.as_millis() as u64);
    config.set_max_idle_timeout(timeout.unwrap_or(IDLE_TIMEOUT_MS));
    let size = settings.datagram_size.unwrap_or(DATAGRAM_SIZE);
    config.set_max_send_udp_payload_size(size.into());
    config.enable_dgram(true, DATAGRAM_QUEUE, DATAGRAM_QUEUE);
    if let Some(name) = settings.congestion {
        config.set_cc_algorithm_name(congestion(name)?)?;
    }
    Ok(config)
}

fn congestion(name: &str) -> Result<&'static str, Failure> {
    match name {
        "new-reno" => Ok("reno"),
        "cubic" => Ok("cubic"),
        "bbr" => Ok("bbr2_gcongestion"),
        _ => Err(format!(
            "quiche has no congestion controller '{name}'; valid: new-reno, cubic, bbr"
        )
        .into()),
    }
}
