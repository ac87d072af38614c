//! The sending end of a transfer: answers requests for pieces of files.

use std::{io, os::unix::fs::FileExt as _, sync::Arc};

use hybriq::{Connection, PostQuantum, RecvStream, SendStream};
use tokio::task::{JoinSet, spawn_blocking};

use crate::{
    error::Error,
    manifest::{Contents, Manifest},
    message::{Piece, Reader},
    path::RelativePath,
    progress::Progress,
    scan::Scan,
};

/// Largest piece, in bytes. It is in memory at both ends.
pub(crate) const PIECE: u32 = 1 << 20;
/// Byte before a piece.
pub(crate) const PRESENT: u8 = 0;
/// Byte sent instead of a piece of a file that was changed or can no longer be read. A reset would
/// lose the pieces before it, too.
pub(crate) const CHANGED: u8 = 1;
/// Code of a stream with a request for what is not in the list.
pub(crate) const NOT_LISTED: u64 = 2;

/// Files that a peer may ask for, and nothing else of the folder.
#[derive(Debug)]
pub(crate) struct Source(Scan);

impl Source {
    /// Takes the files of a list.
    pub(crate) fn new(scan: Scan) -> Arc<Self> {
        Arc::new(Self(scan))
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// Answers requests until the connection ends, or the future is dropped. The streams that the transport
    /// allows bound the pieces in memory.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        connection: &PostQuantum<Connection>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let mut answers = JoinSet::new();
        loop {
            tokio::select! {
                stream = connection.accept_bidi() => match stream? {
                    Some((send, recv)) => {
                        let (source, progress) = (Arc::clone(self), progress.clone());
                        answers.spawn(async move { source.answer(send, recv, &progress).await });
                    }
                    None => return Ok(()),
                },
                // A failed stream reports its own error.
                Some(_) = answers.join_next() => {}
            }
        }
    }

    async fn answer(
        self: Arc<Self>,
        mut send: SendStream,
        recv: RecvStream,
        progress: &Progress,
    ) -> Result<(), Error> {
        let request: Vec<Piece> = Reader::new(recv).read().await?;
        for piece in request {
            if !self.has(piece) {
                send.reset(NOT_LISTED);
                break;
            }
            let source = Arc::clone(&self);
            let Ok(bytes) = spawn_blocking(move || source.read(piece)).await? else {
                send.write_all(&[CHANGED]).await?;
                continue;
            };
            send.write_all(&[PRESENT]).await?;
            send.write_chunk(bytes.into()).await?;
            progress.add(u64::from(piece.len));
        }
        send.finish();
        Ok(())
    }

    fn file(&self, piece: Piece) -> Option<(&RelativePath, Contents)> {
        let entry = self.manifest().entries().get(piece.file as usize)?;
        Some((&entry.path, entry.contents()?))
    }

    fn has(&self, piece: Piece) -> bool {
        let end = piece.offset.checked_add(u64::from(piece.len));
        let size = self.file(piece).map(|(_, contents)| contents.size);
        piece.len <= PIECE && end.zip(size).is_some_and(|(end, size)| end <= size)
    }

    fn read(&self, piece: Piece) -> io::Result<Vec<u8>> {
        let (path, _) = self.file(piece).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; piece.len as usize];
        self.0
            .root
            .read(path)?
            .read_exact_at(&mut bytes, piece.offset)?;
        Ok(bytes)
    }
}
