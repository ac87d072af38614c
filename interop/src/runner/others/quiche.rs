//! The endpoint on quiche and BoringSSL.

use std::{
    fs::{self, File, OpenOptions},
    io::Read as _,
    net::UdpSocket,
    path::Path,
    rc::Rc,
};

use bytes::Bytes;
use hybriq::{Group, tls::Suite};
use hybriq_netbench::stacks::{
    Identity, Tickets, Tls, Transport, quiche as stack,
    quiche::{Admission, Endpoint, Kind, Line, Receiver, Sender, StreamError},
};
use tokio::task::{JoinSet, LocalSet, spawn_local};

use crate::runner::{Download, Failure, HANDSHAKE_TIME, Role, Task, TestCase, client, hq, server};

/// Bytes that are moved at once.
const CHUNK: usize = 64 * 1024;

impl Task {
    /// Returns quiche's configuration of the case.
    fn quiche_config(&self) -> Result<stack::Config, Failure> {
        let read = |name: &str| fs::read_to_string(self.certs.join(name));
        let (own, roots);
        let (identity, roots) = match self.role {
            Role::Server => {
                own = (read("cert.pem")?, read("priv.key")?);
                let (chain, key) = (own.0.as_str(), own.1.as_str());
                (Some(Identity { chain, key }), None)
            }
            Role::Client => {
                roots = read("ca.pem")?;
                (None, Some(roots.as_str()))
            }
        };
        let all = [Group::X25519MLKEM768, Group::X25519, Group::SECP256R1];
        let mut groups = self.params.groups.clone().unwrap_or_else(|| all.to_vec());
        if self.case.is_post_quantum() {
            groups.retain(|group| group.is_post_quantum());
        }
        let tls = Tls {
            alpn: "hq-interop",
            groups,
            suite: (self.case == TestCase::ChaCha20).then_some(Suite::ChaCha20Poly1305Sha256),
            identity,
            roots,
            tickets: match self.case {
                TestCase::ZeroRtt => Tickets::EarlyData,
                _ => Tickets::Resume,
            },
        };
        let transport = Transport {
            idle_timeout: Some(HANDSHAKE_TIME),
            ..Transport::default()
        };
        let config = match self.role {
            Role::Server => stack::server(&tls, &transport),
            Role::Client => stack::client(&tls, &transport),
        };
        let mut config = config.map_err(|error| error.to_string())?;
        config.log_keys();
        Ok(config)
    }

    pub(super) async fn serve_by_quiche(self) -> Result<(), Failure> {
        let config = self.quiche_config()?;
        let admission = if self.case.has_retry() {
            Admission::AfterRetry
        } else {
            Admission::AtOnce
        };
        let socket = UdpSocket::bind(self.listen)?;
        println!("listening on {}", socket.local_addr()?);
        let stopped = server::stopped()?;
        let serve = async {
            let endpoint = Endpoint::start(socket, config, admission);
            let endpoint = endpoint.map_err(|error| error.to_string())?;
            endpoint.allow_paths();
            let www: Rc<Path> = self.www.as_path().into();
            while let Some(line) = endpoint.accept().await {
                log_keys(&line);
                let www = Rc::clone(&www);
                spawn_local(async move {
                    while let Ok(id) = line.accept(Kind::Bidi).await {
                        spawn_local(answer(id, Rc::clone(&line), Rc::clone(&www)));
                    }
                });
            }
            Ok(())
        };
        let threads = LocalSet::new();
        tokio::select! {
            done = threads.run_until(serve) => done,
            () = stopped => Ok(()),
        }
    }

    pub(super) async fn download_by_quiche(self) -> Result<(), Failure> {
        let downloads = self.files()?;
        let mut ticket: Option<Vec<u8>> = None;
        for (number, downloads) in self.connections(&downloads).into_iter().enumerate() {
            let first = downloads.first().ok_or("there is no second file")?;
            let server = client::Server::find(&first.uri).await?;
            let address = server.address()?;
            let config = self.quiche_config()?;
            let is_early = self.case == TestCase::ZeroRtt && number > 0;
            let old = match self.case {
                TestCase::Resumption | TestCase::ZeroRtt => ticket.take(),
                _ => None,
            };
            let work = async {
                let socket = UdpSocket::bind(client::unspecified(address))?;
                let endpoint = Endpoint::start(socket, config, Admission::Never);
                let endpoint = endpoint.map_err(|error| error.to_string())?;
                endpoint.allow_paths();
                let line = endpoint.connect(address, &server.name, old.as_deref())?;
                log_keys(&line);
                if !is_early {
                    established(&line).await?;
                }
                let mut tasks = JoinSet::new();
                for download in downloads {
                    let id = line.open(Kind::Bidi).await;
                    let id = id.map_err(|error| error.to_string())?;
                    tasks.spawn_local(get(id, Rc::clone(&line), download.clone()));
                }
                while let Some(saved) = tasks.join_next().await {
                    saved??;
                }
                let session = line.quic().borrow().session().map(<[u8]>::to_vec);
                line.close(0);
                line.wait(|| line.ended()).await;
                endpoint.stop();
                Ok::<_, Failure>(session)
            };
            ticket = LocalSet::new().run_until(work).await?;
        }
        Ok(())
    }
}

/// Has the secrets of a connection written into the file of `SSLKEYLOGFILE`.
fn log_keys(line: &Line) {
    let path = std::env::var_os("SSLKEYLOGFILE").unwrap_or_default();
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Ok(file) = file {
        line.quic().borrow_mut().set_keylog(Box::new(file));
    }
}

async fn established(line: &Line) -> Result<(), Failure> {
    line.wait(|| {
        if line.quic().borrow().is_established() {
            return Some(Ok(()));
        }
        line.ended().map(|ended| Err(ended.to_string().into()))
    })
    .await
}

async fn answer(id: u64, line: Rc<Line>, www: Rc<Path>) {
    let mut sender = Sender::new(id, Rc::clone(&line));
    let mut receiver = Receiver::new(id, line);
    let mut request = Vec::new();
    while let Ok(Some(bytes)) = receiver.receive().await {
        request.extend_from_slice(&bytes);
    }
    let path = hq::path_of(&request).map(|path| www.join(path));
    let Some(mut file) = path.and_then(|path| File::open(path).ok()) else {
        return sender.reset(hq::NO_FILE);
    };
    let mut chunk = vec![0; CHUNK];
    while let Ok(len @ 1..) = file.read(&mut chunk) {
        let bytes = Bytes::copy_from_slice(chunk.get(..len).unwrap_or_default());
        if sender.send(bytes).await.is_err() {
            return;
        }
    }
    let _ = sender.finish().await;
}

async fn get(id: u64, line: Rc<Line>, download: Download) -> Result<(), String> {
    let contents = exchange(id, line, &download).await;
    let contents = contents.map_err(|error| error.to_string())?;
    fs::write(&download.to, contents).map_err(|error| error.to_string())
}

async fn exchange(id: u64, line: Rc<Line>, download: &Download) -> Result<Vec<u8>, StreamError> {
    let mut sender = Sender::new(id, Rc::clone(&line));
    let mut receiver = Receiver::new(id, line);
    let request = format!("GET {}\r\n", download.uri.path());
    sender.send(request.into()).await?;
    sender.finish().await?;
    let mut contents = Vec::new();
    while let Some(bytes) = receiver.receive().await? {
        contents.extend_from_slice(&bytes);
    }
    Ok(contents)
}
