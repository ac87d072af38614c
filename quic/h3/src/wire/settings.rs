//! SETTINGS (RFC 9114 §7.2.4).

use super::varint;
use crate::error::Violation;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;

/// Settings of one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Largest field section that this end accepts, in bytes, counted as in RFC 9114 §4.2.2. Default: no limit.
    pub max_field_section_size: Option<u64>,
    /// Capacity of the dynamic table of this end's decoder, in bytes (RFC 9204 §5). Default: 0.
    pub qpack_max_table_capacity: u64,
    /// Number of streams that may wait for this end's decoder (RFC 9204 §5). Default: 0.
    pub qpack_blocked_streams: u64,
    /// A server accepts requests of extended CONNECT (RFC 9220). Default: false.
    pub enable_connect_protocol: bool,
    /// This end accepts HTTP Datagrams (RFC 9297). Default: false.
    pub h3_datagram: bool,
    /// Settings of extensions, by identifier. Default: none.
    pub others: Vec<(u64, u64)>,
}

/// Settings of extensions that are kept of a peer, at most.
const MOST_OTHERS: usize = 32;

impl Settings {
    /// Creates the settings of an end that sends none: the defaults (RFC 9114 §7.2.4.1).
    pub const fn new() -> Self {
        Self {
            max_field_section_size: None,
            qpack_max_table_capacity: 0,
            qpack_blocked_streams: 0,
            enable_connect_protocol: false,
            h3_datagram: false,
            others: Vec::new(),
        }
    }

    /// Returns the setting of an extension, if it is there.
    pub fn other(&self, id: u64) -> Option<u64> {
        let found = self.others.iter().find(|(known, _)| *known == id);
        found.map(|(_, value)| *value)
    }

    /// Appends the payload of a SETTINGS frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        let known = [
            (QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity, 0),
            (
                MAX_FIELD_SECTION_SIZE,
                self.max_field_section_size.unwrap_or(u64::MAX),
                u64::MAX,
            ),
            (QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams, 0),
            (
                ENABLE_CONNECT_PROTOCOL,
                self.enable_connect_protocol.into(),
                0,
            ),
            (H3_DATAGRAM, self.h3_datagram.into(), 0),
        ];
        let known = known.iter().filter(|(_, value, default)| value != default);
        let all = known.map(|(id, value, _)| (*id, *value));
        for (id, value) in all.chain(self.others.iter().copied()) {
            varint::put(id, out);
            varint::put(value.min(varint::MAX), out);
        }
    }

    /// Reads the payload of a SETTINGS frame.
    ///
    /// # Errors
    /// The frame ends inside a setting, has one twice, one that HTTP/3 forbids, or a value that it cannot have.
    pub fn read(mut payload: &[u8]) -> Result<Self, Violation> {
        let mut settings = Self::new();
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let pair = varint::read(&mut payload).zip(varint::read(&mut payload));
            let (id, value) = pair.ok_or(Violation::FrameLength)?;
            seen.push(id);
            match id {
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = Some(value),
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                ENABLE_CONNECT_PROTOCOL => settings.enable_connect_protocol = flag(value)?,
                H3_DATAGRAM => settings.h3_datagram = flag(value)?,
                // RFC 9114 §7.2.4.1.
                0x00 | 0x02..=0x05 => return Err(Violation::SettingOfHttp2),
                _ if settings.others.len() < MOST_OTHERS => settings.others.push((id, value)),
                _ => {}
            }
        }
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Violation::SettingTwice);
        }
        Ok(settings)
    }

    /// Checks that settings do not take back what those of an earlier connection allowed, on which 0-RTT data relied
    /// (RFC 9114 §7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1).
    pub(crate) fn keep(&self, earlier: &Self) -> Result<(), Violation> {
        let size = |settings: &Self| settings.max_field_section_size.unwrap_or(u64::MAX);
        let had_table = earlier.qpack_max_table_capacity > 0;
        let is_kept = size(self) >= size(earlier)
            && (!had_table || self.qpack_max_table_capacity == earlier.qpack_max_table_capacity)
            && self.qpack_blocked_streams >= earlier.qpack_blocked_streams
            && self.enable_connect_protocol >= earlier.enable_connect_protocol
            && self.h3_datagram >= earlier.h3_datagram;
        if is_kept {
            Ok(())
        } else {
            Err(Violation::SettingTakenBack)
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

fn flag(value: u64) -> Result<bool, Violation> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Violation::SettingValue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Settings {
        Settings {
            max_field_section_size: Some(0),
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 100,
            enable_connect_protocol: true,
            h3_datagram: true,
            others: vec![(0x2b60_3742, 1), (0x1f * 3 + 0x21, 7)],
        }
    }

    #[test]
    fn settings_come_back() {
        for settings in [Settings::new(), all()] {
            let mut payload = Vec::new();
            settings.write(&mut payload);
            assert_eq!(Settings::read(&payload), Ok(settings));
        }
    }

    #[test]
    fn settings_that_break_a_rule_are_errors() {
        for (payload, violation) in [
            (&[0x08, 2][..], Violation::SettingValue),
            (&[0x33, 2], Violation::SettingValue),
            (&[0x02, 0], Violation::SettingOfHttp2),
            (&[0x00, 0], Violation::SettingOfHttp2),
            (&[0x06, 1, 0x06, 1], Violation::SettingTwice),
            (&[0x21, 1, 0x07, 1, 0x21, 1], Violation::SettingTwice),
            (&[0x06], Violation::FrameLength),
            (&[0x06, 0x40], Violation::FrameLength),
        ] {
            assert_eq!(Settings::read(payload), Err(violation), "{payload:?}");
        }
    }

    #[test]
    fn unknown_settings_are_kept_within_a_bound() {
        let payload: Vec<u8> = (0x40_u8..0x80).flat_map(|id| [0x40, id, 1]).collect();
        let settings = Settings::read(&payload).expect("settings of extensions");
        assert_eq!(settings.others.len(), MOST_OTHERS);
        assert_eq!(settings.other(0x41), Some(1));
    }

    #[test]
    fn what_was_allowed_is_not_taken_back() {
        let changes: [fn(&mut Settings); 5] = [
            |less| less.qpack_max_table_capacity = 4095,
            |less| less.qpack_blocked_streams = 99,
            |less| less.enable_connect_protocol = false,
            |less| less.h3_datagram = false,
            |less| less.max_field_section_size = Some(9),
        ];
        let earlier = Settings {
            max_field_section_size: Some(10),
            ..all()
        };
        assert_eq!(earlier.keep(&earlier), Ok(()));
        assert_eq!(
            earlier.keep(&Settings::new()),
            Err(Violation::SettingTakenBack)
        );
        for change in changes {
            let mut less = earlier.clone();
            change(&mut less);
            assert_eq!(less.keep(&earlier), Err(Violation::SettingTakenBack));
            let more = Settings {
                max_field_section_size: None,
                ..earlier.clone()
            };
            assert_eq!(more.keep(&earlier), Ok(()));
        }
    }
}
