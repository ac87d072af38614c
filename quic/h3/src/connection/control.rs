//! The control stream of the peer (RFC 9114 §6.2.1 and §7.2).

use bytes::{Bytes, BytesMut};
use hybriq_proto::StreamId;

use super::{Connection, Event, is_request};
use crate::{
    error::Violation,
    priority, webtransport,
    wire::{
        frame::{self, Partial},
        settings::Settings,
        varint,
    },
};

/// Longest frame of a control stream that is read, in bytes.
const LONGEST: u64 = 4096;

/// Position in the control stream of the peer.
#[derive(Debug, Default)]
pub(crate) struct ControlReceiver {
    begun: Partial,
    at: At,
    /// The beginning of a frame.
    payload: BytesMut,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    #[default]
    Head,
    Payload {
        kind: u64,
        left: u64,
    },
    Skipped(u64),
}

impl Connection {
    /// Takes data of the peer's control stream.
    pub(crate) fn on_control(
        &mut self,
        control: &mut ControlReceiver,
        mut data: Bytes,
    ) -> Result<(), Violation> {
        loop {
            match control.at {
                At::Head => {
                    let Some(head) = control.begun.take(&mut data, frame::Head::read) else {
                        return Ok(());
                    };
                    self.check_control(head.kind)?;
                    control.at = if is_known(head.kind) {
                        if head.len > LONGEST {
                            return Err(Violation::ControlFrameTooLong);
                        }
                        At::Payload {
                            kind: head.kind,
                            left: head.len,
                        }
                    } else {
                        At::Skipped(head.len)
                    };
                }
                At::Payload { kind, left } => {
                    let part = data.split_to(data.len().min(left as usize));
                    if part.len() as u64 == left && control.payload.is_empty() {
                        self.on_control_frame(kind, &part)?;
                    } else {
                        control.payload.extend_from_slice(&part);
                        let left = left - part.len() as u64;
                        if left > 0 {
                            control.at = At::Payload { kind, left };
                            return Ok(());
                        }
                        self.on_control_frame(kind, &std::mem::take(&mut control.payload))?;
                    }
                    control.at = At::Head;
                }
                At::Skipped(left) => {
                    let passed = left.min(data.len() as u64);
                    let _ = data.split_to(passed as usize);
                    if passed < left {
                        control.at = At::Skipped(left - passed);
                        return Ok(());
                    }
                    control.at = At::Head;
                }
            }
        }
    }

    /// Checks that a frame may come next.
    fn check_control(&self, kind: u64) -> Result<(), Violation> {
        let is_server = self.side().is_server();
        match kind {
            frame::SETTINGS if self.peer.is_some() => Err(Violation::FrameNotAllowed),
            frame::SETTINGS => Ok(()),
            _ if self.peer.is_none() => Err(Violation::MissingSettings),
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => Err(Violation::FrameNotAllowed),
            frame::MAX_PUSH_ID | frame::PRIORITY_UPDATE | frame::PRIORITY_UPDATE_PUSH
                if !is_server =>
            {
                Err(Violation::FrameNotAllowed)
            }
            _ if frame::is_of_http2(kind) => Err(Violation::FrameOfHttp2),
            _ => Ok(()),
        }
    }

    fn on_control_frame(&mut self, kind: u64, mut payload: &[u8]) -> Result<(), Violation> {
        if kind == frame::SETTINGS {
            return self.on_settings(payload);
        }
        let id = varint::read(&mut payload).ok_or(Violation::FrameLength)?;
        if !payload.is_empty() && kind != frame::PRIORITY_UPDATE {
            return Err(Violation::FrameLength);
        }
        match kind {
            frame::GOAWAY => self.on_goaway(id),
            frame::MAX_PUSH_ID if id < self.max_push => Err(Violation::MaxPushIdReduced),
            frame::MAX_PUSH_ID => {
                self.max_push = id;
                Ok(())
            }
            frame::PRIORITY_UPDATE => {
                let stream = StreamId(id);
                if !is_request(stream) {
                    return Err(Violation::PriorityOfNoRequest);
                }
                let priority = priority(payload);
                self.events.push_back(Event::Priority(stream, priority));
                Ok(())
            }
            // Nothing was promised (RFC 9114 §7.2.3, RFC 9218 §7.2).
            _ => Err(Violation::UnknownPush),
        }
    }

    fn on_settings(&mut self, payload: &[u8]) -> Result<(), Violation> {
        let mut settings = Settings::read(payload)?;
        if settings.h3_datagram && !self.datagrams {
            if self.side().is_server() {
                return Err(Violation::DatagramsWithoutTransport);
            }
            // Servers of qh3 do so. A client that sends them no datagrams loses nothing.
            settings.h3_datagram = false;
        }
        if let Some(remembered) = &self.config.remembered {
            settings.keep(remembered)?;
            if !webtransport::keeps_windows(&settings, remembered) {
                return Err(Violation::SettingTakenBack);
            }
        }
        self.use_table(&settings);
        self.peer = Some(settings);
        self.events.push_back(Event::Settings);
        Ok(())
    }

    fn on_goaway(&mut self, id: u64) -> Result<(), Violation> {
        let stream = StreamId(id);
        let is_client = self.side().is_client();
        // A client's GOAWAY has the id of a push.
        if is_client && !is_request(stream) {
            return Err(Violation::GoawayId);
        }
        if self.goaway.is_some_and(|before| before < id) {
            return Err(Violation::GoawayIncreased);
        }
        self.goaway = Some(id);
        if is_client {
            self.events.push_back(Event::Goaway(stream));
        }
        Ok(())
    }
}

/// Returns true for the types of frames that are read.
const fn is_known(kind: u64) -> bool {
    matches!(
        kind,
        frame::SETTINGS
            | frame::GOAWAY
            | frame::MAX_PUSH_ID
            | frame::CANCEL_PUSH
            | frame::PRIORITY_UPDATE
            | frame::PRIORITY_UPDATE_PUSH
    )
}
