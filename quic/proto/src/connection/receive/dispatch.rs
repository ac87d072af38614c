//! Hands every frame to its owner, in one `match`.

use std::time::{Duration, Instant};

use hybriq_tls::Side;

use crate::{
    connection::Connection,
    owners::{
        acks::{AckPolicy, frequency},
        handshake, recovery,
    },
    wire::{
        error::{By, TransportError, Violation},
        frame::{self, Ack, Frame, FrameType},
        packet::{Cid, Space},
    },
};

impl Connection {
    pub(in crate::connection) fn dispatch(
        &mut self,
        now: Instant,
        space: Space,
        dcid: &Cid,
        frame: Frame<'_>,
    ) -> Result<(), TransportError> {
        match frame {
            Frame::Ack(ack) => {
                self.observer.stats.acks_received += 1;
                self.handshake.check_ack_keys(space, ack.largest)?;
                self.on_ack(now, space, &ack)
                    .map_err(|violation| violation.in_frame(FrameType::ACK))?;
            }
            Frame::Crypto(crypto) => {
                self.opening.fix_version();
                self.handshake.on_frame(handshake::level(space), &crypto)?;
            }
            Frame::Stream(stream) => self.streams.on_stream(&stream)?,
            Frame::ResetStream(reset) => self.streams.on_reset_stream(&reset)?,
            Frame::StopSending(stop) => self.streams.on_stop_sending(&stop)?,
            Frame::MaxData(max) => self.streams.on_max_data(&max)?,
            Frame::MaxStreamData(max) => self.streams.on_max_stream_data(&max)?,
            Frame::MaxStreams(max) => self.streams.on_max_streams(&max)?,
            Frame::DataBlocked(blocked) => self.streams.on_data_blocked(&blocked)?,
            Frame::StreamDataBlocked(blocked) => self.streams.on_stream_data_blocked(&blocked)?,
            Frame::StreamsBlocked(blocked) => self.streams.on_streams_blocked(&blocked)?,
            Frame::NewConnectionId(new) => self.cids.peer.on_new_connection_id(&new)?,
            Frame::RetireConnectionId(retire) => {
                (self.cids.local).on_retire_connection_id(now, &retire, dcid)?;
            }
            Frame::PathChallenge(challenge) => {
                let (paths, mut facts) = self.paths_with_facts(now);
                paths.on_challenge(challenge, dcid, &mut facts);
            }
            Frame::ResetStreamAt(reset) => self.streams.on_reset_stream_at(&reset)?,
            Frame::Datagram(datagram) => self.datagrams.on_frame(&datagram)?,
            Frame::AckFrequency(frame) => self.on_ack_frequency(now, &frame)?,
            Frame::ImmediateAck => {
                self.acks.frequency.on_immediate_ack()?;
                self.acks.received.at(space).request_ack();
            }
            Frame::PathResponse(response) => self.on_path_response(now, response),
            Frame::Padding(_) | Frame::Ping => {}
            Frame::NewToken(new) => {
                only_from_server(self.side, FrameType::NEW_TOKEN)?;
                self.memory.keep_token(now, self.version(), &new);
            }
            Frame::HandshakeDone => {
                only_from_server(self.side, FrameType::HANDSHAKE_DONE)?;
                // Not for every copy: otherwise a server could make us probe an address of its
                // choice forever.
                if !self.state.is_confirmed() {
                    self.on_confirmed(now);
                }
            }
            Frame::ConnectionClose(close) => self.on_peer_close(now, &close),
        }
        Ok(())
    }

    fn on_ack_frequency(
        &mut self,
        now: Instant,
        frame: &frame::AckFrequency,
    ) -> Result<(), Violation> {
        if let Some(request) = self.acks.frequency.on_frame(frame)? {
            let policy = AckPolicy {
                threshold: request.threshold,
                max_delay: request.max_delay,
                reordering: request.reordering,
            };
            self.acks.received.at(Space::Data).set_policy(now, policy);
            self.observer.on_request(By::Peer, request);
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Instant, space: Space, ack: &Ack<'_>) -> Result<(), Violation> {
        let delay = match space {
            Space::Data => {
                let exponent = self.agreed.ack_delay_exponent.min(20);
                let micros = ack.delay.saturating_mul(1 << exponent);
                Duration::from_micros(micros)
            }
            Space::Initial | Space::Handshake => Duration::ZERO,
        };
        let context = self.recovery_context();
        let ack = recovery::Ack {
            space,
            largest: ack.largest,
            delay,
            ranges: ack.ranges(),
            ecn: ack.ecn,
        };
        let mut outcome = std::mem::take(&mut self.acks.settled);
        let before = self.recovery.largest_acked(space);
        let checked = self.recovery.on_ack(now, ack, &context, &mut outcome);
        if self.recovery.largest_acked(space) > before {
            self.paths.on_progress();
        }
        self.deliver(space, &mut outcome);
        self.acks.settled = outcome;
        if space == Space::Data {
            self.consider_ack_frequency();
        }
        checked
    }

    /// Asks for another acknowledgement frequency, but only after the handshake is confirmed:
    /// before that, the congestion window says little.
    fn consider_ack_frequency(&mut self) {
        if self.state.is_confirmed() && self.recovery.rtt().first_sample().is_some() {
            self.acks.frequency.on_path(&frequency::Path {
                window: self.recovery.window() / u64::from(self.paths.active().datagram_size()),
                rtt: self.recovery.rtt().smoothed(),
                packet_threshold: self.recovery.packet_threshold(),
            });
        }
    }
}

/// Checks that a frame that only servers send came from a server.
fn only_from_server(side: Side, frame: FrameType) -> Result<(), TransportError> {
    if side.is_client() {
        return Ok(());
    }
    Err(Violation::FrameFromClient.of(frame))
}
