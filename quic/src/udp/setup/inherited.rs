//! File descriptors that a process was started with.

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// First file descriptor that a service manager passes (`sd_listen_fds(3)`).
const FIRST: RawFd = 3;

/// Takes the file descriptors that a service manager passed to this process, in their order.
///
/// Call it only once: nobody else in this process may own them.
pub(crate) fn passed(count: u16) -> Vec<OwnedFd> {
    let all = FIRST..FIRST + RawFd::from(count);
    let is_open = |fd: &RawFd| {
        #[expect(
            unsafe_code,
            reason = "asks for the flags of a number that may be none"
        )]
        // SAFETY: the call only reads flags, and fails if the file descriptor is not open.
        let flags = unsafe { libc::fcntl(*fd, libc::F_GETFD) };
        flags >= 0
    };
    all.filter(is_open)
        .map(|fd| {
            #[expect(unsafe_code, reason = "the environment tells only the number")]
            // SAFETY: the file descriptor is open, and the service manager gave it to this process
            // for its own use. The caller takes it only once.
            unsafe {
                OwnedFd::from_raw_fd(fd)
            }
        })
        .collect()
}
