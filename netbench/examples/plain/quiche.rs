//! quiche, after its examples `client` and `server`, with GSO and GRO as in its larger tools: an event loop
//! without a runtime.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod, SslVerifyMode};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use quiche::{Config, Connection, ConnectionId, RecvInfo};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::{ALPN, CHUNK, Failure, IN_FLIGHT, Load, NAME, Own, Stack, asked, bind};

pub(super) struct Quiche;

/// Maximum number of bytes of a train of datagrams.
const TRAIN: usize = 64 << 10;
/// Maximum number of datagrams of a train.
const DATAGRAMS: usize = 64;
const DATAGRAM: usize = 1350;

fn config(own: &Own, is_server: bool) -> Result<Config, Failure> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    let certificate = X509::from_der(own.0.cert.der())?;
    if is_server {
        tls.set_certificate(&certificate)?;
        let key = PKey::private_key_from_der(&own.0.signing_key.serialize_der())?;
        tls.set_private_key(&*key)?;
    } else {
        let mut store = X509StoreBuilder::new()?;
        store.add_cert(&certificate)?;
        tls.set_cert_store_builder(store);
        tls.set_verify(SslVerifyMode::PEER);
    }
    let mut config = Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    config.set_application_protos(&[ALPN])?;
    config.set_max_idle_timeout(30_000);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(10_000_000);
    config.set_initial_max_stream_data_bidi_local(1_000_000);
    config.set_initial_max_stream_data_bidi_remote(1_000_000);
    config.set_initial_max_streams_bidi(10_000);
    Ok(config)
}

/// A socket with the memory for what it sends and receives.
struct Wire {
    socket: UdpSocket,
    state: UdpSocketState,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

impl Wire {
    fn new() -> Result<Self, Failure> {
        let socket = bind()?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            socket,
            inbox: vec![0; BATCH_SIZE * TRAIN],
            outbox: vec![0; TRAIN + DATAGRAM],
        })
    }

    /// Waits for datagrams, and hands out each.
    fn receive(
        &mut self,
        timeout: Option<Duration>,
        mut on_datagram: impl FnMut(&mut [u8], SocketAddr) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let timeout = timeout.map(Timespec::try_from).transpose()?;
        poll(
            &mut [PollFd::new(&self.socket, PollFlags::IN)],
            timeout.as_ref(),
        )?;
        loop {
            let mut meta = [RecvMeta::default(); BATCH_SIZE];
            let mut rest = self.inbox.chunks_exact_mut(TRAIN).map(IoSliceMut::new);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| rest.next().unwrap_or(IoSliceMut::new(&mut [])));
            let received = self
                .state
                .recv((&self.socket).into(), &mut slices, &mut meta);
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            for (train, meta) in self.inbox.chunks_exact_mut(TRAIN).zip(&meta[..count]) {
                for datagram in train[..meta.len].chunks_mut(meta.stride) {
                    on_datagram(datagram, meta.addr)?;
                }
            }
        }
    }

    /// Sends whatever the connection wants to send, in trains of datagrams of one length.
    fn send(&mut self, quic: &mut Connection) -> Result<(), Failure> {
        // The datagrams of the train are as long as the first; a shorter one ends it.
        let (mut used, mut size, mut to) = (0, 0, None);
        loop {
            let written = quic.send(&mut self.outbox[used..]).ok();
            let joins = written.as_ref().is_some_and(|(len, _)| {
                *len <= size && used % size == 0 && used / size < DATAGRAMS && used + len <= 65_000
            });
            if !joins {
                if let Some(destination) = to {
                    self.flush(used, size, destination)?;
                }
                let Some((len, info)) = &written else {
                    return Ok(());
                };
                self.outbox.copy_within(used..used + len, 0);
                (used, size, to) = (0, *len, Some(info.to));
            }
            used += written.map_or(0, |(len, _)| len);
        }
    }

    fn flush(&self, len: usize, size: usize, destination: SocketAddr) -> Result<(), Failure> {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: &self.outbox[..len],
            segment_size: Some(size),
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], None)?;
                }
                sent => return Ok(sent?),
            }
        }
    }

    /// Waits for datagrams of a connection, or for its timer.
    fn turn(&mut self, quic: &mut Connection) -> Result<(), Failure> {
        let to = self.socket.local_addr()?;
        let due = quic.timeout();
        self.receive(due, |datagram, from| {
            // Errors in it show in the connection's state.
            let _ = quic.recv(datagram, RecvInfo { from, to });
            Ok(())
        })?;
        if quic.timeout().is_some_and(|left| left.is_zero()) {
            quic.on_timeout();
        }
        if quic.is_closed() {
            return Err("the connection is closed".into());
        }
        Ok(())
    }
}

impl Stack for Quiche {
    fn serve(own: &Own, started: impl FnOnce(SocketAddr)) -> Result<(), Failure> {
        let mut config = config(own, true)?;
        let mut wire = Wire::new()?;
        let local = wire.socket.local_addr()?;
        started(local);
        let mut accepted: Option<Connection> = None;
        wire.receive(None, |datagram, from| {
            if accepted.is_none() {
                let id = ConnectionId::from_ref(&[7; 16]);
                accepted = Some(quiche::accept(&id, None, local, from, &mut config)?);
            }
            if let Some(quic) = &mut accepted {
                let _ = quic.recv(datagram, RecvInfo { from, to: local });
            }
            Ok(())
        })?;
        let mut quic = accepted.ok_or("nothing came")?;
        let zeros = vec![0; CHUNK];
        let mut buffer = vec![0; CHUNK];
        let mut requests: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut left: BTreeMap<u64, u64> = BTreeMap::new();
        loop {
            for id in quic.readable() {
                while let Ok((len, fin)) = quic.stream_recv(id, &mut buffer) {
                    let request = requests.entry(id).or_default();
                    request.extend_from_slice(&buffer[..len]);
                    if fin {
                        left.insert(id, asked(request).ok_or("a short request")?);
                        requests.remove(&id);
                    }
                }
            }
            left.retain(|id, left| {
                while *left > 0 {
                    let len = zeros.len().min(*left as usize);
                    let is_last = len as u64 == *left;
                    match quic.stream_send(*id, &zeros[..len], is_last) {
                        Ok(sent) => *left -= sent as u64,
                        Err(_) => return true,
                    }
                }
                false
            });
            wire.send(&mut quic)?;
            wire.turn(&mut quic)?;
        }
    }

    fn load(
        own: &Own,
        server: SocketAddr,
        loads: [Load; 2],
        mut done: impl FnMut(),
    ) -> Result<(), Failure> {
        let mut config = config(own, false)?;
        let mut wire = Wire::new()?;
        let local = wire.socket.local_addr()?;
        let id = ConnectionId::from_ref(&[8; 16]);
        let mut quic = quiche::connect(Some(NAME), &id, local, server, &mut config)?;
        while !quic.is_established() {
            wire.send(&mut quic)?;
            wire.turn(&mut quic)?;
        }
        let mut buffer = vec![0; CHUNK];
        let mut next = 0;
        for load in loads {
            let message = load.message();
            let (mut begun, mut ended, mut received) = (0, 0, 0);
            while ended < load.requests {
                while begun < load.requests
                    && begun - ended < IN_FLIGHT
                    && quic.peer_streams_left_bidi() > 0
                    && quic.stream_send(next, &message, true) == Ok(message.len())
                {
                    begun += 1;
                    next += 4;
                }
                wire.send(&mut quic)?;
                wire.turn(&mut quic)?;
                for id in quic.readable() {
                    while let Ok((len, fin)) = quic.stream_recv(id, &mut buffer) {
                        received += len as u64;
                        ended += u64::from(fin);
                    }
                }
            }
            if received != load.requests * load.response {
                return Err("a short response".into());
            }
            done();
        }
        Ok(())
    }
}
