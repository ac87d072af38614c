//! Proxies for connections over TCP: CONNECT of HTTP/1.1 (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928).

use std::{
    fmt, io,
    net::IpAddr,
    pin::Pin,
    str::FromStr,
    task::{Context, Poll},
};

use base64ct::{Base64, Encoding as _};
use http::{StatusCode, Uri};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

use crate::client::{error::ProxyError, origin::Origin};

/// Most bytes of the answer to CONNECT.
const ANSWER: usize = 16 << 10;

/// A proxy for connections over TCP, for [`ClientBuilder::proxy`](crate::ClientBuilder::proxy): an HTTP proxy that
/// supports CONNECT, as `http://host:port` or `https://host:port`, or a SOCKS5 proxy, as `socks5://host:port`. The
/// default port is 80, 443 or 1080.
///
/// HTTP/2 and HTTP/1.1 go through its tunnel with TLS, so the proxy sees names and sizes. It resolves the names of servers;
/// [`Peer::address`](crate::Peer) is its own address. Nothing is sent around it, so HTTP/3 is not used.
///
/// # Security
/// The credentials go to the proxy unencrypted, unless its scheme is `https`. They appear in no error, log or `Debug`
/// text. To an `https` proxy, the client's configuration applies as to a server: trust, key exchange, and the client's
/// certificate if the proxy asks for one.
#[derive(Clone)]
pub struct Proxy {
    kind: Kind,
    place: Origin,
    credentials: Option<(String, String)>,
    excepted: Vec<Origin>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Http,
    Https,
    Socks5,
}

impl Kind {
    fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }
}

/// Reason why a [`Proxy`] could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProxy {
    /// The text does not name a proxy. It may have credentials, so it is not repeated here.
    #[error(
        "the proxy must be http://host:port, https://host:port or socks5://host:port; credentials go to \
         Proxy::credentials"
    )]
    Uri,
    /// The credentials cannot be sent: for SOCKS5 each has 1 to 255 bytes (RFC 1929), and for HTTP the user has no colon
    /// (RFC 7617 §2).
    #[error("the user must have 1 to 255 bytes and no colon, the password 1 to 255 bytes")]
    Credentials,
}

impl FromStr for Proxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let uri: Uri = text.parse().map_err(|_| InvalidProxy::Uri)?;
        let (kind, port) = match uri.scheme_str() {
            Some("http") => (Kind::Http, 80),
            Some("https") => (Kind::Https, 443),
            Some("socks5") => (Kind::Socks5, 1080),
            _ => return Err(InvalidProxy::Uri),
        };
        let authority = uri.authority().filter(|authority| {
            let rest = uri.path_and_query().map_or("", |rest| rest.as_str());
            !authority.as_str().contains('@') && matches!(rest, "" | "/")
        });
        let place = authority.and_then(|authority| Origin::at(authority, port));
        Ok(Self {
            kind,
            place: place.ok_or(InvalidProxy::Uri)?,
            credentials: None,
            excepted: Vec::new(),
        })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), self.place)
    }
}

impl Proxy {
    /// Sets user and password, for Basic authentication (RFC 7617) or that of SOCKS5 (RFC 1929).
    ///
    /// # Errors
    /// They cannot be sent.
    pub fn credentials(
        mut self,
        user: impl Into<String>,
        password: impl Into<String>,
    ) -> Result<Self, InvalidProxy> {
        let (user, password) = (user.into(), password.into());
        let is_sendable = |text: &str| (1..=255).contains(&text.len());
        if !is_sendable(&user) || !is_sendable(&password) || user.contains(':') {
            return Err(InvalidProxy::Credentials);
        }
        self.credentials = Some((user, password));
        Ok(self)
    }

    /// Excepts a host and all names below it: requests to them go directly.
    #[must_use]
    pub fn except(mut self, host: &str) -> Self {
        self.excepted.push(Origin::new(host, 0));
        self
    }

    /// Returns true if requests to this server go through the proxy.
    pub(super) fn is_for(&self, server: &Origin) -> bool {
        !self.excepted.iter().any(|excepted| {
            let above = server.host().strip_suffix(excepted.host());
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        })
    }

    /// Returns host and port of the proxy.
    pub(in crate::client) fn place(&self) -> &Origin {
        &self.place
    }

    /// Makes a tunnel to a server on a connection to the proxy, with this TLS if the proxy wants any.
    pub(super) async fn tunnel(
        &self,
        mut stream: TcpStream,
        tls: &TlsConnector,
        server: &Origin,
    ) -> Result<Way, ProxyError> {
        match self.kind {
            Kind::Http => self.connect(&mut stream, server).await?,
            Kind::Socks5 => self.socks5(&mut stream, server).await?,
            Kind::Https => {
                let name = ServerName::try_from(self.place.host().to_owned());
                let name = name.map_err(io::Error::other)?;
                let mut stream = tls.connect(name, stream).await?;
                self.connect(&mut stream, server).await?;
                return Ok(Way::Encrypted(Box::new(stream)));
            }
        }
        Ok(Way::Direct(stream))
    }

    async fn connect<S>(&self, stream: &mut S, server: &Origin) -> Result<(), ProxyError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut head = format!("CONNECT {server} HTTP/1.1\r\nhost: {server}\r\n");
        if let Some((user, password)) = &self.credentials {
            let basic = Base64::encode_string(format!("{user}:{password}").as_bytes());
            head.extend(["proxy-authorization: Basic ", &basic, "\r\n"]);
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await?;
        match answer(stream).await? {
            status if status.is_success() => Ok(()),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(ProxyError::Credentials),
            status => Err(ProxyError::Refused(status)),
        }
    }

    async fn socks5<S>(&self, stream: &mut S, server: &Origin) -> Result<(), ProxyError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        const MALFORMED: ProxyError = ProxyError::Malformed("SOCKS5");
        let methods: &[u8] = match self.credentials {
            Some(_) => &[5, 2, 0, 2],
            None => &[5, 1, 0],
        };
        stream.write_all(methods).await?;
        match (read(stream).await?, &self.credentials) {
            ([5, 0], _) => {}
            ([5, 2], Some((user, password))) => {
                let mut message = vec![1];
                for text in [user, password] {
                    message.push(u8::try_from(text.len()).map_err(|_| ProxyError::Credentials)?);
                    message.extend_from_slice(text.as_bytes());
                }
                stream.write_all(&message).await?;
                let [_, status] = read(stream).await?;
                if status != 0 {
                    return Err(ProxyError::Credentials);
                }
            }
            ([5, 0xff], _) => return Err(ProxyError::Credentials),
            _ => return Err(MALFORMED),
        }
        let mut message = vec![5, 1, 0];
        let host = server.host();
        match host.parse() {
            Ok(IpAddr::V4(address)) => {
                message.push(1);
                message.extend(address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                message.push(4);
                message.extend(address.octets());
            }
            Err(_) => {
                let len = u8::try_from(host.len());
                let len = len.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
                message.extend([3, len]);
                message.extend_from_slice(host.as_bytes());
            }
        }
        message.extend(server.port().to_be_bytes());
        stream.write_all(&message).await?;
        let [version, reply, _, kind] = read(stream).await?;
        if version != 5 {
            return Err(MALFORMED);
        }
        if reply != 0 {
            return Err(ProxyError::Reply(reply));
        }
        // The address by which the proxy reaches the server, and its port.
        let len = match kind {
            1 => 4,
            3 => {
                let [len] = read(stream).await?;
                usize::from(len)
            }
            4 => 16,
            _ => return Err(MALFORMED),
        };
        stream.read_exact(&mut vec![0; len + 2]).await?;
        Ok(())
    }
}

/// The way of a connection: to the server, or through a tunnel of a proxy.
pub(super) enum Way {
    Direct(TcpStream),
    /// TLS to the proxy.
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Way {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Way {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_write(cx, data),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_write_vectored(cx, data),
            Self::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, data),
        }
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Direct(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

async fn read<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the final answer to CONNECT. The server behind the proxy says nothing before the client does, so nothing may
/// come after it.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> Result<StatusCode, ProxyError> {
    const MALFORMED: ProxyError = ProxyError::Malformed("HTTP/1.1");
    let (mut head, mut all) = (Vec::new(), 0);
    let mut chunk = [0; 1024];
    loop {
        let seen = head.len().saturating_sub(3);
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        all += read;
        head.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let mut ends = head.windows(4).skip(seen).zip(seen + 4..);
        let mut end = ends.find_map(|(bytes, end)| (bytes == b"\r\n\r\n").then_some(end));
        while let Some(after) = end {
            let status = status(&head).ok_or(MALFORMED)?;
            if !status.is_informational() {
                let is_last = after == head.len() || !status.is_success();
                return if is_last { Ok(status) } else { Err(MALFORMED) };
            }
            head.drain(..after);
            let next = head.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            end = next.map(|start| start + 4);
        }
        if head
            .iter()
            .zip(b"HTTP/1.")
            .any(|(byte, expected)| byte != expected)
        {
            return Err(MALFORMED);
        }
        if all >= ANSWER {
            return Err(ProxyError::TooLong(ANSWER));
        }
    }
}

/// Returns the status of an answer (RFC 9112 §4).
fn status(head: &[u8]) -> Option<StatusCode> {
    let (minor, rest) = head.strip_prefix(b"HTTP/1.")?.split_first()?;
    let (code, rest) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
    let is_line = minor.is_ascii_digit() && matches!(rest.first(), Some(b' ' | b'\r'));
    StatusCode::from_bytes(code).ok().filter(|_| is_line)
}
