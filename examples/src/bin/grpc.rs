//! gRPC over HTTP/3: the health service of tonic (`grpc.health.v1`), served by hybriq-http and called by its client, with
//! a stream of answers, interceptors at both ends, and a deadline. The same port answers gRPC over HTTP/2 as well.

use clap::Parser;
use hybriq::{ClientConfig, ServerConfig, Trust};
use hybriq_examples::Failure;
use hybriq_http::{Client, Handle, Http3, Peer};
use std::time::Duration;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Status, metadata::MetadataValue};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_health::{ServingStatus, server::HealthReporter};

const SERVICE: &str = "example.Shop";
const TOKEN: &str = "Bearer of-the-shop";
const DEADLINE: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    let config = ServerConfig::new(args.identity()?);
    let server = hybriq_http::Server::bind(args.listen, config)?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let (reporter, health) = tonic_health::server::health_reporter();
    let up = ServingStatus::Serving;
    reporter.set_service_status(SERVICE, up).await;
    let serving = tokio::spawn(server.serve(InterceptedService::new(health, check)));
    call(args.trust()?, &handle, &reporter).await?;
    handle.shutdown(Duration::from_secs(5)).await;
    serving.await??;
    Ok(())
}

/// Lets calls with the token in, and no others.
fn check(call: Request<()>) -> Result<Request<()>, Status> {
    match call.metadata().get("authorization") {
        Some(token) if token == TOKEN => Ok(call),
        _ => Err(Status::unauthenticated("a token is needed")),
    }
}

/// Asks the server, over HTTP/3 alone, whether a service of it is healthy, and follows it until it is not.
async fn call(trust: Trust, server: &Handle, reporter: &HealthReporter) -> Result<(), Failure> {
    let address = server.local_address();
    let client = Client::builder().http3(Http3::Only);
    let client = client.resolve("localhost", [address]);
    let client = client.build(ClientConfig::new().trust(trust))?;
    let origin: http::Uri = format!("https://localhost:{}", address.port()).parse()?;
    let service = SERVICE.to_owned();
    let asked = || HealthCheckRequest {
        service: service.clone(),
    };
    let mut stranger = HealthClient::with_origin(client.clone(), origin.clone());
    let refused = stranger.check(asked()).await.err();
    println!("without a token: {:?}", refused.ok_or("let in")?.code());

    let token = MetadataValue::from_static(TOKEN);
    let signed = InterceptedService::new(client, move |mut call: Request<()>| {
        call.metadata_mut().insert("authorization", token.clone());
        Ok(call)
    });
    let mut health = HealthClient::with_origin(signed, origin);
    let answer = health.check(asked()).await?;
    let peer = answer.extensions().get::<Peer>();
    let Peer { version, tls, .. } = peer.ok_or("no connection is known")?;
    let status = answer.get_ref().status().as_str_name();
    println!("{status} over {version:?}, with {tls}");

    let mut changes = health.watch(asked()).await?.into_inner();
    for next in [ServingStatus::NotServing, ServingStatus::Serving] {
        let status = changes.message().await?.ok_or("the stream ended")?;
        println!("watched: {}", status.status().as_str_name());
        reporter.set_service_status(SERVICE, next).await;
    }
    // A deadline is the caller's: dropping the call cancels it on the server.
    while let Ok(change) = timeout(DEADLINE, changes.message()).await {
        change?.ok_or("the stream ended")?;
    }
    println!("no more changes before the deadline");
    Ok(())
}
