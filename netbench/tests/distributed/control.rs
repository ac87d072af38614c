//! The control port of `netbench server`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use aws_lc_rs::hmac;
use serde_json::{Value, json};

use crate::agent::{Agent, netbench, only_line};
use crate::processes::PATIENCE;

/// One connection to a control port.
struct Control(BufReader<TcpStream>);

impl Control {
    fn open(agent: &Agent) -> Self {
        let stream = TcpStream::connect(agent.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// Greets as a client of this version does; `more` has the last word.
    fn greet(agent: &Agent, more: &Value) -> (Self, Value) {
        let mut control = Self::open(agent);
        let welcome = control.receive();
        let mut hello = welcome["Ok"].clone();
        hello.as_object_mut().unwrap().remove("nonce");
        for (key, value) in more.as_object().unwrap() {
            hello[key] = value.clone();
        }
        control.say(hello.to_string().as_bytes());
        control.say(b"\n");
        let answer = control.receive();
        (control, answer)
    }

    fn say(&mut self, bytes: &[u8]) {
        // The agent may have hung up already; what it said stays to be read.
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// The next line that says something; null at the end.
    fn receive(&mut self) -> Value {
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) | Err(_) => return Value::Null,
                Ok(_) if line.trim().is_empty() => {}
                Ok(_) => return serde_json::from_str(&line).unwrap(),
            }
        }
    }
}

/// A conversation with an agent that was begun with a token.
struct Sealed {
    control: Control,
    key: hmac::Key,
    said: u64,
    heard: u64,
}

impl Sealed {
    /// Greets as a client with a token does, with this line as the proof.
    fn greet(agent: &Agent, proof: impl FnOnce(&mut Self) -> String) -> Self {
        let mut control = Control::open(agent);
        let mut welcome = String::new();
        control.0.read_line(&mut welcome).unwrap();
        let mut hello = serde_json::from_str::<Value>(&welcome).unwrap()["Ok"].clone();
        hello["nonce"] = json!("a number of the client");
        let token = hmac::Key::new(hmac::HMAC_SHA256, b"correct horse");
        let greetings = format!("netbench control port, sealed lines\n{welcome}{hello}\n");
        let key = hmac::sign(&token, greetings.as_bytes());
        let mut sealed = Self {
            control,
            key: hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()),
            said: 0,
            heard: 0,
        };
        let proof = proof(&mut sealed);
        sealed.control.say(format!("{hello}\n{proof}\n").as_bytes());
        sealed
    }

    fn hmac(&self, end: char, number: u64, line: &str) -> String {
        let message = format!("{end} {number} {line}");
        let proof = hmac::sign(&self.key, message.as_bytes());
        let hex = proof.as_ref().iter().map(|byte| format!("{byte:02x}"));
        hex.collect()
    }

    /// Returns the next line as the client says it.
    fn seal(&mut self, line: &str) -> String {
        let proof = self.hmac('c', self.said, line);
        self.said += 1;
        format!("{proof} {line}")
    }

    /// Returns the next line of the agent that says something; null at the end.
    fn receive(&mut self) -> Value {
        loop {
            let mut sealed = String::new();
            if let Ok(0) | Err(_) = self.control.0.read_line(&mut sealed) {
                return Value::Null;
            }
            let (proof, line) = sealed.trim_end_matches('\n').split_once(' ').unwrap();
            assert_eq!(proof, self.hmac('a', self.heard, line));
            self.heard += 1;
            if !line.is_empty() {
                return serde_json::from_str(line).unwrap();
            }
        }
    }
}

fn refusal(answer: &Value) -> &str {
    let line = answer["Err"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn junk_gets_one_line_and_the_agent_goes_on() {
    let agent = Agent::start(&[]);
    let endless = vec![b'x'; 1 << 16];
    let junk: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
        b"{\"netbench\":7}\n",
        b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
        b"\n",
        &endless,
    ];
    for bytes in junk {
        let mut control = Control::open(&agent);
        assert!(control.receive()["Ok"]["netbench"].is_string());
        control.say(bytes);
        refusal(&control.receive());
    }
    for bytes in [&b""[..], b"{\"netbench\""] {
        let mut control = Control::open(&agent);
        control.say(bytes);
        control.0.get_ref().shutdown(Shutdown::Write).unwrap();
        let _ = control.0.read_to_end(&mut Vec::new());
    }
    let (mut control, answer) = Control::greet(&agent, &json!({}));
    assert!(answer.get("Ok").is_some(), "{answer}");
    control.say(b"{\"spec\":{}}\n");
    refusal(&control.receive());
}

#[test]
fn only_the_token_opens_the_port() {
    let agent = Agent::start(&["--token", "correct horse"]);
    let (_, answer) = Control::greet(&agent, &json!({}));
    assert!(refusal(&answer).contains("--token"));
    for proof in ["", "00", "correct horse", &"0".repeat(64)] {
        let mut sealed = Sealed::greet(&agent, |_| proof.to_owned());
        // Not sealed: nothing that tokens could be tried with.
        let answer = sealed.control.receive();
        assert!(refusal(&answer).contains("token"), "{answer}");
    }
    let mut sealed = Sealed::greet(&agent, |sealed| sealed.seal(""));
    let answer = sealed.receive();
    assert!(answer.get("Ok").is_some(), "{answer}");
}

/// Somebody between the two passes the greetings and the proof on, and goes on alone.
#[test]
fn a_connection_cannot_be_taken_over() {
    let agent = Agent::start(&["--token", "correct horse"]);
    let order = r#"{"spec":{}}"#;
    let begun = || {
        let mut sealed = Sealed::greet(&agent, |sealed| sealed.seal(""));
        let answer = sealed.receive();
        assert!(answer.get("Ok").is_some(), "{answer}");
        sealed
    };
    // The client's own order is read, and refused only because it lacks what an order has.
    let mut sealed = begun();
    let line = sealed.seal(order);
    sealed.control.say(format!("{line}\n").as_bytes());
    assert!(!refusal(&sealed.receive()).contains("in between"));
    let forgeries: [fn(&mut Sealed, &str) -> String; 5] = [
        |_, order| order.to_owned(),
        |_, order| format!("{} {order}", "0".repeat(64)),
        // Another line of the client, an earlier one, and one of the agent.
        |sealed, order| sealed.seal("{}").replace("{}", order),
        |sealed, _| format!("{} ", sealed.hmac('c', 0, "")),
        |sealed, order| format!("{} {order}", sealed.hmac('a', 1, order)),
    ];
    for forge in forgeries {
        let mut sealed = begun();
        let line = forge(&mut sealed, order);
        sealed.control.say(format!("{line}\n").as_bytes());
        let answer = sealed.receive();
        assert!(refusal(&answer).contains("in between"), "{answer}");
        assert_eq!(sealed.receive(), Value::Null);
    }
}

#[test]
fn another_version_is_told_both_versions() {
    let agent = Agent::start(&[]);
    let (_, answer) = Control::greet(&agent, &json!({ "netbench": "99.0.0\u{7}" }));
    let line = refusal(&answer);
    assert!(
        line.contains("99.0.0 ") && line.contains(env!("CARGO_PKG_VERSION")),
        "{line}"
    );
    let (_, answer) = Control::greet(&agent, &json!({ "protocol": 4_000_000 }));
    assert!(refusal(&answer).contains("protocol 4000000"));
}

#[test]
fn an_agent_that_is_full_or_meant_for_others_says_so() {
    let agent = Agent::start(&["--sessions", "1", "--server-id", "1"]);
    let (_, answer) = Control::greet(&agent, &json!({ "server": 0 }));
    assert!(refusal(&answer).contains("SERVER_1"), "{answer}");
    let (_, answer) = Control::greet(
        &agent,
        &json!({ "server": 1, "fleet": { "size": 3, "client": 0 } }),
    );
    assert!(refusal(&answer).contains("--fleet"), "{answer}");
    let (first, answer) = Control::greet(&agent, &json!({ "server": 1 }));
    assert!(answer.get("Ok").is_some(), "{answer}");
    let (_, answer) = Control::greet(&agent, &json!({ "server": 1 }));
    assert!(refusal(&answer).contains("--sessions"), "{answer}");
    // The place is free again once the first has left; when, only the agent knows.
    drop(first);
    let again = (0..1000).any(|_| {
        Control::greet(&agent, &json!({ "server": 1 }))
            .1
            .get("Ok")
            .is_some()
    });
    assert!(again);
}

#[test]
fn a_port_for_everybody_needs_a_token() {
    for host in ["0.0.0.0:0", "[::]:0"] {
        let refused = netbench()
            .args(["server", "--listen", host])
            .output()
            .unwrap();
        assert!(!refused.status.success());
        let line = only_line(&refused.stderr);
        assert!(
            line.contains("--token") && line.contains("--no-token"),
            "{line}"
        );
    }
    Agent::start(&["--listen", "0.0.0.0:0", "--no-token"]);
    Agent::start(&["--listen", "[::]:0", "--token", "correct horse"]);
}

#[test]
fn a_port_in_use_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = netbench()
        .args(["server", "--listen", &address])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let line = only_line(&refused.stderr);
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
}
