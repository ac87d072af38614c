//! The client: downloads over HTTP/0.9 and HTTP/3.

use std::{net::SocketAddr, path::Path, sync::Arc};

use http::Uri;
use hybriq::{
    ClientConfig, Connection, Endpoint, Trust,
    qlog::Qlog,
    stage::Stage,
    tls::{EarlyData, KeyLog},
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio::task::JoinSet;

use super::{Download, END, Failure, Task, TestCase, hq, http3, qlog};

/// Certificates of a chain that the check of rustls follows at most, the root aside.
const LONGEST_CHAIN: usize = 7;

impl Task {
    /// Downloads all files.
    pub(super) async fn download(self) -> Result<(), Failure> {
        let downloads = self.files()?;
        let qlog = qlog()?;
        let config = self.client_config(qlog.as_ref())?;
        let done = if self.by_http3() {
            http3::download(self.case, config, downloads).await
        } else {
            self.download_by_hq(config, downloads).await
        };
        if let Some(qlog) = qlog {
            qlog.flush();
        }
        done
    }

    async fn download_by_hq(
        &self,
        config: ClientConfig,
        downloads: Vec<Download>,
    ) -> Result<(), Failure> {
        let Some((first, rest)) = downloads.split_first() else {
            return Ok(());
        };
        let server = Server::find(&first.uri).await?;
        let first_one = std::slice::from_ref(first);
        let endpoint = match server.addresses.first() {
            Some(SocketAddr::V4(_)) => "0.0.0.0:0",
            _ => "[::]:0",
        };
        let endpoint = Endpoint::builder()
            .without_gso()
            .client(config)
            .bind(endpoint)?;
        match self.case {
            TestCase::MultiConnect => {
                for download in &downloads {
                    let connection = server.connect(&endpoint).await?;
                    get_all(&connection, std::slice::from_ref(download)).await?;
                    end(&connection);
                }
            }
            TestCase::Resumption => {
                let connection = server.connect(&endpoint).await?;
                get_all(&connection, first_one).await?;
                end(&connection);
                let connection = server.connect(&endpoint).await?;
                get_all(&connection, rest).await?;
                end(&connection);
                if !connection.handshake().resumed {
                    return Err("the second handshake was a full one".into());
                }
            }
            TestCase::ZeroRtt => {
                let connection = server.connect(&endpoint).await?;
                get_all(&connection, first_one).await?;
                end(&connection);
                server.download_early(&endpoint, rest).await?;
            }
            _ => {
                let connection = server.connect(&endpoint).await?;
                if self.case == TestCase::KeyUpdate {
                    connection.update_keys();
                }
                get_all(&connection, &downloads).await?;
                end(&connection);
                if self.case == TestCase::KeyUpdate && connection.stats().key_updates == 0 {
                    return Err("the keys were not updated".into());
                }
            }
        }
        // The server may be gone.
        let _ = tokio::time::timeout(END, endpoint.idle()).await;
        Ok(())
    }

    /// Returns the files to download, with the last part of each URL's path as name.
    pub(super) fn files(&self) -> Result<Vec<Download>, Failure> {
        let file = |url: &String| {
            let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
            let name = uri.path().rsplit('/').next().unwrap_or_default();
            if name.is_empty() || name == ".." {
                return Err(format!("{url} names no file").into());
            }
            let to = self.downloads.join(name);
            Ok(Download { uri, to })
        };
        self.requests.iter().map(file).collect()
    }

    fn client_config(&self, qlog: Option<&Qlog>) -> Result<ClientConfig, Failure> {
        let mut config = ClientConfig::new()
            .alpn([self.alpn()])
            .trust(self.trust()?)
            .tls(self.params.backend)
            .key_log(KeyLog::Environment)
            .transport(self.transport(qlog));
        if let Some(policy) = self.key_exchange() {
            config = config.key_exchange(policy);
        }
        if let Some(suites) = self.suites() {
            config = config.suites(suites);
        }
        if self.case == TestCase::ZeroRtt {
            config = config.offer_early_data();
        }
        Ok(config)
    }

    /// Trusts the runner's root. Its chain of `amplificationlimit` is longer than TLS libraries
    /// follow, so that no client of the runner can check that one.
    fn trust(&self) -> Result<Trust, Failure> {
        let chain = CertificateDer::pem_file_iter(self.certs.join("cert.pem"));
        if chain.is_ok_and(|chain| chain.count() > LONGEST_CHAIN) {
            eprintln!("the chain is too long to be checked");
            return Ok(Trust::dangerously_accept_any_certificate());
        }
        Ok(Trust::roots_pem_file(self.certs.join("ca.pem"))?)
    }
}

/// Returns the address that a socket to a server is bound to.
pub(super) fn unspecified(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 8], 0).into(),
    }
}

/// Where the server is.
pub(super) struct Server {
    pub(super) name: String,
    addresses: Vec<SocketAddr>,
}

impl Server {
    pub(super) async fn find(uri: &Uri) -> Result<Self, Failure> {
        let name = uri.host().ok_or("a URL has no host")?;
        let name = name.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let found = tokio::net::lookup_host((name.as_str(), port)).await;
        let addresses = found.map_err(|error| format!("{name}: {error}"))?.collect();
        Ok(Self { name, addresses })
    }

    /// Returns the first address.
    pub(super) fn address(&self) -> Result<SocketAddr, Failure> {
        let first = self.addresses.first().copied();
        first.ok_or_else(|| format!("{} has no address", self.name).into())
    }

    /// Connects to the first address that answers.
    async fn connect(&self, endpoint: &Endpoint) -> Result<Connection, Failure> {
        let mut failure: Failure = format!("{} has no address", self.name).into();
        for &address in &self.addresses {
            match endpoint.connect(address, &self.name).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failure = error.into(),
            }
        }
        Err(failure)
    }

    /// Downloads with requests in 0-RTT packets.
    async fn download_early(
        &self,
        endpoint: &Endpoint,
        downloads: &[Download],
    ) -> Result<(), Failure> {
        let address = self.address()?;
        let connecting = endpoint.connect_early(address, &self.name).early().await;
        let Ok(early) = connecting else {
            return Err("the server gave no ticket for early data".into());
        };
        let asked = get_all(&early, downloads);
        let (done, established) = tokio::join!(asked, early.clone().established());
        let (connection, early_data) = established?;
        if early_data != EarlyData::Accepted {
            return Err("the server refused the early data".into());
        }
        end(&connection);
        done
    }
}

/// Ends a connection and tells what it was, for the runner's log.
fn end(connection: &Connection) {
    let (tls, stats) = (connection.handshake(), connection.stats());
    println!(
        "{}: {:?}, {}, {:?}, resumed: {}, key updates: {}",
        connection.peer_address(),
        connection.version(),
        tls.key_exchange.group,
        tls.suite,
        tls.resumed,
        stats.key_updates,
    );
    connection.close(0, b"");
}

/// Downloads files over one connection, as many at once as the server allows.
async fn get_all<S: Stage>(
    connection: &Connection<S>,
    downloads: &[Download],
) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    for download in downloads {
        let (mut send, recv) = connection.open_bidi().await?;
        hq::ask(&mut send, download.uri.path()).await?;
        let to: Arc<Path> = download.to.as_path().into();
        tasks.spawn(async move {
            let saved = hq::save(recv, &to).await;
            saved.map_err(|error| format!("{}: {error}", to.display()))
        });
    }
    while let Some(saved) = tasks.join_next().await {
        saved??;
    }
    Ok(())
}
