//! Connects two ends under `Profile::Fips140`, with each TLS library, and reads a reply.

use hybriq::{Backend, ClientConfig, Endpoint, Identity, Profile, ServerConfig, Trust};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    assert!(hybriq::tls::is_fips(), "no FIPS module");
    for server in Backend::ALL {
        for client in Backend::ALL {
            connect(server, client).await?;
        }
    }
    Ok(())
}

async fn connect(server: Backend, client: Backend) -> Result<(), Failure> {
    let names = vec!["localhost".to_owned()];
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::new(names)?;
    params.is_ca = rcgen::IsCa::ExplicitNoCa;
    let certificate = params.self_signed(&key)?;
    let key_der = hybriq::tls::PrivateKeyDer::try_from(key.serialize_der())?;
    let identity = Identity::from_der(vec![certificate.der().clone()], key_der);
    let config = ServerConfig::new(identity)
        .alpn(["fips"])
        .tls(server)
        .profile(Profile::Fips140);
    let listening = Endpoint::server("127.0.0.1:0", config)?;
    let address = listening.local_address();

    let config = ClientConfig::new()
        .alpn(["fips"])
        .trust(Trust::roots_der([certificate.der().clone()]))
        .tls(client)
        .profile(Profile::Fips140);
    let connecting = Endpoint::client(config)?;
    let accepted = async {
        let incoming = listening.accept().await.ok_or("the endpoint is closed")?;
        Ok::<_, Failure>(incoming.accept().await?)
    };
    let connected = async { Ok(connecting.connect(address, "localhost").await?) };
    let (at_server, at_client) = tokio::try_join!(accepted, connected)?;
    for handshake in [at_server.handshake(), at_client.handshake()] {
        assert!(handshake.fips, "{handshake:?}");
    }
    let at_client = at_client.handshake();
    println!(
        "{client} to {server}: {} with {}, by the module",
        at_client.key_exchange, at_client.suite
    );
    Ok(())
}
