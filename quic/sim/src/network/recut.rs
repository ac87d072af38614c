//! A node that splits a ClientHello differently.

use hybriq_tls::Side;

use crate::{Datagram, Hop, InitialFrame, Node, build_initial, join, open_initials};

/// Splits a client's ClientHello differently, as browsers do against ossified middleboxes: the
/// packets keep their numbers and ids, and a closure chooses their frames.
pub struct Recut<F> {
    held: Vec<Datagram>,
    count: usize,
    done: bool,
    cut: F,
}

impl<F> std::fmt::Debug for Recut<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recut").finish_non_exhaustive()
    }
}

impl<F> Recut<F>
where
    F: FnMut(&[u8]) -> Vec<Vec<InitialFrame>> + Send,
{
    /// Waits for the first `count` datagrams of a client. `cut` receives the ClientHello and
    /// returns the contents of at most `count` packets, in the order in which they are sent.
    pub const fn new(count: usize, cut: F) -> Self {
        Self {
            held: Vec::new(),
            count,
            done: false,
            cut,
        }
    }

    fn recut(&mut self) -> Option<Vec<Datagram>> {
        let first = self.held.first()?.clone();
        let header = first.packets().into_iter().next()?;
        let initials: Vec<_> = self
            .held
            .iter()
            .flat_map(|datagram| open_initials(&datagram.payload, &header.dcid, Side::Client))
            .collect();
        let hello = join(&initials);
        let packets = (self.cut)(&hello).into_iter().zip(&initials);
        let datagrams = packets.map(|(frames, initial)| Datagram {
            payload: build_initial(header.dcid, header.scid, initial.number, &frames),
            ..first.clone()
        });
        Some(datagrams.collect())
    }
}

impl<F> Node for Recut<F>
where
    F: FnMut(&[u8]) -> Vec<Vec<InitialFrame>> + Send,
{
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if self.done {
            return hop.forward(datagram);
        }
        self.held.push(datagram);
        if self.held.len() == self.count {
            self.done = true;
            for datagram in self.recut().unwrap_or_default() {
                hop.forward(datagram);
            }
        }
    }
}
