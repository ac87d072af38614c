//! The configuration of the transport.

use std::{sync::Arc, time::Duration};

use hybriq::transport::{AckFrequency, DatagramConfig, Version};

use super::congestion::ControllerFactory;
use crate::{VarInt, VarIntBoundsExceeded};

/// Configuration of the transport of connections. Defaults are those of [`hybriq::TransportConfig`], with the spin bit of
/// quinn.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    chosen: hybriq::TransportConfig,
    datagrams: DatagramConfig,
    spin_bit: bool,
    discovers_mtu: bool,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            chosen: hybriq::TransportConfig::new(),
            datagrams: DatagramConfig::new(),
            spin_bit: true,
            discovers_mtu: true,
        }
    }
}

impl TransportConfig {
    fn set(
        &mut self,
        change: impl FnOnce(hybriq::TransportConfig) -> hybriq::TransportConfig,
    ) -> &mut Self {
        self.chosen = change(std::mem::take(&mut self.chosen));
        self
    }

    /// Changes options that quinn does not have, such as versions, careful resume and events.
    pub fn hybriq(
        &mut self,
        change: impl FnOnce(hybriq::TransportConfig) -> hybriq::TransportConfig,
    ) -> &mut Self {
        self.set(change)
    }

    /// Sets how many bidirectional streams the peer may have open at once. Default: 100.
    pub fn max_concurrent_bidi_streams(&mut self, value: VarInt) -> &mut Self {
        self.set(|it| it.max_bidi_streams(value.into()))
    }

    /// Sets how many unidirectional streams the peer may have open at once. Default: 100.
    pub fn max_concurrent_uni_streams(&mut self, value: VarInt) -> &mut Self {
        self.set(|it| it.max_uni_streams(value.into()))
    }

    /// Sets the longest silence of the peer; the smaller of both ends' values applies. Default: 30 s.
    pub fn max_idle_timeout(&mut self, value: Option<IdleTimeout>) -> &mut Self {
        self.set(|it| it.idle_timeout(value.map(Duration::from)))
    }

    /// Sets how many bytes of one stream the peer may have in flight or unread. Default: 16 MiB, from 1 MiB on.
    pub fn stream_receive_window(&mut self, value: VarInt) -> &mut Self {
        let bytes = value.into();
        self.set(|it| {
            it.initial_stream_receive_window(bytes)
                .stream_receive_window(bytes)
        })
    }

    /// Sets how many bytes of all streams the peer may have in flight or unread. Default: 24 MiB, from 1.5 MiB on.
    pub fn receive_window(&mut self, value: VarInt) -> &mut Self {
        let bytes = value.into();
        self.set(|it| it.initial_receive_window(bytes).receive_window(bytes))
    }

    /// Sets how many bytes of all streams may wait to be sent or acknowledged. Default: 16 MiB.
    pub fn send_window(&mut self, value: u64) -> &mut Self {
        self.set(|it| it.max_send_buffer(value))
    }

    /// Sets the round-trip time that is assumed before there is a measurement. Default: 333 ms.
    pub fn initial_rtt(&mut self, value: Duration) -> &mut Self {
        self.set(|it| it.initial_rtt(value))
    }

    /// Sets the size of the first datagrams, at least 1,200 bytes.
    pub fn initial_mtu(&mut self, value: u16) -> &mut Self {
        self.set(|it| it.datagram_size(value))
    }

    /// Sets a size of datagrams that every path carries: the same as [`initial_mtu`](Self::initial_mtu) here.
    pub fn min_mtu(&mut self, value: u16) -> &mut Self {
        self.initial_mtu(value)
    }

    /// Sets how larger datagram sizes are searched; `None` turns the search off. Default: on.
    pub fn mtu_discovery_config(&mut self, value: Option<MtuDiscoveryConfig>) -> &mut Self {
        self.discovers_mtu = value.is_some();
        match value.and_then(|it| it.upper_bound) {
            Some(bytes) => self.set(|it| it.max_datagram_size(bytes)),
            None => self,
        }
    }

    /// Sets whether the peer is asked to acknowledge less often. Default: it is, by hybriq's own rules.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of quinn")]
    pub fn ack_frequency_config(&mut self, value: Option<AckFrequencyConfig>) -> &mut Self {
        self.set(|it| {
            it.ack_frequency(match value {
                Some(_) => AckFrequency::Adaptive,
                None => AckFrequency::PeerDefault,
            })
        })
    }

    /// Sets the time without packets after which a PING is sent. Default: `None`, never.
    pub fn keep_alive_interval(&mut self, value: Option<Duration>) -> &mut Self {
        self.set(|it| it.keep_alive(value.unwrap_or_default()))
    }

    /// Sets whether the spin bit lets observers measure the round-trip time. Default: it does.
    pub fn allow_spin(&mut self, value: bool) -> &mut Self {
        self.spin_bit = value;
        self
    }

    /// Sets how many bytes of datagrams may wait to be read; `None` accepts none. Default: 256 KiB.
    pub fn datagram_receive_buffer_size(&mut self, value: Option<usize>) -> &mut Self {
        self.datagrams = self.datagrams.receive_buffer(value.unwrap_or(0));
        self
    }

    /// Sets how many bytes of datagrams may wait to be sent. Default: 64 KiB.
    pub fn datagram_send_buffer_size(&mut self, value: usize) -> &mut Self {
        self.datagrams = self.datagrams.send_queue(value);
        self
    }

    /// Sets the congestion controller. Default: CUBIC.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of quinn")]
    pub fn congestion_controller_factory(
        &mut self,
        factory: Arc<dyn ControllerFactory + Send + Sync + 'static>,
    ) -> &mut Self {
        self.set(|it| it.congestion(factory.congestion()))
    }

    /// Returns the configuration for hybriq, with these versions if the endpoint has some.
    pub(crate) fn build(&self, shared: &Shared) -> hybriq::TransportConfig {
        let mut built = self.chosen.clone().datagrams(self.datagrams);
        if self.spin_bit {
            built = built.spin_bit();
        }
        if !self.discovers_mtu {
            built = built.without_mtu_discovery();
        }
        if !shared.grease {
            built = built.without_grease();
        }
        if !shared.versions.is_empty() {
            built = built.versions(shared.versions.iter().copied());
        }
        built
    }
}

/// What an endpoint sets for all of its connections.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) versions: Vec<Version>,
    pub(crate) grease: bool,
}

/// Longest silence of a peer, in whole milliseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdleTimeout(VarInt);

impl From<VarInt> for IdleTimeout {
    /// Returns the timeout of this number of milliseconds.
    fn from(milliseconds: VarInt) -> Self {
        Self(milliseconds)
    }
}

impl TryFrom<Duration> for IdleTimeout {
    type Error = VarIntBoundsExceeded;

    fn try_from(timeout: Duration) -> Result<Self, VarIntBoundsExceeded> {
        Ok(Self(timeout.as_millis().try_into()?))
    }
}

impl From<IdleTimeout> for Duration {
    fn from(timeout: IdleTimeout) -> Self {
        Self::from_millis(timeout.0.into())
    }
}

impl std::fmt::Debug for IdleTimeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How larger datagram sizes are searched.
#[derive(Clone, Debug, Default)]
pub struct MtuDiscoveryConfig {
    upper_bound: Option<u16>,
}

impl MtuDiscoveryConfig {
    /// Sets the largest size to search for, in bytes of UDP payload.
    pub fn upper_bound(&mut self, value: u16) -> &mut Self {
        self.upper_bound = Some(value);
        self
    }
}

/// That the peer is asked to acknowledge less often; how often follows from the data in flight.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AckFrequencyConfig;
