//! The client.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use msquic::{
    Api, BufferRef, Configuration, Connection, ConnectionEvent, ConnectionShutdownFlags,
    CredentialConfig, Registration, SendFlags, Stream, StreamEvent, StreamOpenFlags,
};

use crate::{
    Failure, read,
    server::{free, send},
    settings,
    tls::{self, Secrets},
};

/// Time for a handshake or a download, and for a ticket.
const LONG: Duration = Duration::from_secs(170);
const SHORT: Duration = Duration::from_secs(5);

/// `QUIC_PARAM_CONN_RESUMPTION_TICKET` and `QUIC_PARAM_CONN_FORCE_KEY_UPDATE`.
const TICKET: u32 = 0x0500_0010;
const UPDATE_KEYS: u32 = 0x8500_0000;

/// What the handlers tell.
enum Event {
    Connected,
    Ticket(Vec<u8>),
    /// A stream is over, by its handle; with the reason if its file is not whole.
    Stream(usize, Option<String>),
    Ended,
}

/// Downloads all files.
pub(crate) fn run(registration: &Registration, case: &str) -> Result<(), Failure> {
    let alpn = [BufferRef::from("hq-interop")];
    let config = Configuration::open(registration, &alpn, Some(&settings(case)))?;
    let ca = format!("{}/ca.pem", read("CERTS"));
    let credential = CredentialConfig::new_client().set_ca_certificate_file(ca);
    config.load_credential(&tls::suites(case, credential))?;
    let client = Client {
        registration,
        config,
        case,
    };
    let requests = read("REQUESTS");
    let urls: Vec<_> = requests.split_whitespace().collect();
    match case {
        "multiconnect" => {
            for url in urls {
                client.download(&[url], None)?;
            }
        }
        "resumption" | "zerortt" => {
            let (first, rest) = urls.split_at(1);
            let ticket = client
                .download(first, None)?
                .ok_or("the server gave no ticket")?;
            client.download(rest, Some(&ticket))?;
        }
        _ => {
            client.download(&urls, None)?;
        }
    }
    Ok(())
}

struct Client<'a> {
    registration: &'a Registration,
    config: Configuration,
    case: &'a str,
}

impl Client<'_> {
    /// Downloads files over one connection. Returns a ticket for the next one, if there is one.
    fn download(&self, urls: &[&str], ticket: Option<&[u8]>) -> Result<Option<Vec<u8>>, Failure> {
        let (teller, events) = channel();
        let told = teller.clone();
        let connection = Connection::open(self.registration, move |_, event| {
            let event = match event {
                ConnectionEvent::Connected { .. } => Event::Connected,
                ConnectionEvent::ResumptionTicketReceived { resumption_ticket } => {
                    Event::Ticket(resumption_ticket.to_vec())
                }
                ConnectionEvent::ShutdownInitiatedByTransport { status, .. } => {
                    eprintln!("the connection ended: {status}");
                    return Ok(());
                }
                ConnectionEvent::ShutdownComplete { .. } => Event::Ended,
                _ => return Ok(()),
            };
            let _ = told.send(event);
            Ok(())
        })?;
        let secrets = Secrets::of(&connection)?;
        if let Some(ticket) = ticket {
            let pointer = ticket.as_ptr().cast();
            // SAFETY: msquic copies the ticket.
            unsafe {
                Api::set_param(connection.as_raw(), TICKET, ticket.len() as u32, pointer)?;
            }
        }
        let authority = urls[0].split('/').nth(2).ok_or("a URL names no server")?;
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        let early = self.case == "zerortt" && ticket.is_some();
        if early {
            self.ask(&connection, urls, &teller)?;
        }
        connection.start(&self.config, host, port.parse()?)?;
        let got = self.follow(&connection, urls, (early, secrets), (&teller, &events));
        connection.shutdown(ConnectionShutdownFlags::NONE, 0);
        while !matches!(events.recv_timeout(SHORT), Ok(Event::Ended) | Err(_)) {}
        got
    }

    /// Waits for the files.
    fn follow(
        &self,
        connection: &Connection,
        urls: &[&str],
        (early, secrets): (bool, Secrets),
        (teller, events): (&Sender<Event>, &Receiver<Event>),
    ) -> Result<Option<Vec<u8>>, Failure> {
        let needs_ticket = matches!(self.case, "resumption" | "zerortt") && urls.len() == 1;
        let (mut left, mut ticket) = (urls.len(), None);
        while left > 0 || (needs_ticket && ticket.is_none()) {
            let patience = if left > 0 { LONG } else { SHORT };
            match events.recv_timeout(patience) {
                Ok(Event::Connected) => {
                    secrets.write();
                    if !early {
                        self.ask(connection, urls, teller)?;
                    }
                    if self.case == "keyupdate" {
                        update_keys(connection)?;
                    }
                }
                Ok(Event::Ticket(got)) => ticket = Some(got),
                Ok(Event::Stream(ended, problem)) => {
                    // SAFETY: msquic says nothing more of a stream that is shut down.
                    drop(unsafe { Stream::from_raw(ended as *mut _) });
                    if let Some(problem) = problem {
                        return Err(problem.into());
                    }
                    left -= 1;
                }
                Ok(Event::Ended) => return Err("the connection ended before its files".into()),
                Err(_) if left == 0 => break,
                Err(_) => return Err("nothing came any more".into()),
            }
        }
        Ok(ticket)
    }

    /// Opens a stream for each file. msquic keeps those back for which the server gave no credit.
    fn ask(
        &self,
        connection: &Connection,
        urls: &[&str],
        teller: &Sender<Event>,
    ) -> Result<(), Failure> {
        for url in urls {
            let path = url.splitn(4, '/').nth(3).ok_or("a URL names no file")?;
            let name = path.rsplit('/').next().unwrap_or(path);
            let mut file = File::create(Path::new(&read("DOWNLOADS")).join(name))?;
            let mut problem = Some(format!("{name} is not whole"));
            let teller = teller.clone();
            let stream = Stream::open(connection, StreamOpenFlags::NONE, move |stream, event| {
                match event {
                    StreamEvent::Receive { buffers, .. } => {
                        for buffer in buffers {
                            if let Err(error) = file.write_all(buffer.as_bytes()) {
                                eprintln!("{error}");
                            }
                        }
                    }
                    StreamEvent::PeerSendShutdown => problem = None,
                    StreamEvent::SendComplete { client_context, .. } => free(client_context),
                    StreamEvent::ShutdownComplete { .. } => {
                        // SAFETY: only the number of the handle leaves.
                        let ended = unsafe { stream.as_raw() } as usize;
                        let _ = teller.send(Event::Stream(ended, problem.take()));
                    }
                    _ => {}
                }
                Ok(())
            })?;
            let mut flags = SendFlags::START | SendFlags::FIN;
            if self.case == "zerortt" {
                flags |= SendFlags::ALLOW_0_RTT;
            }
            send(&stream, format!("GET /{path}\r\n").into_bytes(), flags)?;
            // SAFETY: it is closed when its handler says that it is over.
            unsafe { stream.into_raw() };
        }
        Ok(())
    }
}

/// Updates the keys as soon as the handshake is confirmed.
fn update_keys(connection: &Connection) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        // SAFETY: it takes no value.
        let updated =
            unsafe { Api::set_param(connection.as_raw(), UPDATE_KEYS, 0, std::ptr::null()) };
        match updated {
            Ok(()) => return Ok(()),
            Err(error) if begin.elapsed() > SHORT => return Err(error.into()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}
