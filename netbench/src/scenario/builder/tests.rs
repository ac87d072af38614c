use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::scenario::{Datagrams, Template};

/// The script of a bundled request, as the client of `connect` and of `pool` has it.
fn request(connection: &mut Script<AtClient, Connection>) {
    connection.open_bidi(
        |local| {
            local.send(1).finish().receive_all();
        },
        |peer| {
            peer.receive_all().send(1).finish();
        },
    );
}

/// Both without what only files have: parameters and a description.
fn assert_same(built: &Scenario, name: &str) {
    let mut file = Template::load(name)
        .unwrap()
        .resolve(&BTreeMap::new())
        .unwrap();
    file.params.clear();
    file.description.clear();
    assert_eq!(*built, file);
    assert_eq!(built.id(), file.id());
}

#[test]
fn what_is_built_equals_what_the_file_says() {
    let built = Scenario::build("request-response", |scenario| {
        let server = scenario.server();
        scenario.warm_up(20);
        scenario.client("client", |client| {
            client.connect(server, |connections| {
                connections.count(200).client(|connection| {
                    connection.iterate(Turns::times(1), |connection| {
                        connection.request("", request);
                    });
                });
            });
        });
    });
    assert_same(&built.unwrap(), "request-response");
}

#[test]
fn pools_and_floods_are_built_too() {
    let built = Scenario::build("bursts", |scenario| {
        let server = scenario.server();
        let mut axes = Axes::default();
        axes.set("idle_timeout", "1s,10s").unwrap();
        scenario.measure(Duration::from_mins(1)).axes(axes);
        scenario.client("client", |client| {
            client.pool(server, |requests| {
                requests
                    .connections(10)
                    .burst(10)
                    .every(Duration::from_secs(5))
                    .keep(Duration::from_secs(1))
                    .request(request);
            });
        });
    });
    assert_same(&built.unwrap(), "bursts");

    let built =
        Scenario::build("overload", |scenario| {
            let server = scenario.server();
            scenario.measure(Duration::from_secs(12));
            scenario.client("client", |client| {
                client.scope(|threads| {
                    threads.thread(|client| {
                        client.connect(server, |connections| {
                            connections
                                .label("established")
                                .count(20)
                                .concurrency(20)
                                .timeout(Duration::from_hours(1))
                                .client(|connection| {
                                    connection.iterate(Turns::endless().rate(50.0), |connection| {
                                        connection.request("", request);
                                    });
                                });
                        });
                    });
                    threads.thread(|client| {
                        client.sleep(Duration::from_secs(2));
                        client.connect(server, |connections| {
                            connections.label("flood").unlimited().rate(2000.0).client(
                                |connection| {
                                    connection.open_bidi(
                                        |local| {
                                            local.send(1).finish().receive_all();
                                        },
                                        |peer| {
                                            peer.receive(1).send(1).finish();
                                        },
                                    );
                                },
                            );
                        });
                    });
                });
            });
        });
    assert_same(&built.unwrap(), "overload");
}

#[test]
fn checkpoints_order_the_threads_of_either_end() {
    let scenario = Scenario::build("checkpoints", |scenario| {
        let server = scenario.server();
        scenario.client("client", |client| {
            client.connect(server, |connections| {
                connections.client(|connection| {
                    let (park, unpark) = connection.checkpoint();
                    let (peer_park, peer_unpark) = connection.peer_checkpoint();
                    connection.scope(|threads| {
                        threads.thread(|connection| {
                            connection.open_uni(
                                |local| {
                                    local.park(park).send_rate(1024, Duration::from_millis(50));
                                    local.send(4096).finish();
                                },
                                |peer| {
                                    peer.park(peer_park).receive_all();
                                },
                            );
                        });
                        threads.thread(|connection| {
                            connection.open_bidi(
                                |local| {
                                    local.concurrently(
                                        |send| {
                                            send.send(1).reset(7);
                                        },
                                        |receive| {
                                            receive.receive(5).receive_all();
                                        },
                                    );
                                    local.unpark(unpark);
                                },
                                |peer| {
                                    peer.send(9).finish().unpark(peer_unpark);
                                },
                            );
                        });
                    });
                    connection.datagrams(Datagrams {
                        count: 3,
                        bytes: 100,
                        rate: None,
                        echo: true,
                    });
                });
            });
        });
    })
    .unwrap();
    let text = serde_json::to_string(&scenario.clients[0].ops).unwrap();
    assert!(
        text.contains(r#"{"park":0}"#) && text.contains(r#"{"unpark":0}"#),
        "{text}"
    );
    assert!(
        text.contains(r#"{"park":1}"#) && text.contains(r#"{"unpark":1}"#),
        "{text}"
    );
}

#[test]
fn what_types_cannot_tell_is_validated() {
    let problem = Scenario::build("idle", |_| {}).unwrap_err().to_string();
    assert!(
        problem.starts_with("idle: clients: there is none"),
        "{problem}"
    );
    let problem = Scenario::build("waits", |scenario| {
        let server = scenario.server();
        scenario.client("client", |client| {
            let (park, _) = client.checkpoint();
            client.connect(server, |_| {}).park(park);
        });
    });
    assert!(problem.unwrap_err().to_string().contains("waits for ever"));
}
