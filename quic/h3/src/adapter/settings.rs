//! SETTINGS frames (RFC 9114 §7.2.4) beyond those that `h3` knows.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::watch;

use crate::adapter::varint;

/// Type of control streams, and of SETTINGS frames.
const CONTROL: u64 = 0;
const SETTINGS: u64 = 4;

/// SETTINGS_MAX_FIELD_SECTION_SIZE (RFC 9114 §7.2.4.1).
pub(crate) const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 9220 §5).
pub(crate) const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// Settings that this end sends beside, or instead of, those of `h3`: identifiers and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(Vec<(u64, u64)>);

impl Settings {
    pub(crate) fn set(&mut self, id: u64, value: u64) {
        self.0.retain(|(other, _)| *other != id);
        self.0.push((id, value));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the start of a control stream with these settings. `None` if this is another stream.
    pub(crate) fn merge(&self, mut start: &[u8]) -> Option<Bytes> {
        let start = &mut start;
        if (varint::read(start)?, varint::read(start)?) != (CONTROL, SETTINGS) {
            return None;
        }
        let len = usize::try_from(varint::read(start)?).ok()?;
        let (mut payload, rest) = start.split_at_checked(len)?;
        let mut merged = BytesMut::new();
        let mut put = |(id, value)| {
            varint::put(id, &mut merged);
            varint::put(value, &mut merged);
        };
        while let Some(id) = varint::read(&mut payload) {
            let value = varint::read(&mut payload)?;
            if self.0.iter().all(|(own, _)| *own != id) {
                put((id, value));
            }
        }
        self.0.iter().copied().for_each(put);
        let mut out = BytesMut::with_capacity(merged.len() + 16);
        varint::put(CONTROL, &mut out);
        varint::put(SETTINGS, &mut out);
        varint::put(merged.len() as u64, &mut out);
        out.put_slice(&merged);
        out.put_slice(rest);
        Some(out.freeze())
    }
}

/// Identifiers and values of settings.
type Pairs = Arc<[(u64, u64)]>;

/// The settings of the peer, once they have come. Clones wait independently.
///
/// # Examples
/// ```no_run
/// # async fn run(connection: hybriq::Connection) -> Option<()> {
/// let mut connection = hybriq_h3::Connection::new(connection);
/// let mut settings = connection.peer_settings();
/// // … give the connection to h3, which reads the control stream …
/// let takes_datagrams = settings.get(0x33).await? == 1;
/// # Some(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PeerSettings(watch::Receiver<Option<Pairs>>);

/// The end of [`PeerSettings`] that the control stream has.
#[derive(Debug)]
pub(crate) struct Arrival(watch::Sender<Option<Pairs>>);

impl PeerSettings {
    /// Waits for the settings, and returns the value of one: 0 if the peer did not send it. `None` if the
    /// connection ends before.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn get(&mut self, id: u64) -> Option<u64> {
        let settings = self.0.wait_for(Option::is_some).await.ok()?.clone()?;
        let value = settings.iter().find(|(other, _)| *other == id);
        Some(value.map_or(0, |(_, value)| *value))
    }
}

impl Default for Arrival {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Arrival {
    pub(crate) fn subscribe(&self) -> PeerSettings {
        PeerSettings(self.0.subscribe())
    }

    pub(crate) fn set(&self, settings: Vec<(u64, u64)>) {
        self.0.send_replace(Some(settings.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_replaced_and_added() {
        let mut settings = Settings::default();
        settings.set(0x8, 0);
        settings.set(0x8, 1);
        settings.set(0xc671_706a, 16);
        // SETTINGS with 0x6 = 5 and 0x8 = 0, then an unknown frame.
        let start = [0, 4, 4, 6, 5, 8, 0, 0x21, 0];
        let merged = settings.merge(&start).map(Vec::from);
        let expected = [
            &[
                0, 4, 13, 6, 5, 8, 1, 0xc0, 0, 0, 0, 0xc6, 0x71, 0x70, 0x6a, 16,
            ][..],
            &[0x21, 0],
        ];
        assert_eq!(merged, Some(expected.concat()));
        assert_eq!(settings.merge(&[2]), None, "the encoder's stream");
        assert_eq!(settings.merge(&[3, 4, 0]), None, "the decoder's stream");
    }
}
