//! A run: its processes, group after group.

use std::process::{ExitCode, Stdio};

use hybriq::tls::Backend;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Failure;
use crate::certificate::Certificate;
use crate::cli::{Bulk, Common, RequestResponse, Scenario};
use crate::groups::{self, Plan, Selection};
use crate::machine::Machine;
use crate::message::{
    ClientSpec, FromClient, FromServer, ServerSpec, Settings, ToClient, ToServer, Work,
};
use crate::progress::Progress;
use crate::report::{Report, Row};

/// Connections made before the measured ones.
const WARM_UP: u64 = 50;

/// What to measure, whatever the scenario.
struct Run {
    backend: Backend,
    selection: Selection,
    work: Work,
    connections: u64,
    concurrency: u32,
    common: Common,
    certificate: Certificate,
    machine: Machine,
}

/// Runs a scenario. Rows are printed as they come, so that what was measured is seen whatever
/// happens later.
pub(crate) async fn run(scenario: Scenario) -> Result<ExitCode, Failure> {
    let run = Run::new(scenario)?;
    let mut complete = true;
    let plans = run.selection.plans(run.backend, |group, reason| {
        eprintln!("netbench: {group} left out: {reason}");
    })?;
    let mut report = Report::new(run.work, run.concurrency, run.machine.clone());
    if let Some(path) = &run.common.json {
        report.write_json(path)?;
    }
    report.print_head();
    for plan in &plans {
        match run.measure(plan).await {
            Ok(row) => {
                complete &= row.is_complete();
                report.print_row(&row);
                report.rows.push(row);
            }
            Err(failure) => {
                complete = false;
                eprintln!("netbench: {}: {failure}", plan.group);
            }
        }
        if let Some(path) = &run.common.json {
            report.write_json(path)?;
        }
    }
    report.print_foot();
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Run {
    fn new(scenario: Scenario) -> Result<Self, Failure> {
        let (groups, work, connections, concurrency, common) = match scenario {
            Scenario::RequestResponse(RequestResponse {
                groups,
                connections,
                concurrency,
                request_size: request,
                response_size: response,
                common,
            }) => {
                let work = Work::RequestResponse { request, response };
                (groups, work, connections, concurrency, common)
            }
            Scenario::Bulk(Bulk {
                bytes,
                groups,
                common,
            }) => (groups, Work::Bulk { bytes }, 1, 1, common),
        };
        if common.listen.ip().is_unspecified() {
            let listen = common.listen;
            return Err(
                format!("{listen} is no address to connect to; give one, as 127.0.0.1:0").into(),
            );
        }
        Ok(Self {
            backend: groups::backend(&common.tls)?,
            selection: groups::parse(&groups)?,
            work,
            connections,
            concurrency,
            common,
            certificate: Certificate::make()?,
            machine: Machine::detect(),
        })
    }

    async fn measure(&self, plan: &Plan) -> Result<Row, Failure> {
        let (total, unit) = match self.work {
            Work::RequestResponse { .. } => (self.connections, "connections"),
            Work::Bulk { bytes } => (bytes, "bytes"),
        };
        let progress = Progress::start(&plan.group.to_string(), total, unit);
        let settings = Settings {
            chain: self.certificate.chain.clone(),
            work: self.work,
            datagram_size: self.common.datagram_size,
        };

        let mut server = Process::start(
            "serve",
            &ServerSpec {
                core: self.machine.server_core,
                listen: self.common.listen,
                tls: plan.server.clone(),
                key: self.certificate.key.clone(),
                settings: settings.clone(),
            },
        )
        .await?;
        let FromServer::Listening(address) = server.hear().await? else {
            return Err(server.out_of_turn());
        };
        let mut client = Process::start(
            "drive",
            &ClientSpec {
                core: self.machine.client_core,
                server: address,
                tls: plan.client.clone(),
                group: plan.group.0,
                warm_up: WARM_UP.min(self.connections.div_ceil(10)),
                connections: self.connections,
                concurrency: self.concurrency,
                settings,
            },
        )
        .await?;
        let Some(row) = converse(plan, &mut server, &mut client, &progress).await? else {
            return Err("server and client lost their place".into());
        };
        Ok(row)
    }
}

/// Takes both processes through warm-up and measured phase. `None`: one spoke out of turn.
async fn converse(
    plan: &Plan,
    server: &mut Process,
    client: &mut Process,
    progress: &Progress,
) -> Result<Option<Row>, Failure> {
    let warmed_up = loop {
        match hear_client(client, server).await? {
            FromClient::Progress(_) => {}
            FromClient::Ready { warmed_up } => break warmed_up,
            FromClient::Report(_) => return Ok(None),
        }
    };
    server.tell(&ToServer::Mark { after: warmed_up }).await?;
    let FromServer::Marked = server.hear().await? else {
        return Ok(None);
    };
    client.tell(&ToClient::Go).await?;
    let seen_by_client = loop {
        match hear_client(client, server).await? {
            FromClient::Progress(done) => progress.set(done),
            FromClient::Report(report) => break report,
            FromClient::Ready { .. } => return Ok(None),
        }
    };
    let after = seen_by_client.completed + seen_by_client.failed;
    server.tell(&ToServer::Report { after }).await?;
    let FromServer::Report(seen_by_server) = server.hear().await? else {
        return Ok(None);
    };
    Ok(Some(Row::new(plan, seen_by_server, *seen_by_client)))
}

/// Waits for the client, and for the end of a server that speaks unasked only of its failure.
async fn hear_client(client: &mut Process, server: &mut Process) -> Result<FromClient, Failure> {
    tokio::select! {
        message = client.hear() => message,
        unasked = server.hear::<FromServer>() => Err(match unasked {
            Ok(_) => server.out_of_turn(),
            Err(failure) => failure,
        }),
    }
}

/// A child process of this binary. Dropping it ends it.
struct Process {
    name: &'static str,
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Process {
    async fn start<S: Serialize>(name: &'static str, spec: &S) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child process without its pipes".into());
        };
        let mut process = Self {
            name,
            child,
            to,
            from: BufReader::new(from).lines(),
        };
        process.tell(spec).await?;
        Ok(process)
    }

    async fn tell<T: Serialize>(&mut self, message: &T) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        if self.to.write_all(&line).await.is_err() {
            // It is gone; its last line says why.
            return Err(match self.hear::<serde_json::Value>().await {
                Ok(_) => self.out_of_turn(),
                Err(failure) => failure,
            });
        }
        Ok(())
    }

    async fn hear<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let Some(line) = self.from.next_line().await? else {
            let status = self.child.wait().await?;
            return Err(format!("the `{}` process ended early ({status})", self.name).into());
        };
        match serde_json::from_str::<Result<T, String>>(&line)? {
            Ok(message) => Ok(message),
            Err(failure) => Err(failure.into()),
        }
    }

    fn out_of_turn(&self) -> Failure {
        format!("the `{}` process spoke out of turn", self.name).into()
    }
}
