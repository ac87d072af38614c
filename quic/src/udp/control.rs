//! Socket options that no crate has a function for.

#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    expect(unsafe_code, reason = "this socket option has no safe interface")
)]

use std::io;

use socket2::Socket;

/// Asks the system not to say when datagrams came.
///
/// `quinn-udp` 0.6.3 asks for it and then has no room for all that is said about joined datagrams
/// (GRO): what is cut off is the ECN codepoint, which is said last.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn without_timestamps(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let off: libc::c_int = 0;
    // SAFETY: the pointer is valid for the size given, and the system only reads.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const off).cast(),
            size_of_val(&off) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Nothing is said elsewhere.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(super) fn without_timestamps(_: &Socket) -> io::Result<()> {
    Ok(())
}
