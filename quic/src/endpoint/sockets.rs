//! The sockets of an endpoint's workers.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

use super::Endpoint;
use crate::{
    config::Ids,
    errors::EndpointError,
    udp::{self, Opened, Sharing},
};

/// How an endpoint opens sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    /// Options of the sockets.
    pub(crate) options: udp::Options,
    /// True if the endpoint accepts connections, so that its workers share a port.
    pub(crate) accepts: bool,
    /// True if connection ids identify the worker.
    pub(crate) has_ids: bool,
    /// True if the system may choose workers by connection ids.
    pub(crate) by_id: bool,
}

impl Endpoint {
    /// Moves the endpoint to a socket that is already open and bound: otherwise like
    /// [`rebind`](Self::rebind). With several workers, give a socket for each.
    ///
    /// # Errors
    /// There are too few or too many sockets, one of them is not a UDP socket or is connected, or the
    /// endpoint is closed. Each [`EndpointError`] says what to do.
    pub fn rebind_sockets(
        &self,
        given: impl IntoIterator<Item = UdpSocket>,
    ) -> Result<SocketAddr, EndpointError> {
        let mut sockets = Vec::new();
        for (number, socket) in given.into_iter().enumerate() {
            udp::check(&socket).map_err(|reason| EndpointError::Unsuitable { number, reason })?;
            sockets.push(Opened::adopt(socket, self.ports.options)?);
        }
        let first = sockets.first().map(Opened::local_address);
        let address = first.ok_or(EndpointError::NoSocket)?;
        let workers = self.shared.workers();
        if sockets.len() != workers {
            return Err(EndpointError::Sockets {
                address,
                sockets: sockets.len(),
                workers,
            });
        }
        self.move_to(sockets, address)
    }

    /// Gives each worker its socket.
    pub(super) fn move_to(
        &self,
        sockets: Vec<Opened>,
        address: SocketAddr,
    ) -> Result<SocketAddr, EndpointError> {
        if self.shared.is_closed() {
            return Err(EndpointError::Closed);
        }
        steer(&sockets, &self.ports, &self.settings.ids);
        if self.shared.rebind(sockets) {
            Ok(address)
        } else {
            Err(EndpointError::Closed)
        }
    }
}

/// Lets the system choose among the sockets of one address by connection ids, if it can.
pub(crate) fn steer(sockets: &[Opened], ports: &Ports, ids: &Ids) {
    let steering = ids.steering().filter(|_| ports.by_id && sockets.len() > 1);
    if let (Some(steering), Some(first)) = (steering, sockets.first()) {
        if !first.steer(steering, sockets.len() as u8) {
            tracing::debug!("the system chooses workers by address");
        }
    }
}

/// Opens a socket for each worker. If the address resolves to several, the first one that can be
/// bound is used.
pub(crate) fn open(
    address: impl ToSocketAddrs,
    ports: &Ports,
    workers: usize,
) -> Result<Vec<Opened>, EndpointError> {
    let nothing = || {
        EndpointError::Address(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "the name has no addresses",
        ))
    };
    let mut failed = None;
    for address in address.to_socket_addrs().map_err(EndpointError::Address)? {
        match open_all(address, ports, workers) {
            Ok(sockets) => return Ok(sockets),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(nothing))
}

fn open_all(
    address: SocketAddr,
    ports: &Ports,
    workers: usize,
) -> Result<Vec<Opened>, EndpointError> {
    if workers == 1 || (!ports.accepts && address.port() == 0) {
        return (0..workers)
            .map(|_| Opened::bind(address, ports.options))
            .collect();
    }
    if !ports.has_ids {
        return Err(EndpointError::SharedPort);
    }
    if address.port() != 0 {
        // Makes sure that no other program of this user shares the port by mistake.
        drop(Opened::bind(address, ports.options)?);
    }
    let options = udp::Options {
        sharing: Sharing::Shared,
        ..ports.options
    };
    let first = Opened::bind(address, options)?;
    let mut address = address;
    address.set_port(first.local_address().port());
    let mut sockets = vec![first];
    while sockets.len() < workers {
        sockets.push(Opened::bind(address, options)?);
    }
    Ok(sockets)
}
