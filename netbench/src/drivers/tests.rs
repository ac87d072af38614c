use std::rc::Rc;

use super::*;
use crate::{certificates, outcome};

fn on_this_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(future))
}

fn setup(cell: Cell) -> Setup {
    Setup {
        certificates: certificates::make(cell.certificate, cell.chain, cell.client_auth).unwrap(),
        cell,
        transport: Transport::default(),
    }
}

struct Pair {
    listener: Box<dyn Listener>,
    connector: Box<dyn Connector>,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        let (server, client) = (
            driver(&setup.cell.driver).unwrap(),
            driver(&setup.cell.client).unwrap(),
        );
        server.check(Role::Server, &setup.cell).unwrap();
        client.check(Role::Client, &setup.cell).unwrap();
        let listener = server.listen(setup, ([127, 0, 0, 1], 0).into()).unwrap();
        let connector = client.client(setup, listener.address()).unwrap();
        Self {
            listener,
            connector,
        }
    }

    async fn connect(
        &mut self,
    ) -> (
        Result<Rc<dyn Connection>, outcome::Failed>,
        Result<Rc<dyn Connection>, outcome::Failed>,
    ) {
        let address = self.listener.address();
        let connect = self.connector.connect(address, certificates::SERVER_NAME);
        let accept = async { self.listener.accept().await?.await };
        tokio::join!(connect, accept)
    }
}

#[test]
fn each_group_is_negotiated_by_both_providers_if_they_have_it() {
    for provider in ["rustls", "s2n-tls"] {
        for group in hybriq_groups() {
            let cell = Cell {
                provider: provider.to_owned(),
                group: group.clone(),
                ..Cell::default()
            };
            if driver("hybriq")
                .unwrap()
                .check(Role::Server, &cell)
                .is_err()
            {
                assert_eq!((provider, group.as_str()), ("s2n-tls", "MLKEM768"));
                continue;
            }
            on_this_thread(async {
                let (client, server) = Pair::new(&setup(cell)).connect().await;
                let negotiated = client.unwrap().established().await.unwrap();
                assert_eq!(negotiated.group, group);
                assert_eq!(negotiated.suite, "TLS_AES_128_GCM_SHA256");
                assert_eq!(negotiated.hello_retry, Some(false));
                assert_eq!(server.unwrap().established().await.unwrap().group, group);
            });
        }
    }
}

fn hybriq_groups() -> Vec<String> {
    ::hybriq::Group::ALL
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn every_kind_of_certificate_is_verified() {
    for certificate in certificates::KINDS {
        on_this_thread(async {
            let (client, server) = Pair::new(&setup(Cell {
                certificate,
                chain: 3,
                client_auth: true,
                ..Cell::default()
            }))
            .connect()
            .await;
            client.unwrap_or_else(|error| panic!("{certificate:?}: {error}"));
            server.unwrap_or_else(|error| panic!("{certificate:?}: {error}"));
        });
    }
}
