//! The two ends of a download, each a process: the server sends as long as the client reads.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::links::stacks::{Connection, Sent, Setup, driver};
use crate::pipe::{FromParent, tell};
use crate::{Failure, bulk, os};

/// What the client asks for.
const REQUEST: &[u8] = b"everything";

/// Samples of a download are this long.
pub(super) const SAMPLE: Duration = Duration::from_millis(100);

/// How long the end of a connection may take to reach the server.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
pub(crate) struct ServerSpec {
    pub(crate) setup: Setup,
    pub(crate) key: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub(crate) setup: Setup,
    pub(crate) server: SocketAddr,
    pub(crate) lasts: Duration,
}

/// What the parent says to the server once the client is done.
#[derive(Serialize, Deserialize)]
pub(crate) struct Finish;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    pub(crate) cpu_s: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientReport {
    /// From the call that connects.
    pub(crate) connected_ms: f64,
    /// Bytes of the stream in each tenth of a second, from the call that connects.
    pub(crate) samples: Vec<u64>,
    pub(crate) cpu_s: f64,
}

/// The server: one connection, one stream, as many bytes as it takes.
pub(crate) async fn serve() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ServerSpec = parent.expect().await?;
    let driver = driver(&spec.setup.driver, spec.setup.congestion.as_deref())?;
    let mut server = driver.serve(&spec.setup, &spec.key)?;
    tell(&Ok::<_, String>(server.address()))?;

    let accepted = tokio::select! {
        accepted = server.accept() => Some(accepted),
        finish = parent.expect::<Finish>() => finish.map(|_: Finish| None)?,
    };
    let Some(accepted) = accepted else {
        return Err("no connection reached the server".into());
    };
    let mut connection = accepted?;
    let sending = tokio::task::spawn_local({
        let stream = connection.accept().await?;
        async move {
            let (mut writer, mut reader) = stream;
            let pattern = bulk::Pattern::new();
            reader.read_to_end(&mut Vec::new()).await?;
            // It ends when the client has had enough, which is no failure.
            while writer.write_all(pattern.period()).await.is_ok() {}
            Ok::<_, std::io::Error>(())
        }
    });
    let _: Finish = parent.expect().await?;
    let _ = tokio::time::timeout(DRAIN, sending).await;
    let Sent { packets, lost } = connection.sent();
    tell(&Ok::<_, String>(ServerReport {
        packets_sent: packets,
        packets_lost: lost,
        cpu_s: os::cpu_time()?.as_secs_f64(),
    }))?;
    Ok(())
}

/// The client: reads for a while, compares every byte and counts.
pub(crate) async fn fetch() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ClientSpec = parent.expect().await?;
    let driver = driver(&spec.setup.driver, spec.setup.congestion.as_deref())?;
    let start = Instant::now();
    let end = start + spec.lasts;
    let mut connection = timeout_at(end, driver.connect(&spec.setup, spec.server))
        .await
        .map_err(|_| "no connection in the time of the whole download")??;
    let connected = start.elapsed();
    let samples = download(connection.as_mut(), start, spec.lasts).await?;
    connection.close();
    let report = ClientReport {
        connected_ms: connected.as_secs_f64() * 1e3,
        samples,
        cpu_s: os::cpu_time()?.as_secs_f64(),
    };
    tell(&Ok::<_, String>(report))?;
    // The close still has to leave; the parent ends this process.
    while parent.next::<Finish>().await?.is_some() {}
    Ok(())
}

async fn download(
    connection: &mut dyn Connection,
    start: Instant,
    lasts: Duration,
) -> Result<Vec<u64>, Failure> {
    let count = lasts.as_nanos().div_ceil(SAMPLE.as_nanos()) as usize;
    let mut samples = vec![0; count];
    let (mut writer, mut reader) = connection.open().await?;
    writer.write_all(REQUEST).await?;
    writer.shutdown().await?;
    let pattern = Rc::new(bulk::Pattern::new());
    let mut buffer = vec![0; 256 << 10];
    let mut offset = 0;
    while let Ok(read) = timeout_at(start + lasts, reader.read(&mut buffer)).await {
        let read = read?;
        let chunk = buffer.get(..read).unwrap_or_default();
        if chunk.is_empty() {
            return Err(format!("the server ended the stream after {offset} bytes").into());
        }
        pattern.compare(offset, chunk)?;
        offset += read as u64;
        let index = start.elapsed().as_nanos() / SAMPLE.as_nanos();
        if let Some(sample) = samples.get_mut(index as usize) {
            *sample += read as u64;
        }
    }
    Ok(samples)
}
