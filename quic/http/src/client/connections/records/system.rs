//! HTTPS records by hickory-resolver.

use std::{fmt, io, net::SocketAddr, pin::Pin};

use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ProtocolConfig, ResolverConfig},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::{
        rr::{RData, Record, RecordType},
        serialize::binary::BinEncodable as _,
    },
};

use super::{HttpsRecord, HttpsResolver};

/// Looks up HTTPS records with the name servers of the system, over UDP, and over TCP if an answer is truncated. Remembers
/// answers for their time to live. Needs the feature `https-records`.
///
/// # Examples
/// ```no_run
/// use hybriq::ClientConfig;
/// use hybriq_http::{Client, SystemRecords};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder()
///     .https_records(SystemRecords::new()?)
///     .build(ClientConfig::new())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SystemRecords(TokioResolver);

impl fmt::Debug for SystemRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemRecords").finish_non_exhaustive()
    }
}

impl SystemRecords {
    /// Takes the name servers of the system's configuration, `/etc/resolv.conf` on Unix.
    ///
    /// # Errors
    /// The configuration cannot be read; [`with_servers`](Self::with_servers) needs none.
    #[cfg(any(unix, windows))]
    pub fn new() -> io::Result<Self> {
        let builder = TokioResolver::builder_tokio().map_err(io::Error::other)?;
        builder.build().map(Self).map_err(io::Error::other)
    }

    /// Takes these name servers, which answer over UDP and TCP.
    ///
    /// # Errors
    /// There is none, or the resolver cannot be made.
    pub fn with_servers(servers: impl IntoIterator<Item = SocketAddr>) -> io::Result<Self> {
        let servers = servers.into_iter().map(|server| {
            let connections = [ProtocolConfig::Udp, ProtocolConfig::Tcp].map(|protocol| {
                let mut connection = ConnectionConfig::new(protocol);
                connection.port = server.port();
                connection
            });
            NameServerConfig::new(server.ip(), true, connections.into())
        });
        let servers: Vec<_> = servers.collect();
        if servers.is_empty() {
            let text = "no name server; give at least one, or use SystemRecords::new";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let provider = TokioRuntimeProvider::default();
        let built = TokioResolver::builder_with_config(config, provider).build();
        built.map(Self).map_err(io::Error::other)
    }
}

impl HttpsResolver for SystemRecords {
    fn lookup(
        &self,
        name: String,
    ) -> Pin<Box<dyn Future<Output = io::Result<Vec<HttpsRecord>>> + Send>> {
        let resolver = self.0.clone();
        Box::pin(async move {
            // With the dot, no search domain is tried.
            let found = resolver.lookup(format!("{name}."), RecordType::HTTPS).await;
            match found {
                Ok(found) => found.answers().iter().filter_map(read).collect(),
                Err(error) if NetError::is_no_records_found(&error) => Ok(Vec::new()),
                Err(error) => Err(io::Error::other(error)),
            }
        })
    }
}

/// Reads an HTTPS record. Others, such as a CNAME, are left out.
fn read(record: &Record) -> Option<io::Result<HttpsRecord>> {
    let RData::HTTPS(https) = &record.data else {
        return None;
    };
    let rdata = https.0.to_bytes().map_err(io::Error::other);
    let owner = record.name.to_ascii();
    Some(rdata.and_then(|rdata| HttpsRecord::from_rdata(&owner, &rdata).map_err(io::Error::other)))
}
