//! The controller's end: server processes run by agents.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::Target;
use super::control::channel::Channel;
use super::control::lines::{LineReader, write_line, write_value};
use super::control::protocol::{
    Accepted, Hello, Listening, MAX_LINE, Order, PROTOCOL, Welcome, version,
};
use super::control::token::{End, Token, nonce};
use super::member::SIGN_OF_LIFE;
use crate::drivers::Certificates;
use crate::engine::ServerSpec;
use crate::report::results::Fleet;
use crate::system::failure::Failure;
use crate::system::machine::Machine;
use crate::system::process::Process;

/// Maximum time for an agent to answer a greeting.
const GREETING: Duration = Duration::from_secs(10);

/// Maximum time for a server process to start listening.
const START: Duration = Duration::from_secs(30);

/// Maximum silence of an agent.
const SILENCE: Duration = Duration::from_secs(30);

/// The servers of a run, on other hosts.
#[derive(Debug)]
pub(crate) struct Agents {
    /// Agents in the order of the scenario's server numbers.
    pub(crate) targets: Vec<Target>,
    pub(crate) token: Option<Token>,
    pub(crate) fleet: Fleet,
    /// Maximum time that the first client of a fleet waits for the last.
    pub(crate) wait: Duration,
    pub(crate) scenario_id: String,
    /// Number of server processes requested from each agent.
    pub(crate) rounds: RefCell<Vec<u64>>,
    /// True if an agent could not be reached, so that nothing more can be measured.
    pub(crate) is_lost: Cell<bool>,
}

/// Server process that listens.
pub(crate) struct Started {
    /// Connection that carries the messages of [`crate::engine`], from `Measure` on.
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    /// Certificates for the client.
    pub(crate) certificates: Certificates,
    pub(crate) machine: Machine,
    /// Number of server processes requested from this agent.
    pub(crate) round: u64,
}

impl Agents {
    /// Starts a server process on the agent with that number; `certificates` is for clients.
    pub(crate) async fn start(
        &self,
        server: usize,
        spec: &ServerSpec,
        certificates: &Certificates,
    ) -> Result<Started, Failure> {
        let Some(agent) = self.targets.get(server) else {
            return Err(format!("the scenario needs SERVER_{server}: give its address").into());
        };
        let round = self.next_round(server);
        let hello = Hello {
            netbench: version(),
            protocol: PROTOCOL,
            nonce: None,
            scenario_id: self.scenario_id.clone(),
            server,
            fleet: self.fleet,
            round,
        };
        let order = Order {
            spec: spec.clone(),
            certificates: certificates.clone(),
        };
        let name = format!("the agent at {agent}");
        let connected = agent.connect().await;
        self.is_lost.set(connected.is_err());
        let stream = connected?;
        let started = self.open(stream, hello, &order).await;
        let (control, listening, address) = started.map_err(|why| format!("{name}: {why}"))?;
        let (lines, theirs) = duplex(64 << 10);
        tokio::task::spawn_local(control.relay(name.clone(), theirs));
        let (from, to) = split(lines);
        Ok(Started {
            process: Process::over(name, from, to),
            round,
            address,
            certificates: listening.certificates,
            machine: listening.machine,
        })
    }

    /// Returns the time that a fleet may take beyond that of one client to join, begin and end.
    pub(crate) fn patience(&self) -> Duration {
        if self.fleet.size > 1 {
            self.wait
        } else {
            Duration::ZERO
        }
    }

    fn next_round(&self, server: usize) -> u64 {
        let mut rounds = self.rounds.borrow_mut();
        if rounds.len() <= server {
            rounds.resize(server + 1, 0);
        }
        rounds.get_mut(server).map_or(0, |round| {
            *round += 1;
            *round
        })
    }

    async fn open(
        &self,
        stream: TcpStream,
        hello: Hello,
        order: &Order,
    ) -> Result<(Control, Listening, SocketAddr), String> {
        let peer = stream.peer_addr().map_err(|error| error.to_string())?;
        let mut control = Control(Channel::new(stream, MAX_LINE));
        timeout(GREETING, self.greet(&mut control, hello, order))
            .await
            .map_err(|_| "it does not answer as `netbench server` does".to_owned())??;
        let listening: Listening = timeout(START + self.patience(), control.expect())
            .await
            .map_err(|_| "its server process does not begin to listen".to_owned())??;
        let address = reached(peer, listening.address.port());
        Ok((control, listening, address))
    }

    async fn greet(
        &self,
        control: &mut Control,
        mut hello: Hello,
        order: &Order,
    ) -> Result<(), String> {
        let line = control.line().await?;
        let welcome: Welcome = understand(&line)?;
        welcome.check()?;
        match (&welcome.nonce, &self.token) {
            (Some(_), Some(token)) => {
                hello.nonce = Some(nonce().map_err(|failure| failure.to_string())?);
                let said = serde_json::to_string(&hello).map_err(|error| error.to_string())?;
                control.write(&said).await?;
                control
                    .0
                    .set_seal(token.seal(End::Controller, &line, &said));
                control.write("").await?;
            }
            // Somebody in between may have removed the question.
            (None, Some(_)) => {
                return Err(
                    "it asks for no token, and this client has one: start it with --token, or \
                     this client without"
                        .to_owned(),
                );
            }
            (_, None) => control.tell(&hello).await?,
        }
        let Accepted = control.expect().await?;
        control.tell(order).await
    }
}

/// Returns the peer's host, with its zone, and this port.
fn reached(mut peer: SocketAddr, port: u16) -> SocketAddr {
    peer.set_port(port);
    peer
}

struct Control(Channel);

impl Control {
    async fn tell<T: Serialize>(&mut self, said: &T) -> Result<(), String> {
        match self.0.write_value(said).await {
            Ok(()) => Ok(()),
            // The agent disconnected; its last line gives the reason.
            Err(error) => Err(self
                .expect::<serde_json::Value>()
                .await
                .err()
                .unwrap_or_else(|| error.to_string())),
        }
    }

    async fn expect<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        understand(&self.line().await?)
    }

    /// Returns the next line that is no sign of life.
    async fn line(&mut self) -> Result<String, String> {
        loop {
            match self.0.next().await.map_err(|error| error.to_string())? {
                Some(line) if line.is_empty() => {}
                Some(line) => return Ok(line),
                None => return Err("it hung up".to_owned()),
            }
        }
    }

    /// Relays lines in both directions, without the signs of life. Ends with the last line.
    async fn relay(mut self, name: String, ours: DuplexStream) {
        let (from, mut to) = split(ours);
        let mut from = LineReader::new(from, MAX_LINE);
        if let Err(why) = self.pass(&mut from, &mut to).await {
            let _ = write_value(&mut to, &Err::<(), _>(format!("{name}: {why}"))).await;
        }
    }

    async fn pass<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        from: &mut LineReader<R>,
        to: &mut W,
    ) -> Result<(), String> {
        let mut heard = Instant::now();
        let mut sign = interval(SIGN_OF_LIFE);
        loop {
            tokio::select! {
                line = self.0.next() => {
                    heard = Instant::now();
                    let lost = |error| format!("the connection to it is lost: {error}");
                    match line.map_err(lost)?.as_deref() {
                        Some("") => {}
                        Some(line) => {
                            write_line(to, line).await.map_err(|error| error.to_string())?;
                        }
                        None => return Err("it is gone".to_owned()),
                    }
                }
                line = from.next() => match line {
                    Ok(Some(line)) => self.write(&line).await?,
                    // The run has finished with it.
                    _ => return Ok(()),
                },
                _ = sign.tick() => self.write("").await?,
                () = sleep_until(heard + SILENCE) => {
                    return Err(format!("nothing was heard of it for {} s", SILENCE.as_secs()));
                }
            }
        }
    }

    async fn write(&mut self, line: &str) -> Result<(), String> {
        let lost = |error| format!("the connection to it is lost: {error}");
        self.0.write(line).await.map_err(lost)
    }
}

fn understand<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str::<Result<T, String>>(line)
        .map_err(|_| "it does not speak as `netbench server` does".to_owned())?
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex, split};
    use tokio::net::{TcpListener, TcpStream};

    use super::{Channel, Control, MAX_LINE};
    use crate::system::process::Process;

    /// Returns both ends of a connection: the controller's and the agent's.
    async fn connected() -> (Control, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let control = Control(Channel::new(ours.unwrap(), MAX_LINE));
        (control, theirs.unwrap().0)
    }

    /// Returns the last line for the run when the relay is over.
    async fn last_line(control: Control) -> String {
        let (ours, theirs) = duplex(1024);
        let (from, to) = split(ours);
        let mut process = Process::over("host:1".to_owned(), from, to);
        let relay = control.relay("host:1".to_owned(), theirs);
        let ((), heard) = tokio::join!(relay, process.receive::<u8>());
        heard.unwrap_err().to_string()
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn an_agent_that_is_silent_is_given_up() {
        let (control, _silent) = connected().await;
        let heard = last_line(control).await;
        assert_eq!(heard, "host:1: nothing was heard of it for 30 s");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_agent_that_hangs_up_is_told_after_its_last_line() {
        let (control, mut agent) = connected().await;
        agent.write_all(b"\n{\"Err\":\"no room\"}\n").await.unwrap();
        drop(agent);
        assert_eq!(last_line(control).await, "no room");
        let (control, agent) = connected().await;
        drop(agent);
        assert_eq!(last_line(control).await, "host:1: it is gone");
    }
}
