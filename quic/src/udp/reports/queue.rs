//! ICMP reports by routers and hosts about our datagrams, from the error queue of a socket.

#![expect(unsafe_code, reason = "the error queue has no safe interface")]

use std::{io, mem, net::SocketAddr, os::fd::AsRawFd as _, ptr};

use hybriq_proto::wire::{error::SystemError, udp::canonical};
use socket2::{SockAddr, SockRef};

/// Number of bytes read from the reported datagram: enough for the connection ids of a client's
/// first one.
const QUOTED: usize = 64;

/// Room for the control message: an error, and the address of its sender.
const CONTROL: usize = 256;

/// Control messages, aligned as the system requires.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// A report that a datagram did not arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Address that the datagram was for.
    pub(crate) peer: SocketAddr,
    /// Reason for the failure.
    pub(crate) reason: SystemError,
    quoted: [u8; QUOTED],
    len: usize,
}

impl Report {
    /// Returns the first bytes of the datagram, as far as the report quotes them.
    pub(crate) fn quoted(&self) -> &[u8] {
        self.quoted.get(..self.len).unwrap_or_default()
    }
}

/// Sets whether the system keeps reports for a socket. While it does, each report may also appear
/// once as the error of an unrelated call.
pub(in crate::udp) fn keep(socket: &SockRef<'_>, is_v4: bool, keep: bool) -> io::Result<()> {
    let value = libc::c_int::from(keep);
    let set = |level, option| {
        // SAFETY: the pointer is valid for the size given, and the system only reads.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of_val(&value) as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    if is_v4 {
        return set(libc::IPPROTO_IP, libc::IP_RECVERR);
    }
    set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR)?;
    // For the IPv4 side of the socket, if it has one.
    let _ = set(libc::IPPROTO_IP, libc::IP_RECVERR);
    Ok(())
}

/// Takes entries from the error queue until one is a report about a datagram; `None` when the queue is empty.
pub(in crate::udp) fn next(socket: &SockRef<'_>) -> Option<Report> {
    loop {
        match take(socket) {
            Ok(Some(report)) => return Some(report),
            Ok(None) => {}
            Err(_) => return None,
        }
    }
}

/// Takes one entry. Fails if there is none.
fn take(socket: &SockRef<'_>) -> io::Result<Option<Report>> {
    let mut quoted = [0; QUOTED];
    let mut control = Control([0; CONTROL]);
    let mut contents = libc::iovec {
        iov_base: quoted.as_mut_ptr().cast(),
        iov_len: quoted.len(),
    };
    // SAFETY: a header of zeroes is a valid one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut contents;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the system writes an address into the storage, whose size is given, and into the
    // other buffers no more than their sizes.
    let (len, peer) = unsafe {
        SockAddr::try_init(|storage, size| {
            message.msg_name = storage.cast();
            message.msg_namelen = *size;
            let len = libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags);
            if len < 0 {
                return Err(io::Error::last_os_error());
            }
            *size = message.msg_namelen;
            Ok(len as usize)
        })?
    };
    let report = peer.as_socket().zip(code(&message)).map(|(peer, code)| {
        let reason = SystemError::from(&io::Error::from_raw_os_error(code));
        Report {
            peer: canonical(peer),
            reason,
            quoted,
            len: len.min(QUOTED),
        }
    });
    Ok(report)
}

/// Returns the code of the error, if it arrived by ICMP.
fn code(message: &libc::msghdr) -> Option<i32> {
    // SAFETY: the header describes control messages that the system wrote.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: the pointer is to a header among the control messages.
        let header = unsafe { ptr::read_unaligned(next) };
        let is_error = matches!(
            (header.cmsg_level, header.cmsg_type),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        );
        // SAFETY: the macro only computes a size.
        let least = unsafe { libc::CMSG_LEN(size_of::<libc::sock_extended_err>() as libc::c_uint) };
        if is_error && header.cmsg_len as usize >= least as usize {
            // SAFETY: the message is long enough for the error behind its header.
            let error: libc::sock_extended_err =
                unsafe { ptr::read_unaligned(libc::CMSG_DATA(next).cast()) };
            let by_icmp = [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6];
            let errno = i32::try_from(error.ee_errno).ok();
            return errno.filter(|_| by_icmp.contains(&error.ee_origin));
        }
        // SAFETY: both pointers are among the control messages.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}
