//! The streams of a connection, as its frames open and close them (RFC 9113 §5.1).

/// Open streams that the client has begun, with what is known about each.
#[derive(Debug)]
pub(crate) struct Streams<T> {
    /// Ordered by their numbers.
    open: Vec<Stream<T>>,
    /// The last one that was begun.
    last: u32,
}

#[derive(Debug)]
struct Stream<T> {
    id: u32,
    /// True if the peer has sent its end.
    is_peer_ended: bool,
    /// True if this side has sent its end.
    is_local_ended: bool,
    about: T,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Local,
    Peer,
}

impl<T> Streams<T> {
    pub(crate) const fn new() -> Self {
        Self {
            open: Vec::new(),
            last: 0,
        }
    }

    /// Returns the number of open streams.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns true if no HEADERS frame has begun this stream, or a later one.
    pub(crate) fn is_new(&self, id: u32) -> bool {
        id > self.last
    }

    /// Opens a new stream.
    pub(crate) fn open(&mut self, id: u32, about: T) {
        self.last = id;
        self.open.push(Stream {
            id,
            is_peer_ended: false,
            is_local_ended: false,
            about,
        });
    }

    /// Returns what is known about a stream, if it is open.
    pub(crate) fn get(&mut self, id: u32) -> Option<&mut T> {
        let at = self.position(id)?;
        self.open.get_mut(at).map(|stream| &mut stream.about)
    }

    /// Notes that one side has sent its end. Returns what was known about the stream, if that closes it.
    pub(crate) fn end(&mut self, id: u32, side: Side) -> Option<T> {
        let at = self.position(id)?;
        let stream = self.open.get_mut(at)?;
        match side {
            Side::Local => stream.is_local_ended = true,
            Side::Peer => stream.is_peer_ended = true,
        }
        let is_closed = stream.is_local_ended && stream.is_peer_ended;
        is_closed.then(|| self.open.remove(at).about)
    }

    /// Closes a stream. Returns what was known about it, if it was open.
    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let at = self.position(id)?;
        Some(self.open.remove(at).about)
    }

    /// Closes the streams after `last`. Returns what was known about each.
    pub(crate) fn truncate(&mut self, last: u32) -> impl Iterator<Item = T> {
        let kept = self.open.partition_point(|stream| stream.id <= last);
        self.open.drain(kept..).map(|stream| stream.about)
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }
}
