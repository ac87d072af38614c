//! What the streams of a connection hold.

use super::{
    StreamEvent, Streams,
    frames::schedule::{Control, Schedule},
    queue::{Member, Waiting},
    recv::Recv,
    send::Send,
};
use crate::stats::census::Census;

impl Streams {
    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            side: _,
            limits: _,
            peer_limits: _,
            sends,
            recvs,
            unanswered: _,
            local: _,
            peer: _,
            send_credit: _,
            receive_credit,
            widest_window: _,
            schedule,
            events,
            bytes_resent: _,
            any_early: _,
            tallies,
            deadlines,
            spare: _,
        } = self;
        census.add_of::<Send>("sending halves of streams", sends.len());
        census.add_of::<Recv>("receiving halves of streams", recvs.len());
        census.add("stream data to send", 0, sends.iter().map(held).sum());
        census.add("stream data to read", 0, receive_credit.unread() as usize);
        census.add("pieces of stream data", receive_credit.pieces(), 0);
        census.add_of::<StreamEvent>("events of streams", events.len());
        census.add("counted halves of streams", tallies.len(), 0);
        census.add("streams with a deadline", deadlines.len(), 0);
        schedule.census(census);
    }
}

const fn held(send: &Send) -> usize {
    send.buffer.held() as usize
}

impl Schedule {
    fn census(&self, census: &mut Census) {
        let Self {
            controls,
            free,
            fresh,
        } = self;
        census.add_of::<Control>("frames of streams to send", controls.len());
        let queues = [free, fresh].into_iter().filter_map(|it| it.0.as_deref());
        for Waiting {
            members, in_order, ..
        } in queues
        {
            census.add_of::<Member>("streams with data to send", members.len());
            census.add("streams with data to send in order", in_order.len(), 0);
        }
    }
}
