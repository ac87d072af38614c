//! Tunnels for programs with their own sockets.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

use bytes::BytesMut;

use super::tunnel::{MAX_PAYLOAD, TunnelError, UdpTunnel};

/// Joins a local UDP socket to a tunnel until the tunnel is over: datagrams that arrive at the socket are sent to the
/// target, and replies to the sender. The first program that sends is the sender; datagrams from others are dropped.
///
/// Bind the socket to a port of the loopback interface, and let the program connect to its address instead of the
/// target's.
///
/// # Errors
/// The socket cannot be used with tokio. The future fails if the tunnel ended other than by a close.
///
/// # Cancel safety
/// Dropping the future ends the tunnel.
///
/// # Examples
/// QUIC inside of a tunnel, with certificates of the target:
/// ```no_run
/// use std::net::UdpSocket;
///
/// use hybriq::{ClientConfig, Endpoint};
/// use hybriq_http::masque::{UdpTunnel, forward};
///
/// # async fn run(tunnel: UdpTunnel) -> Result<(), Box<dyn std::error::Error>> {
/// let socket = UdpSocket::bind("127.0.0.1:0")?;
/// let address = socket.local_addr()?;
/// tokio::spawn(forward(socket, tunnel)?);
/// let endpoint = Endpoint::client(ClientConfig::new())?;
/// let connection = endpoint.connect(address, "target.example").await?;
/// # Ok(())
/// # }
/// ```
pub fn forward(
    socket: UdpSocket,
    tunnel: UdpTunnel,
) -> io::Result<impl Future<Output = Result<(), TunnelError>> + Send> {
    socket.set_nonblocking(true)?;
    Ok(run(tokio::net::UdpSocket::from_std(socket)?, tunnel))
}

async fn run(socket: tokio::net::UdpSocket, tunnel: UdpTunnel) -> Result<(), TunnelError> {
    let mut sender: Option<SocketAddr> = None;
    loop {
        tokio::task::consume_budget().await;
        tokio::select! {
            payload = tunnel.recv() => {
                let Some(payload) = payload? else {
                    return Ok(());
                };
                if let Some(sender) = sender {
                    // What fails is lost, as in networks.
                    let _ = socket.send_to(&payload, sender).await;
                }
            }
            // Errors tell of packets that were sent before.
            Ok(()) = socket.readable() => {
                let room = room(&tunnel);
                let mut payload = BytesMut::with_capacity(room);
                let Ok((len, from)) = socket.try_recv_buf_from(&mut payload) else {
                    continue;
                };
                if len >= room || *sender.get_or_insert(from) != from {
                    continue;
                }
                match tunnel.send(payload.freeze()) {
                    Ok(()) | Err(TunnelError::TooLarge { .. } | TunnelError::Closed) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// Returns the room for a payload: a byte more than the tunnel takes. What fills it is too long, and may be cut.
pub(super) fn room(tunnel: &UdpTunnel) -> usize {
    tunnel.max_payload().min(MAX_PAYLOAD) + 1
}
