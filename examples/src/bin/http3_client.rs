//! Asks for pages over HTTP/3, HTTP/2 or HTTP/1.1, with some of curl's options. Tells what was negotiated on
//! standard error.

use std::{fs, io, io::Write, net::SocketAddr, path::PathBuf};

use clap::Parser;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hybriq::{ClientConfig, Trust};
use hybriq_examples::Failure;
use hybriq_http::{Client, Http3, Peer};

#[derive(Parser)]
struct Options {
    /// URLs, asked one after the other over the same connections.
    #[arg(required = true)]
    urls: Vec<Uri>,
    /// Method. Default: GET, or POST with --data.
    #[arg(short = 'X', long)]
    request: Option<Method>,
    /// Body of the request; `@file` is read from a file.
    #[arg(short, long)]
    data: Option<String>,
    /// File for the bodies of the responses. Default: standard output.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Tries HTTP/3 before the server has offered it.
    #[arg(long)]
    http3: bool,
    /// Speaks HTTP/3 and nothing else.
    #[arg(long)]
    http3_only: bool,
    /// PEM file with the certificates to trust. Default: the system's.
    #[arg(long)]
    cacert: Option<PathBuf>,
    /// Address of a host, as `host=address:port`; port 0 stands for that of the URL.
    #[arg(long)]
    resolve: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = Options::parse();
    // Safe requests leave in 0-RTT packets once a server is known.
    let mut config = ClientConfig::new().offer_early_data();
    config = config.trust(match &options.cacert {
        Some(path) => Trust::roots_pem_file(path)?,
        None => Trust::platform(),
    });
    let mut builder = Client::builder().http3(match (options.http3_only, options.http3) {
        (true, _) => Http3::Only,
        (false, true) => Http3::First,
        (false, false) => Http3::Discover,
    });
    for entry in &options.resolve {
        let (host, address) = entry.split_once('=').ok_or("--resolve: no `=`")?;
        builder = builder.resolve(host, [address.parse::<SocketAddr>()?]);
    }
    let client = builder.build(config)?;
    let mut output: Box<dyn Write> = match &options.output {
        Some(path) => Box::new(fs::File::create(path)?),
        None => Box::new(io::stdout()),
    };
    for url in options.urls {
        let (method, body) = match options.data.as_deref() {
            None => (Method::GET, Vec::new()),
            Some(data) => match data.strip_prefix('@') {
                Some(path) => (Method::POST, fs::read(path)?),
                None => (Method::POST, data.into()),
            },
        };
        let request = Request::builder().uri(url);
        let request = request.method(options.request.clone().unwrap_or(method));
        let request = request.body(Full::<bytes::Bytes>::from(body))?;
        let response = client.request(request).await?;
        if let Some(Peer { version, tls, .. }) = response.extensions().get() {
            eprintln!("{} over {version:?}, with {tls}", response.status());
        }
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                output.write_all(&data)?;
            }
        }
    }
    Ok(())
}
