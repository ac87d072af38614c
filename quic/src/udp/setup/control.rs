//! Socket options that no crate has a safe function for.

#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    expect(unsafe_code, reason = "this socket option has no safe interface")
)]

use std::io;

use socket2::Socket;

use super::steer::Instruction;

/// Switches off the timestamps of received datagrams.
///
/// `quinn-udp` 0.6.3 switches them on. Its buffer for control messages is then too small for joined
/// datagrams (GRO), and the ECN codepoint, which comes last, is cut off.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(in crate::udp) fn without_timestamps(socket: &Socket) -> io::Result<()> {
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

/// Does nothing: other systems add no timestamps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(in crate::udp) fn without_timestamps(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// Attaches the program that chooses among the sockets that share an address. Returns false if the
/// system refuses.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(in crate::udp) fn steer(socket: &Socket, program: &[Instruction]) -> bool {
    use std::os::fd::AsRawFd;

    let mut program: Vec<_> = program
        .iter()
        .map(|instruction| libc::sock_filter {
            code: instruction.code,
            jt: instruction.jump_true,
            jf: instruction.jump_false,
            k: instruction.operand,
        })
        .collect();
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the pointers are valid for the sizes given, and the system only reads.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const filter).cast(),
            size_of_val(&filter) as libc::socklen_t,
        )
    };
    result == 0
}

/// Returns false: other systems cannot choose by connection id.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(in crate::udp) fn steer(_: &Socket, _: &[Instruction]) -> bool {
    false
}
