//! Tests of transfers over loopback, and of ends that do not keep to the protocol.

mod hostile;
mod keys;
mod resume;
mod room;
mod rules;
mod transfers;

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use hybriq::{Connection, Endpoint, PostQuantum, transport::Congestion};
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::{
    client::Client,
    endpoint::{self, First, Gate, Pin},
    folder::Folder,
    message::{Reader, Writer},
    options::NewKey,
    progress::Show,
    remote::Remote,
    server::{Pushes, Server, Settings},
};

/// Folders of a test, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("hybriq-file-transfer-{process}-{name}"));
        let _ = fs::remove_dir_all(&path);
        for part in ["source", "served", "pulled"] {
            fs::create_dir_all(path.join(part)).unwrap();
        }
        Self(path)
    }

    fn at(&self, part: &str) -> PathBuf {
        self.0.join(part)
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn folder(&self, name: &str) -> Folder {
        Folder::open(Some(self.at(name))).unwrap()
    }

    fn client(&self) -> Client {
        self.client_of("client")
    }

    fn client_of(&self, name: &str) -> Client {
        Client {
            folder: self.folder(name),
            congestion: Congestion::Cubic,
            streams: 4,
            show: Show::Nothing,
            new_key: NewKey::Accept,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            served: self.at("served"),
            listen: "127.0.0.1:0".parse().unwrap(),
            first: First::Refuse,
            pushes: Pushes::UpTo(u64::MAX),
            streams: 4,
            congestion: Congestion::Cubic,
            show: Show::Nothing,
        }
    }

    /// Starts a server that knows the client.
    fn serve(&self) -> Running {
        self.authorize("client");
        self.serve_with(self.settings())
    }

    fn serve_with(&self, settings: Settings) -> Running {
        let server = Server::bind(&self.folder("server"), settings).unwrap();
        let address = server.address();
        Running {
            address,
            task: tokio::spawn(async move { server.run().await }),
        }
    }

    fn authorize(&self, client: &str) {
        let key = self.folder(client).own().unwrap().fingerprint;
        self.folder("server").authorized().add(client, key).unwrap();
    }

    /// Connects to a server as a client that writes the messages itself.
    async fn connect(&self, server: &Running) -> (Endpoint, PostQuantum<Connection>) {
        let own = self.folder("client").own().unwrap();
        let endpoint = endpoint::client(&own, &Pin::new(None), Congestion::Cubic).unwrap();
        let connection = endpoint.connect(server.address, "localhost").await.unwrap();
        (endpoint, PostQuantum::prove(connection).unwrap())
    }

    /// Makes the endpoint of a server that writes the messages itself.
    fn listen(&self) -> Endpoint {
        self.authorize("client");
        let folder = self.folder("server");
        let gate = Gate::new(folder.authorized(), First::Refuse);
        let listen = "127.0.0.1:0".parse().unwrap();
        endpoint::server(listen, &folder.own().unwrap(), &gate, Congestion::Cubic).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that runs until the end of the test.
struct Running {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Running {
    fn at(&self, path: &str) -> Remote {
        remote(self.address, path)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn remote(address: SocketAddr, path: &str) -> Remote {
    format!("{address}{path}").parse().unwrap()
}

async fn accept(endpoint: &Endpoint) -> PostQuantum<Connection> {
    let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
    PostQuantum::prove(connection).unwrap()
}

/// Returns bytes that do not repeat.
fn noise(len: usize) -> Vec<u8> {
    let mut state = len as u64 | 1;
    let next = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    });
    next.take(len).collect()
}

/// Contents of a folder: mode, time of the last change of files, and bytes by path.
type Tree = BTreeMap<PathBuf, (u32, Option<i64>, Vec<u8>)>;

fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            let mode = metadata.mode() & 0o7777;
            if metadata.is_dir() {
                found.insert(name, (mode, None, Vec::new()));
                waiting.push(path);
            } else {
                let contents = fs::read(&path).unwrap();
                found.insert(name, (mode, Some(metadata.mtime_nsec()), contents));
            }
        }
    }
    found
}

/// Opens a stream and writes its first message.
async fn ask(connection: &PostQuantum<Connection>, message: &impl Serialize) -> (Writer, Reader) {
    let (send, recv) = connection.open_bidi().await.unwrap();
    let mut writer = Writer::new(send);
    writer.write(message).await.unwrap();
    (writer, Reader::new(recv))
}
