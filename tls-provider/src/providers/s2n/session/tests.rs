use super::{
    super::{config, policy, server::tests::identity},
    *,
};
use crate::{Backend, ClientOptions, ClientStart, KeyExchange, Trust};

/// A careless server that ignores ALPN.
fn careless_server(initial: &[u8]) -> Running {
    let policy = policy::find(&KeyExchange::PreferPostQuantum, None).expect("a policy");
    let mut builder = config::builder(policy, &[]).expect("a builder");
    let chain = config::chain(&identity()).expect("a chain");
    config::add_chain(&mut builder, &chain, policy).expect("a certificate");
    let config = builder.build().expect("a configuration");
    let connection = connection(Mode::Server, config, &[1]).expect("a connection");
    let (hello, _) = ClientHello::parse(initial)
        .expect("well-formed")
        .expect("whole");
    let lineages = Lineages {
        issued: Lineage::PostQuantum,
        accepted: Lineage::PostQuantum,
    };
    let client = Client {
        hello: &hello,
        lineages,
        group: Group::X25519MLKEM768,
    };
    let common = Common {
        profile: Profile::Default,
        alpn: [].into(),
        key_log: None,
        verifier: None,
        leaf: None,
    };
    Running::server(connection, common, &client)
}

#[test]
fn a_client_refuses_a_server_that_chooses_no_protocol() {
    for backend in Backend::ALL {
        let options = ClientOptions::new()
            .alpn(["h3"])
            .trust(Trust::dangerously_accept_any_certificate());
        // The other provider may not be built in.
        let Ok(client) = backend.client(&options) else {
            continue;
        };
        let start = ClientStart {
            params: &[1],
            server_name: "a.test",
            ..ClientStart::default()
        };
        let mut client = client.session(start.into()).expect("a session");
        let (mut to_server, mut to_client) = (Flight::default(), Flight::default());
        client
            .drive(&mut PerLevel::default(), &mut to_server)
            .expect("a ClientHello");
        let mut server = careless_server(&to_server.crypto.initial);
        server
            .drive(&mut to_server.crypto, &mut to_client)
            .expect("a server flight");
        let answered = client.drive(&mut to_client.crypto, &mut to_server);
        let error = answered.expect_err("no application protocol");
        assert_eq!(error.alert, Alert::NO_APPLICATION_PROTOCOL, "{error}");
    }
}
