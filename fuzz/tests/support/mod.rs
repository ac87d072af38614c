//! A server and a client in virtual time, and the client's key log.

mod setups;

use std::sync::{Arc, Mutex};

use hybriq::tls::KeyLog;
use hybriq_proto::endpoint::Setup;
use hybriq_sim::{Ask, Network, World, ms};

/// Lines of a client's key log.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// Returns a server's setup.
pub(crate) fn server() -> Setup {
    setups::server(["fuzz"])
}

/// Makes a world with a client that has just begun, and returns it with the client's key log.
pub(crate) fn world(server: &Setup) -> (World, Log) {
    let log = Log::default();
    let lines = log.clone();
    let client = setups::client(KeyLog::Callback(Arc::new(move |line| {
        lines.lock().unwrap().push(line.to_owned());
    })));
    let mut world = World::new(Network::new(1).delay(ms(50)), server.clone());
    world.connect(&client, Ask::one_byte().keep_open());
    world.run_for(ms(0));
    (world, log)
}
