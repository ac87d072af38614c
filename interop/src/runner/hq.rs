//! HTTP/0.9 over QUIC, which the runner uses so that stacks without HTTP/3 can take part.
//!
//! A client sends `GET /path` and a line end on a bidirectional stream and ends it; the server answers with
//! the bytes of the file and ends the stream.

use std::path::{Component, Path, PathBuf};

use tokio::{
    fs::File,
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
};

use super::Failure;

/// Application protocol of the runner.
pub(super) const ALPN: &[u8] = b"hq-interop";

/// Longest request line that is read, in bytes.
const LONGEST_REQUEST: u64 = 4096;
/// Bytes that are read from a file at once.
const CHUNK: usize = 64 * 1024;
/// Code of a stream that is reset because there is no such file.
pub(super) const NO_FILE: u64 = 1;

/// Answers one request. Without a file nothing is sent: the caller resets the stream.
pub(super) async fn answer(
    www: &Path,
    send: &mut (impl AsyncWrite + Unpin),
    recv: impl AsyncRead + Unpin,
) -> Result<(), Failure> {
    let mut request = Vec::new();
    recv.take(LONGEST_REQUEST).read_to_end(&mut request).await?;
    let file = match path_of(&request) {
        Some(path) => File::open(www.join(path)).await.ok(),
        None => None,
    };
    let Some(mut file) = file else {
        return Err(format!("no file for {:?}", String::from_utf8_lossy(&request)).into());
    };
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).await? {
            0 => break,
            len => send.write_all(chunk.get(..len).unwrap_or_default()).await?,
        }
    }
    send.shutdown().await?;
    Ok(())
}

/// Reads the path of a request, which must not leave the folder.
pub(super) fn path_of(request: &[u8]) -> Option<PathBuf> {
    let line = std::str::from_utf8(request).ok()?;
    let path = line.trim_end().strip_prefix("GET ")?.strip_prefix('/')?;
    let path = Path::new(path);
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| path.to_owned())
}

/// Sends a request.
pub(super) async fn ask(send: &mut (impl AsyncWrite + Unpin), path: &str) -> Result<(), Failure> {
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    send.shutdown().await?;
    Ok(())
}

/// Writes a response into a file.
pub(super) async fn save(mut recv: impl AsyncRead + Unpin, to: &Path) -> Result<(), Failure> {
    let mut file = File::create(to).await?;
    let mut chunk = vec![0; CHUNK];
    loop {
        match recv.read(&mut chunk).await? {
            0 => break,
            len => file.write_all(chunk.get(..len).unwrap_or_default()).await?,
        }
    }
    file.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_file_of_the_folder() {
        for (request, path) in [
            ("GET /file", Some("file")),
            ("GET /a/b.txt\r\n", Some("a/b.txt")),
            ("GET /file\n", Some("file")),
            ("GET file\r\n", None),
            ("GET /../etc/passwd\r\n", None),
            ("GET //etc/passwd\r\n", None),
            ("GET /a/../../etc\r\n", None),
            ("POST /file\r\n", None),
            ("", None),
        ] {
            let found = path_of(request.as_bytes());
            assert_eq!(found, path.map(PathBuf::from), "{request}");
        }
        assert_eq!(path_of(b"GET /\xff"), None);
    }
}
