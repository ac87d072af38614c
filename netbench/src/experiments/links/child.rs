//! The two ends of a download, each a process: the server sends as long as the client reads.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::drivers::{Connection, Reader, Setup, Writer, driver};
use crate::handshake::certificates::SERVER_NAME;
use crate::scenario::pattern;
use crate::system::failure::Failure;
use crate::system::os;
use crate::system::outcome::Failed;
use crate::system::process::pipe::{FromParent, tell};

/// Request of the client.
const REQUEST: &[u8] = b"everything";

/// Maximum number of bytes read at once.
const READ: usize = 256 << 10;

/// Length of a sample.
pub(super) const SAMPLE: Duration = Duration::from_millis(100);

/// Maximum time for the end of a connection to reach the server.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
pub(crate) struct ServerSpec {
    pub(crate) setup: Setup,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub(crate) setup: Setup,
    pub(crate) server: SocketAddr,
    pub(crate) lasts: Duration,
}

/// Parent's order to the server once the client is done.
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
    /// Time since the call that connects.
    pub(crate) connected_ms: f64,
    /// Bytes of the stream in each tenth of a second, counted from the call that connects.
    pub(crate) samples: Vec<u64>,
    pub(crate) cpu_s: f64,
}

/// Runs the server: one connection with one stream, as long as the client reads.
pub(crate) async fn serve() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ServerSpec = parent.expect().await?;
    let driver = driver(spec.setup.cell.driver)?;
    let mut server = driver.listen(&spec.setup, ([127, 0, 0, 1], 0).into())?;
    tell(&Ok::<_, String>(server.address()))?;

    let accepted = tokio::select! {
        accepted = async { server.accept().await?.await } => Some(accepted),
        finish = parent.expect::<Finish>() => finish.map(|_: Finish| None)?,
    };
    let Some(accepted) = accepted else {
        return Err("no connection reached the server".into());
    };
    let connection = accepted?;
    let sending = tokio::task::spawn_local({
        let streams = connection.accept_bidi().await?;
        let (mut writer, mut reader) = streams.ok_or("closed without a stream")?;
        async move {
            let period = pattern::bytes_at(0, u64::MAX);
            while read(&mut *reader).await?.is_some() {}
            // The client ends it when it has enough, which is no failure.
            while write(&mut *writer, period.clone()).await.is_ok() {}
            Ok::<_, Failed>(())
        }
    });
    let _: Finish = parent.expect().await?;
    let _ = tokio::time::timeout(DRAIN, sending).await;
    let stats = connection.stats();
    tell(&Ok::<_, String>(ServerReport {
        packets_sent: stats.packets_sent,
        packets_lost: stats.packets_lost,
        cpu_s: os::cpu_time()?.as_secs_f64(),
    }))?;
    Ok(())
}

/// Runs the client: reads for a while, compares every byte and counts.
pub(crate) async fn fetch() -> Result<(), Failure> {
    let mut parent = FromParent::open()?;
    let spec: ClientSpec = parent.expect().await?;
    let driver = driver(spec.setup.cell.client)?;
    let start = Instant::now();
    let end = start + spec.lasts;
    let client = driver.client(&spec.setup, spec.server)?;
    let connection = timeout_at(end, client.connect(spec.server, SERVER_NAME))
        .await
        .map_err(|_| "no connection in the time of the whole download")??;
    let connected = start.elapsed();
    let samples = download(&*connection, start, spec.lasts).await?;
    connection.close(0);
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
    connection: &dyn Connection,
    start: Instant,
    lasts: Duration,
) -> Result<Vec<u64>, Failure> {
    let count = lasts.as_nanos().div_ceil(SAMPLE.as_nanos()) as usize;
    let mut samples = vec![0; count];
    let (mut writer, mut reader) = connection.open_bidi().await?;
    write(&mut *writer, Bytes::from_static(REQUEST)).await?;
    poll_fn(|cx| writer.poll_finish(cx)).await?;
    let mut offset = 0;
    while let Ok(chunk) = timeout_at(start + lasts, read(&mut *reader)).await {
        let Some(chunk) = chunk? else {
            return Err(format!("the server ended the stream after {offset} bytes").into());
        };
        pattern::compare(offset, &chunk)?;
        offset += chunk.len() as u64;
        let index = start.elapsed().as_nanos() / SAMPLE.as_nanos();
        if let Some(sample) = samples.get_mut(index as usize) {
            *sample += chunk.len() as u64;
        }
    }
    Ok(samples)
}

async fn write(writer: &mut dyn Writer, mut data: Bytes) -> Result<(), Failed> {
    while !data.is_empty() {
        poll_fn(|cx| writer.poll_send(cx, &mut data)).await?;
    }
    Ok(())
}

async fn read(reader: &mut dyn Reader) -> Result<Option<Bytes>, Failed> {
    poll_fn(|cx| reader.poll_receive(cx, READ)).await
}
