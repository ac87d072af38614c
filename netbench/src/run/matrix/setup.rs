//! Settings of the processes of a cell, from the command line and the scenario.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Planned;
use crate::drivers::{Certificates, Streams, Transport};
use crate::handshake::certificates;
use crate::handshake::certificates::Wanted;
use crate::run::{Place, Request};
use crate::scenario::Scenario;
use crate::scenario::axes::{Axes, Cell, Resumption};
use crate::system::failure::Failure;

/// Returns the axes of the file, replaced by those of the command line.
pub(crate) fn axes(request: &Request) -> Result<Axes, Failure> {
    let mut axes = request.template.resolve(&BTreeMap::new())?.axes;
    axes.override_with(request.axes.clone());
    Ok(axes)
}

/// Checks that servers can be started or reached at the place.
pub(crate) fn check_place(place: &Place, plan: &[Planned]) -> Result<(), Failure> {
    match place {
        Place::Here(listen) if listen.ip().is_unspecified() => Err(format!(
            "{listen} is no address to connect to; give one, such as 127.0.0.1:0"
        )
        .into()),
        Place::Here(listen) if listen.port() != 0 && plan.iter().any(has_several_servers) => {
            Err("each server has a port of its own: with several, --listen takes port 0".into())
        }
        _ => Ok(()),
    }
}

fn has_several_servers(planned: &Planned) -> bool {
    super::waits::servers(&planned.scenario) > 1
}

/// Returns the settings of the command line, otherwise those of the scenario. A connection made for
/// its ticket reads until the ticket arrives, in addition to its script's reads, which raw bytes on
/// a single stream do not allow.
pub(crate) fn transport(given: &Transport, cell: &Cell, scenario: &Scenario) -> Transport {
    let own = &scenario.transport;
    let streams = match (Streams::of(scenario), cell.resumption) {
        (Streams::One, Resumption::Psk | Resumption::ZeroRtt) => Streams::Many,
        (streams, _) => streams,
    };
    let idle_timeout = own.idle_timeout.map(|time| time.as_millis() as u64);
    Transport {
        idle_timeout_ms: given.idle_timeout_ms.or(idle_timeout),
        congestion: Some(cell.congestion.clone()).filter(|name| !name.is_empty()),
        window: given.window.or(own.window.map(bounded)),
        socket_buffer: given.socket_buffer.or(own.socket_buffer.map(bounded)),
        max_streams: given.max_streams.or(own.max_streams),
        streams,
        ..given.clone()
    }
}

fn bounded(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Certificates, made once for all cells of the same kind.
#[derive(Default)]
pub(crate) struct CertificatesByKind(BTreeMap<Wanted, Certificates>);

impl CertificatesByKind {
    pub(crate) fn of(&mut self, cell: &Cell) -> Result<&Certificates, Failure> {
        let wanted = Wanted::of(cell);
        Ok(match self.0.entry(wanted) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => place.insert(certificates::make(wanted)?),
        })
    }
}
