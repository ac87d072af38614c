//! What only the operating system can tell or do. The only `unsafe` of this crate.
#![expect(
    unsafe_code,
    reason = "affinity, resource usage, the parent-death signal, timers and waiting for several \
              sockets have no safe interface in std"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

/// What this process used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time in user mode.
    pub(crate) user: Duration,
    /// CPU time in the kernel.
    pub(crate) system: Duration,
    /// Times it waited.
    pub(crate) voluntary_switches: u64,
    /// Times it was made to.
    pub(crate) involuntary_switches: u64,
}

/// What this process used so far.
pub(crate) fn usage() -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is valid for one `rusage`, which the call fills where it returns 0.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage.assume_init()
    };
    Ok(Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
        involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
    })
}

/// CPU time this process used so far, user and system.
pub(crate) fn cpu_time() -> io::Result<Duration> {
    usage().map(|usage| usage.user + usage.system)
}

fn duration(time: libc::timeval) -> Duration {
    let micros = u32::try_from(time.tv_usec).unwrap_or(0);
    Duration::new(time.tv_sec.unsigned_abs(), micros * 1000)
}

/// Has the kernel end this process when its parent ends, however that comes about. A parent that
/// was gone before has hung up standard input; what it wrote there must not start any work.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes one integer and touches no memory of ours.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    check(result)?;
    let mut stdin = libc::pollfd {
        fd: libc::STDIN_FILENO,
        events: 0,
        revents: 0,
    };
    // SAFETY: the pointer is to one `pollfd`, which is the count given.
    check(unsafe { libc::poll(&raw mut stdin, 1, 0) }.min(0))?;
    if stdin.revents & libc::POLLHUP != 0 {
        return Err(io::Error::other("the parent is gone"));
    }
    Ok(())
}

/// Elsewhere the end of standard input alone tells.
#[cfg(not(target_os = "linux"))]
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

/// The cores this process may run on.
#[cfg(target_os = "linux")]
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the pointer is valid for the size given, and all zeroes is a valid `cpu_set_t`.
    let set = unsafe {
        check(libc::sched_getaffinity(
            0,
            size_of::<libc::cpu_set_t>(),
            set.as_mut_ptr(),
        ))?;
        set.assume_init()
    };
    let highest = libc::CPU_SETSIZE.unsigned_abs() as usize;
    // SAFETY: every index is below CPU_SETSIZE.
    Ok((0..highest)
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect())
}

/// No pinning: nothing is allowed in particular.
#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    Ok(Vec::new())
}

/// Keeps this process on one core.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE.unsigned_abs() as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: all zeroes is a valid `cpu_set_t`, the core is below CPU_SETSIZE, and the pointer is
    // valid for the size given.
    unsafe {
        libc::CPU_SET(core, set.assume_init_mut());
        check(libc::sched_setaffinity(
            0,
            size_of::<libc::cpu_set_t>(),
            set.as_ptr(),
        ))
    }
}

/// No pinning elsewhere.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_core(_: usize) -> io::Result<()> {
    Ok(())
}

/// Has the kernel wake this thread when its time is up, not up to 50 µs later, and before others
/// where that is allowed.
#[cfg(target_os = "linux")]
pub(crate) fn wake_punctually() -> io::Result<()> {
    // SAFETY: it takes integers and touches no memory of ours. Only the privileged may do it.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    let nanosecond: libc::c_ulong = 1;
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanosecond) })
}

/// Elsewhere timers are what they are.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wake_punctually() -> io::Result<()> {
    Ok(())
}

/// Datagrams the kernel dropped because a socket's buffer was full.
#[cfg(target_os = "linux")]
pub(crate) fn socket_drops(socket: &impl AsRawFd) -> u64 {
    // The place of the drops, and how many figures there are (linux/sock_diag.h).
    const DROPS: usize = 8;
    let mut figures = [0_u32; DROPS + 1];
    let mut len = size_of_val(&figures) as libc::socklen_t;
    // SAFETY: the pointer is valid for `len` bytes, which the kernel does not exceed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result == 0 {
        u64::from(figures[DROPS])
    } else {
        0
    }
}

/// Elsewhere the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn socket_drops(_: &impl AsRawFd) -> u64 {
    0
}

/// What the kernel counted on a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpCounts {
    pub(crate) segments_sent: u64,
    pub(crate) segments_received: u64,
    /// Payload, also of segments that were sent again.
    pub(crate) bytes_sent: u64,
    /// Payload, each byte once.
    pub(crate) bytes_received: u64,
    pub(crate) retransmitted: u64,
    /// Retransmission timeouts; 0 before Linux 6.7, which does not count them.
    pub(crate) timeouts: u64,
}

/// Asks for the counters of a TCP connection. `None`: this kernel does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn tcp_counts(socket: &impl AsRawFd) -> Option<TcpCounts> {
    // Where `struct tcp_info` (linux/tcp.h) has them; `libc` knows only its beginning.
    const TOTAL_RETRANSMISSIONS: usize = 100;
    const BYTES_RECEIVED: usize = 128;
    const SEGMENTS_OUT: usize = 136;
    const SEGMENTS_IN: usize = 140;
    const BYTES_SENT: usize = 200;
    const TOTAL_TIMEOUTS: usize = 240;
    let mut info = [0_u8; 248];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the pointer is valid for `len` bytes, which the kernel does not exceed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 || (len as usize) < BYTES_SENT + 8 {
        return None;
    }
    let short = |at| u64::from(u16::from_ne_bytes(*field(&info, at)));
    let word = |at| u64::from(u32::from_ne_bytes(*field(&info, at)));
    let long = |at| u64::from_ne_bytes(*field(&info, at));
    Some(TcpCounts {
        segments_sent: word(SEGMENTS_OUT),
        segments_received: word(SEGMENTS_IN),
        bytes_sent: long(BYTES_SENT),
        bytes_received: long(BYTES_RECEIVED),
        retransmitted: word(TOTAL_RETRANSMISSIONS),
        timeouts: short(TOTAL_TIMEOUTS),
    })
}

/// Some bytes of a structure.
#[cfg(target_os = "linux")]
fn field<const LEN: usize>(bytes: &[u8; 248], at: usize) -> &[u8; LEN] {
    bytes[at..]
        .first_chunk()
        .expect("every field lies within the structure")
}

/// Elsewhere the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tcp_counts(_: &impl AsRawFd) -> Option<TcpCounts> {
    None
}

/// A timer of the kernel: it becomes readable when its time is up, to the microsecond.
pub(crate) struct Timer(OwnedFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(target_os = "linux")]
impl Timer {
    /// `None`: this system has none.
    pub(crate) fn new() -> io::Result<Option<Self>> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: it takes integers and touches no memory of ours.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and belongs to nobody else.
        Ok(Some(Self(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Has it go off once, after that time and no sooner than at once.
    pub(crate) fn set(&self, delay: Duration) -> io::Result<()> {
        let none = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // A delay of nothing would switch it off.
        let delay = delay.max(Duration::from_nanos(1));
        let value = libc::itimerspec {
            it_interval: none,
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(delay.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: libc::c_long::from(delay.subsec_nanos().cast_signed()),
            },
        };
        let fd = self.0.as_raw_fd();
        // SAFETY: the pointer is to one `itimerspec`, which outlives the call.
        check(unsafe { libc::timerfd_settime(fd, 0, &raw const value, std::ptr::null_mut()) })
    }

    /// Makes it unreadable until its next time.
    pub(crate) fn acknowledge(&self) -> io::Result<()> {
        let mut count = 0_u64;
        let len = size_of_val(&count);
        // SAFETY: the pointer is valid for `len` bytes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), len) };
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Timer {
    /// None elsewhere.
    pub(crate) fn new() -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(crate) fn set(&self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn acknowledge(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What the kernel may leave unsaid about what is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// Which of our addresses it came to.
    Destination,
    /// When it came.
    Time,
}

/// Has the kernel say less.
#[cfg(target_os = "linux")]
pub(crate) fn leave_unsaid(socket: &impl AsRawFd, what: Unsaid) -> io::Result<()> {
    let off: libc::c_int = 0;
    let switch = |level, name| {
        // SAFETY: the pointer is valid for the size given, and the kernel only reads.
        check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const off).cast(),
                size_of_val(&off) as libc::socklen_t,
            )
        })
    };
    match what {
        Unsaid::Time => switch(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        Unsaid::Destination => {
            // A socket of IPv4 does not know this one.
            let _ = switch(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);
            switch(libc::IPPROTO_IP, libc::IP_PKTINFO)
        }
    }
}

/// Elsewhere it says little anyway.
#[cfg(not(target_os = "linux"))]
pub(crate) fn leave_unsaid(_: &impl AsRawFd, _: Unsaid) -> io::Result<()> {
    Ok(())
}

/// Sockets to wait for.
#[derive(Default)]
pub(crate) struct PollSet(Vec<libc::pollfd>);

impl PollSet {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds one that is to be read. One that is closed by then counts as ready.
    pub(crate) fn add(&mut self, fd: RawFd) {
        self.0.push(libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
    }

    /// Whether the one that was added n-th can be read.
    pub(crate) fn is_ready(&self, n: usize) -> bool {
        self.0.get(n).is_some_and(|entry| entry.revents != 0)
    }

    /// Waits for any of them, or that long. Says whether there is one.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        // SAFETY: the pointer is to as many `pollfd` as the count says.
        let result = unsafe { poll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, timeout) };
        match result {
            0.. => Ok(result > 0),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }
}

/// `ppoll`, which can wait for less than a millisecond.
#[cfg(target_os = "linux")]
unsafe fn poll(entries: *mut libc::pollfd, count: libc::nfds_t, timeout: Duration) -> libc::c_int {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    };
    // SAFETY: the caller vouches for the entries; the time outlives the call, no mask is given.
    unsafe { libc::ppoll(entries, count, &raw const timeout, std::ptr::null()) }
}

/// `poll` elsewhere: whole milliseconds, never too few.
#[cfg(not(target_os = "linux"))]
unsafe fn poll(entries: *mut libc::pollfd, count: libc::nfds_t, timeout: Duration) -> libc::c_int {
    let millis = timeout.as_nanos().div_ceil(1_000_000);
    let millis = libc::c_int::try_from(millis).unwrap_or(libc::c_int::MAX);
    // SAFETY: the caller vouches for the entries.
    unsafe { libc::poll(entries, count, millis) }
}

#[cfg(target_os = "linux")]
fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{allowed_cores, cpu_time, pin_to_core, tcp_counts};
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn the_payload_of_a_tcp_connection_is_counted_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        let (client, server) = (tcp_counts(&client).unwrap(), tcp_counts(&server).unwrap());
        assert_eq!((client.bytes_sent, server.bytes_received), (5000, 5000));
        assert_eq!((client.bytes_received, server.bytes_sent), (0, 0));
        // The SYN, the ACK of the handshake, and at least one with data.
        assert!(client.segments_sent >= 3);
        assert!(server.segments_received >= 3);
    }

    #[test]
    fn a_pinned_thread_may_run_on_that_core_alone() {
        let core = allowed_cores().unwrap()[0];
        std::thread::spawn(move || {
            pin_to_core(core).unwrap();
            assert_eq!(allowed_cores().unwrap(), [core]);
        })
        .join()
        .unwrap();
        assert!(pin_to_core(usize::MAX).is_err());
    }

    #[test]
    fn work_is_seen_in_the_cpu_time() {
        let before = cpu_time().unwrap();
        let mut value = 1_u64;
        while cpu_time().unwrap() < before + Duration::from_millis(2) {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        assert!(cpu_time().unwrap() > before);
    }
}
