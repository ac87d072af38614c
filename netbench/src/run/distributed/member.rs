//! Connections to an agent's control port.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::de::DeserializeOwned;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::agent::{Agent, Counted};
use super::control::channel::Channel;
use super::control::options::Options;
use super::control::protocol::{Accepted, Hello, MAX_GREETING, MAX_LINE, Order, Welcome};
use super::control::token::{End, Token, nonce};
use super::group::{Event, Joining, Member};
use crate::engine::ToServer;

/// Maximum time for a controller to identify itself and send its order.
const GREETING: Duration = Duration::from_secs(10);

/// Interval between signs of life of each end.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

struct Control(Channel);

/// Accepts connections to the control port for ever.
pub(super) async fn serve(listener: TcpListener, options: Options) {
    let agent = Rc::new(Agent::new(options));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(stranger) = agent.strangers.take() {
                    tokio::task::spawn_local(attend(Rc::clone(&agent), stream, peer, stranger));
                }
            }
            Err(error) => {
                agent.complain(&format!("cannot accept a connection: {error}"));
                // Most likely no file descriptors are left; other connections will close.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection to its end. Errors of the peer end only this connection.
pub(super) async fn attend(
    agent: Rc<Agent>,
    stream: TcpStream,
    peer: SocketAddr,
    stranger: Counted,
) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    let mut control = Control(Channel::new(stream, MAX_GREETING));
    let greeting = timeout(GREETING, control.greet(&agent)).await;
    let refused = match greeting.unwrap_or_else(|_| Err(silent(GREETING))) {
        Ok((hello, order, _session)) => {
            drop(stranger);
            let host = local.ip().to_canonical();
            control.take_part(&agent, hello, order, host).await.err()
        }
        Err(refused) => Some(refused),
    };
    // Port scans are not reported.
    if let Some(refused) = refused.filter(|refused| !refused.is_empty()) {
        agent.complain(&format!("{peer}: {refused}"));
        let _ = control.0.write_value(&Err::<(), _>(refused)).await;
        control.0.hang_up().await;
    }
}

fn silent(lasted: Duration) -> String {
    format!(
        "nothing was heard of this client for {} s",
        lasted.as_secs()
    )
}

impl Control {
    async fn greet(&mut self, agent: &Agent) -> Result<(Hello, Order, Counted), String> {
        let token = agent.options.token.as_ref();
        let nonce = match token.map(|_| nonce()).transpose() {
            Ok(nonce) => nonce,
            Err(failure) => return Err(failure.to_string()),
        };
        let welcome = serde_json::to_string(&Ok::<_, String>(Welcome::new(nonce)));
        let welcome = welcome.map_err(|error| error.to_string())?;
        self.write(&welcome).await?;
        let line = match self.0.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Err(String::new()),
            Err(error) => return Err(error.to_string()),
        };
        let hello: Hello = parse(&line)?;
        hello.check()?;
        if let Some(token) = token {
            if hello.nonce.is_none() {
                return Err("this agent asks for a token: give --token".to_owned());
            }
            self.prove(token, &welcome, &line).await?;
        }
        check(agent, &hello)?;
        let session = agent.admit()?;
        self.tell(&Accepted).await?;
        self.0.set_limit(MAX_LINE);
        let order = self.expect().await?;
        Ok((hello, order, session))
    }

    /// Waits for the proof that the controller has the token, and seals all that follows. Before, nothing is
    /// sealed: a stranger gets nothing to try tokens with.
    async fn prove(&mut self, token: &Token, welcome: &str, hello: &str) -> Result<(), String> {
        let mut seal = token.seal(End::Agent, welcome, hello);
        match self.0.next().await.map_err(|error| error.to_string())? {
            Some(proof) if seal.open(&proof) == Some("") => {
                self.0.set_seal(seal);
                Ok(())
            }
            Some(_) => Err("the token is not this agent's".to_owned()),
            None => Err("it hung up".to_owned()),
        }
    }

    /// Relays lines between the controller and its group until one of them ends.
    async fn take_part(
        &mut self,
        agent: &Agent,
        hello: Hello,
        order: Order,
        host: IpAddr,
    ) -> Result<(), String> {
        let member = Member {
            connection: agent.next_connection(),
            client: hello.fleet.client,
        };
        let (replies, mut from_group) = unbounded_channel();
        let group = agent.group(key(&hello, &order));
        let joining = Joining {
            member,
            order,
            host,
            replies,
        };
        if group.send(Event::Join(Box::new(joining))).is_err() {
            return Err("the fleet has begun without this client".to_owned());
        }
        let ended = self.relay(agent, member, &group, &mut from_group).await;
        // A group that is over need not know.
        let _ = group.send(Event::Leave(member));
        ended
    }

    async fn relay(
        &mut self,
        agent: &Agent,
        member: Member,
        group: &UnboundedSender<Event>,
        from_group: &mut UnboundedReceiver<String>,
    ) -> Result<(), String> {
        let silence = agent.options.silence;
        let mut heard = Instant::now();
        let mut sign = interval(SIGN_OF_LIFE);
        loop {
            tokio::select! {
                line = self.0.next() => {
                    heard = Instant::now();
                    let Some(line) = line.map_err(|error| error.to_string())? else {
                        return Ok(());
                    };
                    if !line.is_empty() {
                        let said: ToServer = parse(&line)?;
                        let _ = group.send(Event::Say(member, said));
                    }
                }
                line = from_group.recv() => match line {
                    Some(line) => self.write(&line).await?,
                    None => return Ok(()),
                },
                _ = sign.tick() => self.write("").await?,
                () = sleep_until(heard + silence) => return Err(silent(silence)),
            }
        }
    }

    async fn tell<T: serde::Serialize>(&mut self, said: &T) -> Result<(), String> {
        let told = self.0.write_value(&Ok::<_, String>(said)).await;
        told.map_err(|error| error.to_string())
    }

    async fn write(&mut self, line: &str) -> Result<(), String> {
        let told = self.0.write(line).await;
        told.map_err(|error| error.to_string())
    }

    async fn expect<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        match self.0.next().await {
            Ok(Some(line)) => parse(&line),
            Ok(None) => Err("it hung up".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|_| {
        "this is the control port of `netbench server`, which `netbench client` talks to".to_owned()
    })
}

/// Checks that this is the agent that the controller wants.
fn check(agent: &Agent, hello: &Hello) -> Result<(), String> {
    let options = &agent.options;
    if let Some(id) = &options.scenario_id
        && *id != hello.scenario_id
    {
        return Err(format!(
            "this agent serves the scenario {id} and no other: start both ends with the same file"
        ));
    }
    if let Some(id) = options.server_id
        && id != hello.server
    {
        return Err(format!(
            "this agent is SERVER_{id} of its scenario, not SERVER_{}",
            hello.server
        ));
    }
    let size = hello.fleet.size;
    if size != options.fleet {
        return Err(format!(
            "this agent serves fleets of {}, this client is of one of {size}: give both the same \
             --fleet",
            options.fleet
        ));
    }
    if hello.fleet.client >= size {
        let client = hello.fleet.client;
        return Err(format!(
            "client {client} is not of a fleet of {size}, which has the clients 0 to {}",
            size.saturating_sub(1)
        ));
    }
    Ok(())
}

/// Returns the key under which the clients of a fleet meet.
fn key(hello: &Hello, order: &Order) -> String {
    let Order { spec, .. } = order;
    let what = (&spec.setup.cell, &spec.setup.transport, &spec.scenario);
    let what = serde_json::to_vec(&what).unwrap_or_default();
    let digest = digest(&SHA256, &what);
    format!("{} {:02x?} {}", hello.server, digest.as_ref(), hello.round)
}
