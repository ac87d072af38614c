//! Sending with `sendmsg(2)`, which remembers no failure.
//!
//! `quinn-udp` takes EINVAL and EIO as a sign that the system has no GSO or no ECN, and stops using
//! them. But both errors can also come from an impossible destination or source address: a peer
//! that makes this end answer to one would slow down all other peers.

#![expect(unsafe_code, reason = "control messages have no safe interface")]

use std::{io, mem, net::IpAddr, os::fd::AsRawFd as _, ptr};

use quinn_udp::Transmit;
use socket2::{SockAddr, SockRef};

/// Room for the control messages of a datagram: its ECN codepoint, the segment size, our address.
const CONTROL: usize = 96;

/// Control messages of a datagram.
#[repr(C, align(8))]
struct Control {
    bytes: [u8; CONTROL],
    len: usize,
}

impl Control {
    fn of(transmit: &Transmit<'_>) -> Self {
        let mut control = Self {
            bytes: [0; CONTROL],
            len: 0,
        };
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as libc::c_int);
        if transmit.destination.ip().to_canonical().is_ipv4() {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, ecn);
        } else {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, ecn);
        }
        // Some drivers refuse a train of one datagram.
        let size = transmit.segment_size;
        if let Some(size) = size.filter(|size| *size < transmit.contents.len()) {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, size as u16);
        }
        match transmit.src_ip {
            Some(IpAddr::V4(ip)) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from_ne_bytes(ip.octets()),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            Some(IpAddr::V6(ip)) => {
                let info = libc::in6_pktinfo {
                    ipi6_ifindex: 0,
                    ipi6_addr: libc::in6_addr {
                        s6_addr: ip.octets(),
                    },
                };
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
            None => {}
        }
        control
    }

    /// Adds a control message.
    fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        let size = size_of::<T>() as libc::c_uint;
        // SAFETY: the macros only compute sizes.
        let (space, len) = unsafe { (libc::CMSG_SPACE(size), libc::CMSG_LEN(size)) };
        let Some(room) = self.bytes.get_mut(self.len..self.len + space as usize) else {
            debug_assert!(false, "no room for a control message");
            return;
        };
        // SAFETY: a header of zeroes is a valid one.
        let mut header: libc::cmsghdr = unsafe { mem::zeroed() };
        header.cmsg_len = len as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        let start = room.as_mut_ptr();
        // SAFETY: the space holds a header, and behind it, where CMSG_LEN(0) says, the value;
        // neither write needs alignment.
        unsafe {
            ptr::write_unaligned(start.cast(), header);
            ptr::write_unaligned(start.add(libc::CMSG_LEN(0) as usize).cast(), value);
        }
        self.len += space as usize;
    }
}

/// Sends one datagram, or several of one size.
pub(super) fn send(socket: &SockRef<'_>, transmit: &Transmit<'_>) -> io::Result<()> {
    let peer = SockAddr::from(transmit.destination);
    let mut contents = libc::iovec {
        iov_base: transmit.contents.as_ptr().cast_mut().cast(),
        iov_len: transmit.contents.len(),
    };
    let mut control = Control::of(transmit);
    // SAFETY: a header of zeroes is a valid one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_name = peer.as_ptr().cast_mut().cast();
    message.msg_namelen = peer.len();
    message.msg_iov = &raw mut contents;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.as_mut_ptr().cast();
    message.msg_controllen = control.len as _;
    loop {
        // SAFETY: all pointers are valid for the sizes given, and the system only reads.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
