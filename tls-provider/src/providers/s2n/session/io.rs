//! The callbacks of s2n-tls, and everything unsafe about them.
//!
//! s2n-tls calls them synchronously from the thread that calls it, so their data is kept in a
//! thread-local for the duration of that call. C gets no pointer to Rust data.
#![expect(
    unsafe_code,
    reason = "the callbacks have C signatures and get raw buffers"
)]

use std::cell::RefCell;
use std::{
    ffi::{c_int, c_void},
    ptr,
};

use arrayvec::ArrayVec;
use bytes::{Buf, BytesMut};
use s2n_tls::connection::Connection;
use s2n_tls::error::Error as S2nError;
use s2n_tls_sys::{s2n_connection, s2n_connection_get_cipher_iana_value, s2n_secret_type_t};

use crate::{Level, PerLevel, Secret, Side, Suite};

const REFUSE: c_int = -1;
const ACCEPT: c_int = 0;

/// Buffers that one connection reads from and writes to.
pub(in crate::providers::s2n) struct Io {
    /// Rest of the handshake message that s2n-tls reads next.
    pub(in crate::providers::s2n) message: BytesMut,
    /// Handshake bytes to send.
    pub(in crate::providers::s2n) crypto: PerLevel<BytesMut>,
    pub(in crate::providers::s2n) secrets: ArrayVec<Secret, 5>,
    pub(in crate::providers::s2n) exporter: Option<Secret>,
    side: Side,
    handshake_secrets: u8,
    one_rtt_secrets: u8,
}

thread_local! {
    static CURRENT: RefCell<Option<Io>> = const { RefCell::new(None) };
}

impl Io {
    pub(in crate::providers::s2n) fn new(side: Side) -> Self {
        Self {
            message: BytesMut::new(),
            crypto: PerLevel::default(),
            secrets: ArrayVec::new(),
            exporter: None,
            side,
            handshake_secrets: 0,
            one_rtt_secrets: 0,
        }
    }

    /// Returns the level at which the peer's handshake bytes arrive until the handshake is complete.
    pub(in crate::providers::s2n) fn read_level(&self) -> Level {
        if self.handshake_secrets < 2 {
            Level::Initial
        } else {
            Level::Handshake
        }
    }

    /// Returns the level of the bytes that s2n-tls sends now, which follows from the secrets: a
    /// server's last Handshake byte comes before both 1-RTT secrets, a client's Finished after
    /// them.
    fn write_level(&self) -> Level {
        if self.side.is_server() && self.one_rtt_secrets == 2 {
            Level::OneRtt
        } else {
            self.read_level()
        }
    }

    fn on_secret(&mut self, level: Level, writer: Side, suite: Suite, bytes: &[u8]) -> Option<()> {
        let secret = Secret::new(level, writer, suite, bytes)?;
        self.secrets.try_push(secret).ok()?;
        match level {
            Level::Handshake => self.handshake_secrets += 1,
            _ => self.one_rtt_secrets += 1,
        }
        Some(())
    }

    fn on_exporter(&mut self, suite: Suite, bytes: &[u8]) -> Option<()> {
        self.exporter = Some(Secret::new(Level::OneRtt, self.side, suite, bytes)?);
        Some(())
    }
}

/// Makes a connection read from and write to the [`Io`] of [`with`].
pub(in crate::providers::s2n) fn install(connection: &mut Connection) -> Result<(), S2nError> {
    // SAFETY: the callbacks ignore their context, which is therefore never dereferenced.
    unsafe {
        connection.set_secret_callback(Some(on_secret), ptr::null_mut())?;
        connection.set_send_context(ptr::null_mut())?;
        connection.set_receive_context(ptr::null_mut())?;
    }
    connection.set_send_callback(Some(on_send))?;
    connection.set_receive_callback(Some(on_receive))?;
    Ok(())
}

/// Calls s2n-tls while its callbacks work on `io`.
pub(in crate::providers::s2n) fn with<T>(io: &mut Io, call: impl FnOnce() -> T) -> T {
    let side = io.side;
    let taken = std::mem::replace(io, Io::new(side));
    CURRENT.with_borrow_mut(|current| *current = Some(taken));
    let result = call();
    if let Some(back) = CURRENT.with_borrow_mut(Option::take) {
        *io = back;
    }
    result
}

/// Runs the work of a callback on the [`Io`] of [`with`]; `None` outside of it.
fn current<T>(work: impl FnOnce(&mut Io) -> Option<T>) -> Option<T> {
    CURRENT
        .try_with(|current| {
            current
                .try_borrow_mut()
                .ok()
                .and_then(|mut io| work(io.as_mut()?))
        })
        .ok()
        .flatten()
}

unsafe extern "C" fn on_receive(_: *mut c_void, buffer: *mut u8, len: u32) -> c_int {
    let read = current(|io| {
        let len = io.message.len().min(len as usize);
        if len == 0 || buffer.is_null() {
            return None;
        }
        // SAFETY: s2n-tls passes a buffer of `len` bytes to fill, and no more than that are
        // written. It is not part of `io`, which only Rust allocates.
        unsafe { ptr::copy_nonoverlapping(io.message.as_ptr(), buffer, len) };
        io.message.advance(len);
        c_int::try_from(len).ok()
    });
    read.unwrap_or_else(|| {
        would_block();
        REFUSE
    })
}

unsafe extern "C" fn on_send(_: *mut c_void, buffer: *const u8, len: u32) -> c_int {
    let send = |bytes: &[u8]| {
        current(|io| {
            let level = io.write_level();
            io.crypto[level].extend_from_slice(bytes);
            c_int::try_from(bytes.len()).ok()
        })
    };
    // SAFETY: s2n-tls passes `len` readable bytes that stay unchanged during the call.
    let sent = unsafe { with_bytes(buffer, len as usize, send) };
    sent.unwrap_or(REFUSE)
}

unsafe extern "C" fn on_secret(
    _: *mut c_void,
    connection: *mut s2n_connection,
    kind: s2n_secret_type_t::Type,
    secret: *mut u8,
    len: u8,
) -> c_int {
    let traffic = match kind {
        s2n_secret_type_t::CLIENT_HANDSHAKE_TRAFFIC_SECRET => {
            Some((Level::Handshake, Side::Client))
        }
        s2n_secret_type_t::SERVER_HANDSHAKE_TRAFFIC_SECRET => {
            Some((Level::Handshake, Side::Server))
        }
        s2n_secret_type_t::CLIENT_APPLICATION_TRAFFIC_SECRET => Some((Level::OneRtt, Side::Client)),
        s2n_secret_type_t::SERVER_APPLICATION_TRAFFIC_SECRET => Some((Level::OneRtt, Side::Server)),
        s2n_secret_type_t::EXPORTER_SECRET => None,
        // 0-RTT does not work in QUIC mode and is never enabled.
        _ => return ACCEPT,
    };
    // SAFETY: `connection` is the live connection inside whose `s2n_negotiate` this callback runs.
    let Some(suite) = (unsafe { suite(connection) }) else {
        return REFUSE;
    };
    let take = |bytes: &[u8]| {
        current(|io| match traffic {
            Some((level, writer)) => io.on_secret(level, writer, suite, bytes),
            None => io.on_exporter(suite, bytes),
        })
    };
    // SAFETY: s2n-tls passes `len` readable bytes that stay unchanged during the call.
    let taken = unsafe { with_bytes(secret, len.into(), take) };
    if taken.is_some() { ACCEPT } else { REFUSE }
}

/// Lends the bytes behind a C pointer to `work`, for no longer than it runs.
///
/// # Safety
/// Unless it is null, `bytes` points to `len` bytes that are readable and do not change until this
/// returns.
unsafe fn with_bytes<T>(
    bytes: *const u8,
    len: usize,
    work: impl FnOnce(&[u8]) -> Option<T>,
) -> Option<T> {
    if bytes.is_null() {
        return None;
    }
    // SAFETY: promised by the caller. The slice does not outlive this call, because `work` is
    // generic over its lifetime.
    work(unsafe { std::slice::from_raw_parts(bytes, len) })
}

/// Returns the suite of a connection.
///
/// # Safety
/// `connection` points to a live connection of s2n-tls that no other thread uses.
unsafe fn suite(connection: *mut s2n_connection) -> Option<Suite> {
    let mut iana = [0_u8; 2];
    let [high, low] = &mut iana;
    // SAFETY: promised by the caller; the call reads the connection and writes one byte to each of
    // the two valid addresses.
    let result = unsafe { s2n_connection_get_cipher_iana_value(connection, high, low) };
    (result == 0).then_some(())?;
    Suite::from_iana(u16::from_be_bytes(iana))
}

/// Tells s2n-tls that there is nothing to read yet.
fn would_block() {
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    use libc::__errno as errno;
    #[cfg(any(target_os = "linux", target_os = "emscripten", target_os = "hurd"))]
    use libc::__errno_location as errno;
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    use libc::__error as errno;

    // SAFETY: the C library gives a valid pointer to this thread's errno.
    unsafe { *errno() = libc::EWOULDBLOCK };
}
