//! A whole link as a node.

use hybriq_proto::owners::acks::Ecn;

use super::{
    Datagram, Hop, Node,
    link::{Direction, Fate, Offer, Settings, flip},
    node::Both,
};

/// A link with all features of `netbench link`, independent in each direction.
#[derive(Clone, Debug)]
pub struct Link {
    ways: Both<Direction>,
}

impl Link {
    /// Creates an idle link. Its randomness comes from this seed, not from the network's.
    pub fn new(to_server: Settings, to_client: Settings, seed: u64) -> Self {
        let [up, down] = Direction::pair(to_server, to_client, seed);
        Self {
            ways: Both::new(down, up),
        }
    }
}

impl Node for Link {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        let offer = Offer {
            now: hop.now,
            bytes: datagram.size(),
            ecn_capable: matches!(datagram.ecn, Some(Ecn::Ect0 | Ecn::Ect1)),
        };
        let decision = self.ways.toward_mut(hop.toward).offer(offer);
        let Fate::Passed(passage) = decision.fate else {
            return;
        };
        if passage.marked {
            datagram.ecn = Some(Ecn::Ce);
        }
        if let Some(bit) = passage.flip {
            flip(&mut datagram.payload, bit);
        }
        for copy in std::iter::repeat_n(datagram, passage.copies) {
            hop.forward_at(passage.due, copy);
        }
    }
}
