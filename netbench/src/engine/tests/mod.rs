//! Tests that play scenarios between both ends in one process.

mod fake;
mod loopback;
mod loops;
mod pools;
mod scripts;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use self::fake::{Fake, Network};
use super::client::Client;
use super::{
    ClientSpec, FromClient, FromServer, Progress, ServerReport, ServerSpec, ToClient, ToServer,
    server,
};
use crate::drivers::{Certificates, Driver, Setup, Transport};
use crate::report::results::{KindResult, Repetition};
use crate::scenario::axes::Cell;
use crate::scenario::{Scenario, Template};

/// Outcome of a played scenario.
struct Played {
    client: Repetition,
    server: ServerReport,
    progress: Vec<Progress>,
    warm_up: u64,
}

impl Played {
    /// Returns the outcome of the connections without a label.
    fn kind(&self) -> &KindResult {
        &self.client.kinds[""]
    }

    fn outcomes(&self) -> Vec<(&str, u64)> {
        self.kind()
            .outcomes
            .iter()
            .map(|(kind, count)| (kind.as_str(), *count))
            .collect()
    }
}

/// Returns a scenario with one client that runs these operations, and these phases.
fn scenario(phases: &str, ops: &str) -> Scenario {
    let text = format!(
        r#"{{"netbench": 1, "name": "test", "phases": {phases},
            "clients": [{{"name": "client", "ops": {ops}}}]}}"#
    );
    let template = Template::parse("test", &text).unwrap();
    template.resolve(&BTreeMap::new()).unwrap()
}

fn setup(cell: Cell) -> Setup {
    Setup {
        cell,
        certificates: Certificates::default(),
        transport: Transport::default(),
    }
}

/// Plays a scenario from the warm-up to the reports.
async fn play(driver: &dyn Driver, setup: Setup, scenario: Scenario) -> Played {
    let (to_server, orders) = unbounded_channel();
    let (from_server, mut reports) = unbounded_channel();
    let spec = ServerSpec {
        core: None,
        listen: ([127, 0, 0, 1], 0).into(),
        setup: setup.clone(),
        scenario: scenario.clone(),
    };
    let serving = server::obey(spec, driver, orders, move |message| {
        from_server.send(message).unwrap();
        Ok(())
    });
    let measuring = async {
        let Some(FromServer::Listening(address)) = reports.recv().await else {
            panic!("the server does not listen");
        };
        let spec = ClientSpec {
            core: None,
            servers: vec![address],
            setup,
            scenario,
            client: 0,
            sample_ms: 100,
        };
        let client = Client::new(spec, driver).unwrap();
        let heard = Rc::new(RefCell::new(Vec::new()));
        let (warm_up, _) = obey(&client, ToClient::WarmUp, &heard).await;
        let FromClient::Ready { connections } = warm_up else {
            panic!("{warm_up:?}");
        };
        let after = ToServer::Measure { after: connections };
        to_server.send(after).unwrap();
        assert!(matches!(reports.recv().await, Some(FromServer::Measuring)));
        let (report, _) = obey(&client, ToClient::Measure, &heard).await;
        let FromClient::Report(report) = report else {
            panic!("{report:?}");
        };
        let after = report.client.completed + report.client.failed;
        to_server.send(ToServer::Stop { after }).unwrap();
        let Some(FromServer::Report(server)) = reports.recv().await else {
            panic!("no report of the server");
        };
        drop(to_server);
        Played {
            client: *report,
            server: *server,
            progress: heard.take(),
            warm_up: connections,
        }
    };
    let (served, played) = tokio::join!(serving, measuring);
    served.unwrap();
    played
}

/// Gives one order and returns the answer.
async fn obey(
    client: &Client,
    order: ToClient,
    heard: &Rc<RefCell<Vec<Progress>>>,
) -> (FromClient, UnboundedSender<ToClient>) {
    let (orders, received) = unbounded_channel();
    orders.send(order).unwrap();
    let answers = RefCell::new(Vec::new());
    let answered = tokio::sync::Notify::new();
    let tell = |message| {
        match message {
            FromClient::Progress(progress) => heard.borrow_mut().push(progress),
            answer => {
                answers.borrow_mut().push(answer);
                answered.notify_one();
            }
        }
        Ok(())
    };
    tokio::select! {
        _ = client.obey(received, tell) => {}
        () = answered.notified() => {}
    }
    let answer = answers.borrow_mut().pop().unwrap();
    (answer, orders)
}

/// Plays a scenario on virtual time, over a network with these changes.
fn play_over(change: impl FnOnce(&mut Network), phases: &str, ops: &str) -> (Played, Rc<Network>) {
    on_virtual_time(async {
        let mut network = Network::new();
        change(&mut network);
        let network = Rc::new(network);
        let driver = Fake(Rc::clone(&network));
        let scenario = scenario(phases, ops);
        let played = play(&driver, setup(Cell::default()), scenario).await;
        (played, network)
    })
}

/// Runs a future on virtual time.
fn on_virtual_time<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(LocalSet::new().run_until(future))
}

/// Runs a future as a measuring process does.
fn on_this_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(LocalSet::new().run_until(future))
}

/// Returns true if two durations in microseconds are equal to the three digits of histograms.
fn is_about(measured: f64, exact: f64) -> bool {
    (measured - exact).abs() <= exact * 0.002 + 1.0
}
