//! Connection between a process and its successor: records, and open files alongside them.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use tokio::{io::Interest, net::UnixStream};

/// Largest number of open files in one record.
pub(crate) const FILES: usize = 64;

/// Largest size of a record in bytes.
const RECORD: usize = 1 << 20;

/// Bytes in front of a record: its length, and the number of its files.
const HEAD: usize = 5;

/// Connection between a process and its successor.
pub(crate) struct Link {
    stream: UnixStream,
    received: Vec<u8>,
    files: VecDeque<OwnedFd>,
}

/// A record with its files.
pub(crate) type Record = (Vec<u8>, Vec<OwnedFd>);

impl Link {
    pub(crate) const fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
            files: VecDeque::new(),
        }
    }

    /// Returns true if the other process belongs to the same user, or to root.
    pub(crate) fn is_trusted(&self) -> io::Result<bool> {
        let peer = self.stream.peer_cred()?.uid();
        Ok(peer == 0 || peer == rustix::process::geteuid().as_raw())
    }

    /// Sends a record with at most [`FILES`] files.
    pub(crate) async fn send(&self, record: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut bytes = (record.len() as u32).to_be_bytes().to_vec();
        bytes.push(files.len() as u8);
        bytes.extend(record);
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = bytes.get(sent..).unwrap_or_default();
            let files = if sent == 0 { files } else { &[] };
            let write = || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                if !files.is_empty() {
                    control.push(SendAncillaryMessage::ScmRights(files));
                }
                let parts = [IoSlice::new(rest)];
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                Ok(rustix::net::sendmsg(
                    &self.stream,
                    &parts,
                    &mut control,
                    flags,
                )?)
            };
            sent += self.stream.async_io(Interest::WRITABLE, write).await?;
        }
        Ok(())
    }

    /// Receives a record with its files.
    pub(crate) async fn receive(&mut self) -> io::Result<Record> {
        loop {
            if let Some(record) = self.take()? {
                return Ok(record);
            }
            let Self {
                stream,
                received,
                files,
            } = self;
            let read = || {
                let mut bytes = [0; 16 << 10];
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
                let mut control = RecvAncillaryBuffer::new(&mut space);
                let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
                let message = {
                    let mut parts = [IoSliceMut::new(&mut bytes)];
                    rustix::net::recvmsg(&*stream, &mut parts, &mut control, flags)?
                };
                for ancillary in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(rights) = ancillary {
                        files.extend(rights);
                    }
                }
                received.extend(bytes.iter().take(message.bytes));
                Ok(message.bytes)
            };
            if stream.async_io(Interest::READABLE, read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Takes a record that has arrived.
    fn take(&mut self) -> io::Result<Option<Record>> {
        let Some((head, rest)) = self.received.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [len @ .., count] = *head;
        let (len, count) = (u32::from_be_bytes(len) as usize, usize::from(count));
        if len > RECORD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(record) = rest.get(..len) else {
            return Ok(None);
        };
        if count > self.files.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let record = record.to_vec();
        self.received.drain(..HEAD + len);
        Ok(Some((record, self.files.drain(..count).collect())))
    }
}
