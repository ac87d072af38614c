//! Capsules (RFC 9297 §3) on the stream of a session's request.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::adapter::{budget::Budget, varint};

/// Types of capsules (draft-ietf-webtrans-http3 §5).
const CLOSE: u64 = 0x2843;
const DRAIN: u64 = 0x78ae;

/// Largest number of bytes of the reason in a capsule that closes a session.
pub(super) const LONGEST_REASON: usize = 1024;

/// A capsule that a session takes notice of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Capsule {
    /// CLOSE_WEBTRANSPORT_SESSION: the session is over.
    Close {
        /// Code of the application.
        code: u32,
        reason: String,
    },
    /// DRAIN_WEBTRANSPORT_SESSION: the session should end soon.
    Drain,
}

impl Capsule {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Close { code, reason } => {
                varint::put(CLOSE, &mut out);
                varint::put(reason.len() as u64 + 4, &mut out);
                out.put_u32(*code);
                out.put_slice(reason.as_bytes());
            }
            Self::Drain => {
                varint::put(DRAIN, &mut out);
                varint::put(0, &mut out);
            }
        }
        out.freeze()
    }

    /// Reads the next capsule, and skips unknown ones. `None` at the end of the stream. Other tasks run after some
    /// capsules, of any type, however many there are.
    pub(super) async fn read(
        stream: &mut (impl AsyncRead + Unpin),
        budget: &mut Budget,
    ) -> io::Result<Option<Self>> {
        while let Some(kind) = integer(stream).await? {
            budget.take_step().await;
            let len = integer(stream).await?;
            let len = len.ok_or(io::ErrorKind::UnexpectedEof)?;
            match kind {
                CLOSE => return close(stream, len).await.map(Some),
                DRAIN if len == 0 => return Ok(Some(Self::Drain)),
                _ => skip(stream, len, budget).await?,
            }
        }
        Ok(None)
    }
}

async fn close(stream: &mut (impl AsyncRead + Unpin), len: u64) -> io::Result<Capsule> {
    let reason = usize::try_from(len).unwrap_or(usize::MAX).checked_sub(4);
    let Some(reason) = reason.filter(|len| *len <= LONGEST_REASON) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let code = stream.read_u32().await?;
    let mut bytes = vec![0; reason];
    stream.read_exact(&mut bytes).await?;
    let reason = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Capsule::Close { code, reason })
}

/// Reads an integer. `None` at the end of the stream.
async fn integer(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    let (first, rest) = bytes.split_at_mut(1);
    if stream.read(first).await? == 0 {
        return Ok(None);
    }
    let len = first.first().map_or(1, |first| 1 << (first >> 6));
    let rest = rest.get_mut(..len - 1).unwrap_or_default();
    stream.read_exact(rest).await?;
    Ok(varint::read(&mut &bytes[..]))
}

async fn skip(
    stream: &mut (impl AsyncRead + Unpin),
    mut len: u64,
    budget: &mut Budget,
) -> io::Result<()> {
    let mut bytes = [0; 256];
    while len > 0 {
        let most = len.min(bytes.len() as u64) as usize;
        let room = bytes.get_mut(..most).unwrap_or_default();
        match stream.read(room).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => len -= count as u64,
        }
        budget.take_step().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        sync::Arc,
        task::{Context, Poll},
    };

    use tokio::io::ReadBuf;

    use super::*;
    use crate::adapter::budget::tests::Wakes;

    async fn all(mut bytes: &[u8]) -> io::Result<Vec<Capsule>> {
        let mut capsules = Vec::new();
        let mut budget = Budget::new();
        while let Some(capsule) = Capsule::read(&mut bytes, &mut budget).await? {
            capsules.push(capsule);
        }
        Ok(capsules)
    }

    #[tokio::test]
    async fn capsules_are_written_and_read() {
        let close = Capsule::Close {
            code: 0x0102_0304,
            reason: "bye".to_owned(),
        };
        let encoded = [Capsule::Drain.encode(), close.encode()].concat();
        let expected = [
            &[0x80, 0, 0x78, 0xae, 0][..],
            &[0x68, 0x43, 7, 1, 2, 3, 4, b'b', b'y', b'e'],
        ];
        assert_eq!(encoded, expected.concat());
        assert_eq!(all(&encoded).await.unwrap(), [Capsule::Drain, close]);
    }

    #[tokio::test]
    async fn unknown_capsules_are_skipped() {
        let mut stream = vec![0x17, 0x41, 0x2c];
        stream.resize(stream.len() + 300, 0xff);
        stream.extend(Capsule::Drain.encode());
        assert_eq!(all(&stream).await.unwrap(), [Capsule::Drain]);
    }

    /// A stream that gives one byte at a time, and counts.
    struct Trickle<'a> {
        bytes: &'a [u8],
        reads: usize,
    }

    impl AsyncRead for Trickle<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.reads += 1;
            if self.reads % 2 == 1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some((first, rest)) = self.bytes.split_first() {
                buffer.put_slice(&[*first]);
                self.bytes = rest;
            }
            Poll::Ready(Ok(()))
        }
    }

    /// Capsules that trickle in, unknown ones among them, are read once.
    #[tokio::test]
    async fn each_byte_of_a_capsule_is_read_once() {
        let mut bytes = vec![0x17, 0x80, 1, 0, 0];
        bytes.resize(bytes.len() + 0x1_0000, 0);
        let reason = "x".repeat(LONGEST_REASON);
        let close = Capsule::Close { code: 1, reason };
        bytes.extend(close.encode());
        let mut stream = Trickle {
            bytes: &bytes,
            reads: 0,
        };
        let read = Capsule::read(&mut stream, &mut Budget::new()).await;
        assert_eq!(read.unwrap(), Some(close));
        assert_eq!((stream.bytes.len(), stream.reads), (0, 2 * bytes.len()));
    }

    /// Capsules of any type, as many as there are, and the bytes of a long one, are skipped in turns.
    #[test]
    fn other_tasks_run_between_capsules() {
        const STEPS: usize = 1000;
        let unknown = [0x17, 0].repeat(STEPS);
        let drain = Capsule::Drain.encode().repeat(STEPS);
        let mut long = vec![0x17, 0x80, 3, 0xe8, 0];
        long.resize(long.len() + 256 * STEPS, 0);
        for stream in [unknown, drain, long] {
            let wakes = Arc::new(Wakes::default());
            let waker = wakes.clone().into();
            let mut cx = Context::from_waker(&waker);
            let (mut bytes, mut budget) = (&stream[..], Budget::new());
            let mut read = pin!(async {
                while let Ok(Some(_)) = Capsule::read(&mut bytes, &mut budget).await {}
            });
            let mut turns = 0;
            while read.as_mut().poll(&mut cx).is_pending() {
                turns += 1;
                assert_eq!(wakes.count(), turns);
            }
            assert_eq!(turns, STEPS / Budget::STEPS as usize);
        }
    }

    #[tokio::test]
    async fn malformed_capsules_are_errors() {
        // Too short for a code, too long a reason, ends in the middle.
        let long = [&[0x68, 0x43, 0x44, 5][..], &[0; 1029]].concat();
        for stream in [&[0x68, 0x43, 3, 0, 0, 0][..], &long, &[0x17, 2, 0], &[0x68]] {
            assert!(all(stream).await.is_err(), "{:?}", stream.get(..6));
        }
    }
}
