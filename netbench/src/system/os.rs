//! Calls to the operating system: resource usage, affinity, timers, waiting for several sockets.
//!
//! `rustix` makes most of them. It has no `getrusage`, no `TCP_INFO` and no `SO_MEMINFO`, and
//! cannot switch `SO_TIMESTAMPNS` or `IP_PKTINFO` off: those, and the allocator, go through `libc`,
//! which is the only `unsafe` of this crate.
#![expect(
    unsafe_code,
    reason = "rustix lacks getrusage and the socket options TCP_INFO, SO_MEMINFO, SO_TIMESTAMPNS \
              and IP_PKTINFO, and the allocator's malloc_trim"
)]

use std::io;
use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
#[cfg(target_os = "linux")]
use rustix::{
    thread::CpuSet,
    time::{self, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags},
};

/// Returns freed memory to the system, so that the resident memory is what the process holds. Does
/// nothing with other allocators than glibc's.
pub(crate) fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointers.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Resources that a process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time in user mode.
    pub(crate) user: Duration,
    /// CPU time in the kernel.
    pub(crate) system: Duration,
    /// Number of voluntary context switches, when it waited.
    pub(crate) voluntary_switches: u64,
    /// Number of involuntary context switches.
    pub(crate) involuntary_switches: u64,
}

/// Returns what this process used so far.
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

/// Returns the CPU time that this process used so far, user and system.
pub(crate) fn cpu_time() -> io::Result<Duration> {
    usage().map(|usage| usage.user + usage.system)
}

/// Returns the CPU time that another process used so far, user and system.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_time_of(process: u32) -> io::Result<Duration> {
    let process = libc::pid_t::try_from(process).map_err(io::Error::other)?;
    let mut clock = MaybeUninit::<libc::clockid_t>::uninit();
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: both pointers are valid for one value, which the calls fill where they return 0.
    let time = unsafe {
        let failed = libc::clock_getcpuclockid(process, clock.as_mut_ptr());
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        if libc::clock_gettime(clock.assume_init(), time.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        time.assume_init()
    };
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Ok(Duration::new(time.tv_sec.unsigned_abs(), nanos))
}

/// Fails: other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_time_of(_: u32) -> io::Result<Duration> {
    Err(io::ErrorKind::Unsupported.into())
}

fn duration(time: libc::timeval) -> Duration {
    let micros = u32::try_from(time.tv_usec).unwrap_or(0);
    Duration::new(time.tv_sec.unsigned_abs(), micros * 1000)
}

/// Makes the kernel end this process when its parent ends in any way. If the parent is gone
/// already, standard input has ended; what it wrote there must not start any work.
#[cfg(target_os = "linux")]
pub(crate) fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let stdin = io::stdin();
    let mut poll = [PollFd::new(&stdin, PollFlags::empty())];
    rustix::event::poll(&mut poll, Some(&timespec(Duration::ZERO)))?;
    if poll[0].revents().contains(PollFlags::HUP) {
        return Err(io::Error::other("the parent is gone"));
    }
    Ok(())
}

/// Does nothing: on other systems only the end of standard input tells.
#[cfg(not(target_os = "linux"))]
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

/// Returns the cores that this process may run on.
#[cfg(target_os = "linux")]
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Returns no cores: other systems cannot pin.
#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    Ok(Vec::new())
}

/// Keeps this process on one core.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Does nothing: other systems cannot pin.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_core(_: usize) -> io::Result<()> {
    Ok(())
}

/// Makes the kernel wake this thread on time instead of up to 50 µs later, and before others if
/// that is allowed.
#[cfg(target_os = "linux")]
pub(crate) fn wake_punctually() -> io::Result<()> {
    // Only privileged processes may do this.
    let _ = rustix::process::setpriority_process(None, -20);
    // One nanosecond is the minimum.
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Does nothing: other systems have no such setting.
#[cfg(not(target_os = "linux"))]
pub(crate) fn wake_punctually() -> io::Result<()> {
    Ok(())
}

/// Returns the number of datagrams that the kernel dropped because a socket's buffer was full.
#[cfg(target_os = "linux")]
pub(crate) fn socket_drops(socket: &impl AsRawFd) -> u64 {
    // Index of the drops, and the number of values (linux/sock_diag.h).
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

/// Returns 0: other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn socket_drops(_: &impl AsRawFd) -> u64 {
    0
}

/// Counters that the kernel keeps of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpCounts {
    pub(crate) segments_sent: u64,
    pub(crate) segments_received: u64,
    /// Payload bytes, including retransmissions.
    pub(crate) bytes_sent: u64,
    /// Payload bytes, each counted once.
    pub(crate) bytes_received: u64,
    pub(crate) retransmitted: u64,
    /// Retransmission timeouts; 0 before Linux 6.7, which does not count them.
    pub(crate) timeouts: u64,
}

/// Returns the counters of a TCP connection; `None` if this kernel does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn tcp_counts(socket: &impl AsRawFd) -> Option<TcpCounts> {
    // Offsets in `struct tcp_info` (linux/tcp.h); `libc` knows only its beginning.
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

/// Returns some bytes of a structure.
#[cfg(target_os = "linux")]
fn field<const LEN: usize>(bytes: &[u8; 248], at: usize) -> &[u8; LEN] {
    bytes[at..]
        .first_chunk()
        .expect("every field lies within the structure")
}

/// Returns `None`: other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tcp_counts(_: &impl AsRawFd) -> Option<TcpCounts> {
    None
}

/// A timer of the kernel: it becomes readable on time, to the microsecond.
pub(crate) struct Timer(OwnedFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(target_os = "linux")]
impl Timer {
    /// Makes a timer; `None` if this system has none.
    pub(crate) fn new() -> io::Result<Option<Self>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Some(Self(timer)))
    }

    /// Sets it to expire once, after that delay or at once.
    pub(crate) fn set(&self, delay: Duration) -> io::Result<()> {
        let value = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            // A delay of 0 would switch it off.
            it_value: timespec(delay.max(Duration::from_nanos(1))),
        };
        time::timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }

    /// Makes it unreadable until it expires again.
    pub(crate) fn acknowledge(&self) -> io::Result<()> {
        rustix::io::read(&self.0, &mut [0_u8; 8])?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Timer {
    /// Returns `None`: other systems have no such timer.
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

/// Facts about a received datagram that the kernel may omit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// Our address that it came to.
    Destination,
    /// Time at which it came.
    Time,
}

/// Makes the kernel omit a fact.
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
            // An IPv4 socket does not know this option.
            let _ = switch(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);
            switch(libc::IPPROTO_IP, libc::IP_PKTINFO)
        }
    }
}

/// Does nothing: other systems report little anyway.
#[cfg(not(target_os = "linux"))]
pub(crate) fn leave_unsaid(_: &impl AsRawFd, _: Unsaid) -> io::Result<()> {
    Ok(())
}

/// Waits until some of the sockets can be read, or the time is over. Returns the indexes of those
/// that can. A closed socket counts as readable.
pub(crate) fn wait_readable(
    sockets: &[BorrowedFd<'_>],
    timeout: Duration,
) -> io::Result<Vec<usize>> {
    let poll = |socket| PollFd::from_borrowed_fd(socket, PollFlags::IN);
    let mut entries: Vec<_> = sockets.iter().copied().map(poll).collect();
    match rustix::event::poll(&mut entries, Some(&timespec(timeout))) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
        Ok(_) => Ok((0..)
            .zip(&entries)
            .filter(|(_, entry)| !entry.revents().is_empty())
            .map(|(place, _)| place)
            .collect()),
        Err(error) => Err(error.into()),
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
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
        // The SYN, the ACK of the handshake, and at least one segment with data.
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
