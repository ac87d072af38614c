//! A server with a connection, in virtual time, and the client's keys to write to it.

use std::sync::{Arc, Mutex, OnceLock};

use hybriq::{
    TransportConfig,
    proto::{endpoint::Setup, packet::DirectionKeys},
    sim::{Ask, Network, World, join, ms},
    tls::{
        Backend, CertificateDer, ClientOptions, Identity, KeyLog, Level, PrivateKeyDer, Secret,
        ServerOptions, Side, Suite, Trust,
    },
};

/// Lines of the key log of the last client.
type Log = Arc<Mutex<Vec<String>>>;

fn identity() -> &'static (Identity, CertificateDer<'static>) {
    static IDENTITY: OnceLock<(Identity, CertificateDer<'static>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let root = made.cert.der().clone();
        (Identity::from_der(vec![root.clone()], key), root)
    })
}

fn setup(provider: Arc<dyn hybriq::tls::Provider>) -> Setup {
    Setup {
        provider,
        transport: Arc::new(TransportConfig::new().initial_rtt(ms(100))),
    }
}

/// A server's setup.
pub fn server() -> Setup {
    let options = ServerOptions::new(identity().0.clone()).alpn(["fuzz"]);
    setup(Backend::Rustls.server(&options).unwrap())
}

/// A world with a client that has just begun, and the key log of that client.
pub fn world(server: &Setup) -> (World, Log) {
    let log = Log::default();
    let lines = log.clone();
    let options = ClientOptions::new()
        .alpn(["fuzz"])
        .trust(Trust::roots_der([identity().1.clone()]))
        .without_resumption()
        .key_log(KeyLog::Callback(Arc::new(move |line| {
            lines.lock().unwrap().push(line.to_owned());
        })));
    let client = setup(Backend::Rustls.client(&options).unwrap());
    let mut world = World::new(Network::new(1).delay(ms(50)), server.clone());
    world.connect(&client, Ask::one_byte().keep_open());
    world.run_for(ms(0));
    (world, log)
}

/// The client's whole ClientHello.
pub fn client_hello(world: &World) -> Vec<u8> {
    let sent = world
        .trace()
        .initials(Side::Client, world.client_host(0).address);
    join(sent.iter().map(|(_, initial)| initial))
}

/// The keys that the client encrypts with.
pub fn client_keys(log: &Log, label: &str, level: Level) -> Option<DirectionKeys> {
    let lines = log.lock().unwrap();
    let line = lines
        .iter()
        .find(|line| line.split(' ').next() == Some(label))?;
    let hex = line.split(' ').nth(2)?;
    let secret: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    let suite = Suite::Aes128GcmSha256;
    let secret = Secret::new(level, Side::Client, suite, &secret)?;
    Some(DirectionKeys::from_secret(&secret))
}
