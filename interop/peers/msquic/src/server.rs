//! The server.

use std::{fs, path::Path, sync::Arc, thread};

use msquic::{
    Addr, Api, BufferRef, CertificateFile, Configuration, Connection, ConnectionEvent,
    ConnectionRef, Credential, CredentialConfig, Listener, ListenerEvent, Registration, SendFlags,
    ServerResumptionLevel, Status, Stream, StreamEvent, StreamRef, StreamShutdownFlags,
};

use crate::{
    Failure, read, settings,
    tls::{self, Secrets},
};

/// Serves until a signal ends the program.
pub(crate) fn run(registration: &Registration, case: &str) -> Result<(), Failure> {
    let alpn = [BufferRef::from("hq-interop")];
    let settings = settings(case)
        .set_PeerBidiStreamCount(100)
        .set_ServerResumptionLevel(ServerResumptionLevel::ResumeAndZerortt);
    let config = Configuration::open(registration, &alpn, Some(&settings))?;
    let certs = read("CERTS");
    let file = CertificateFile::new(format!("{certs}/priv.key"), format!("{certs}/cert.pem"));
    let credential = CredentialConfig::new().set_credential(Credential::CertificateFile(file));
    config.load_credential(&tls::suites(case, credential))?;
    let config = Arc::new(config);
    let listener = Listener::open(registration, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            let secrets = Secrets::of(&connection)?;
            connection.set_callback_handler(move |connection, event| {
                on_event(&connection, event, secrets);
                Ok(())
            });
            connection.set_configuration(&config)?;
        }
        Ok(())
    })?;
    listener.start(&alpn, Some(&any_address()?))?;
    println!("listening on {}", read("LISTEN"));
    loop {
        thread::park();
    }
}

/// Returns the address for both families: msquic wants one of no family.
fn any_address() -> Result<Addr, Failure> {
    let listen: std::net::SocketAddr = read("LISTEN").parse()?;
    let mut address = Addr::from(std::net::SocketAddr::from(([0; 4], listen.port())));
    address.ipv4.sin_family = 0;
    Ok(address)
}

fn on_event(connection: &ConnectionRef, event: ConnectionEvent, secrets: Secrets) {
    match event {
        ConnectionEvent::Connected { .. } => {
            secrets.write();
            if let Some(send) = Api::get_ffi().ConnectionSendResumptionTicket {
                // SAFETY: the connection is alive in its callback; there is no data of ours.
                unsafe { send(connection.as_raw(), 0, 0, std::ptr::null()) };
            }
        }
        ConnectionEvent::PeerStreamStarted { stream, .. } => {
            let mut request = Vec::new();
            stream.set_callback_handler(move |stream, event| {
                on_stream(&stream, event, &mut request);
                Ok(())
            });
        }
        ConnectionEvent::ShutdownComplete { .. } => {
            // SAFETY: msquic says nothing more of a connection that is shut down.
            let ended = unsafe { connection.as_raw() } as usize;
            // A handler must not drop itself.
            thread::spawn(move || drop(unsafe { Connection::from_raw(ended as *mut _) }));
        }
        _ => {}
    }
}

fn on_stream(stream: &StreamRef, event: StreamEvent, request: &mut Vec<u8>) {
    match event {
        StreamEvent::Receive { buffers, .. } => {
            buffers
                .iter()
                .for_each(|buffer| request.extend(buffer.as_bytes()));
        }
        StreamEvent::PeerSendShutdown => {
            let sent = answer(request).map(|file| send(stream, file, SendFlags::FIN));
            if !matches!(sent, Some(Ok(()))) {
                let _ = stream.shutdown(StreamShutdownFlags::ABORT, 1);
            }
        }
        StreamEvent::SendComplete { client_context, .. } => free(client_context),
        StreamEvent::ShutdownComplete { .. } => {
            // SAFETY: msquic says nothing more of a stream that is shut down.
            let ended = unsafe { stream.as_raw() } as usize;
            thread::spawn(move || drop(unsafe { Stream::from_raw(ended as *mut _) }));
        }
        _ => {}
    }
}

/// Returns the file that a request asks for.
fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let request = std::str::from_utf8(request).ok()?;
    let path = Path::new(request.trim().strip_prefix("GET /")?);
    let is_plain = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    is_plain.then(|| fs::read(Path::new(&read("WWW")).join(path)).ok())?
}

/// What msquic sends, until it gives it back.
type Sending = (Vec<u8>, [BufferRef; 1]);

pub(crate) fn send(stream: &Stream, bytes: Vec<u8>, flags: SendFlags) -> Result<(), Status> {
    let buffer = [BufferRef::from(&bytes[..])];
    let sending: *mut Sending = Box::into_raw(Box::new((bytes, buffer)));
    // SAFETY: the bytes are on the heap, and freed when msquic gives them back.
    let sent = unsafe { stream.send(&(*sending).1, flags, sending.cast()) };
    sent.inspect_err(|_| free(sending.cast()))
}

/// Frees what was sent.
pub(crate) fn free(sending: *const std::ffi::c_void) {
    // SAFETY: `send` gave it to msquic, which gives it back once.
    drop(unsafe { Box::from_raw(sending.cast::<Sending>().cast_mut()) });
}
