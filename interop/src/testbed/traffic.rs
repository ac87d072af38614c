//! A download by TCP that shares the link: the runner's cross traffic.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use rustix::net::sockopt;

/// Port of the download.
pub(super) const PORT: u16 = 5201;

/// Sends to the first client until it is gone.
///
/// # Errors
/// The port cannot be had.
pub fn send() -> io::Result<()> {
    let (mut stream, _) = TcpListener::bind(("::", PORT))?.accept()?;
    // As the runner's: some machines prefer BBR, which leaves others a tenth of such a link.
    sockopt::set_tcp_congestion(&stream, "cubic")?;
    let chunk = [0; 16 * 1024];
    while stream.write_all(&chunk).is_ok() {}
    Ok(())
}

/// Reads from a sender until it is gone.
///
/// # Errors
/// There is none.
pub fn receive(host: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect((host, PORT))?;
    let mut chunk = [0; 16 * 1024];
    while stream.read(&mut chunk)? > 0 {}
    Ok(())
}
