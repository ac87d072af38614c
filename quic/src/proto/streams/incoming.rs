use super::Streams;
use crate::proto::{error::TransportError, frame};

/// The peer's side: frames as they come in.
impl Streams {
    /// STREAM.
    pub fn on_stream(&mut self, frame: &frame::Stream<'_>) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// RESET_STREAM.
    pub fn on_reset_stream(&mut self, frame: &frame::ResetStream) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// STOP_SENDING.
    pub fn on_stop_sending(&mut self, frame: &frame::StopSending) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// MAX_DATA.
    pub fn on_max_data(&mut self, frame: &frame::MaxData) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// MAX_STREAM_DATA.
    pub fn on_max_stream_data(
        &mut self,
        frame: &frame::MaxStreamData,
    ) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// MAX_STREAMS.
    pub fn on_max_streams(&mut self, frame: &frame::MaxStreams) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// DATA_BLOCKED.
    pub fn on_data_blocked(&mut self, frame: &frame::DataBlocked) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// STREAM_DATA_BLOCKED.
    pub fn on_stream_data_blocked(
        &mut self,
        frame: &frame::StreamDataBlocked,
    ) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }

    /// STREAMS_BLOCKED.
    pub fn on_streams_blocked(
        &mut self,
        frame: &frame::StreamsBlocked,
    ) -> Result<(), TransportError> {
        todo!("{frame:?}")
    }
}
