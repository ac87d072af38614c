//! Memory of field blocks that h2 holds.

use super::*;

/// Trailers with their stream's end.
fn trailers(stream: u32, len: usize) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &vec![0x82; len])
}

fn counted(server: &Server) -> u64 {
    server.seen.trailers.load(Ordering::Relaxed)
}

/// Whichever side closes a stream, and however: its trailers no longer count.
#[test]
fn trailers_count_until_their_stream_is_closed() {
    let mut server = Server::new();
    for (index, stream) in (1..=9).step_by(2).enumerate() {
        server.open(stream);
        assert_eq!(counted(&server), 0, "a head is no trailers");
        server.receive(&trailers(stream, 10 + index));
        assert_eq!(counted(&server), 10 + index as u64);
        match stream {
            1 => server.receive(&reset(1, 8)),
            3 => server.send(&reset(3, 8)),
            5 => server.send(&frame(HEADERS, END_HEADERS | END_STREAM, 5, &[])),
            7 => server.send(&frame(DATA, END_STREAM, 7, &[])),
            _ => server.send(&frame(GOAWAY, 0, 0, &[0, 0, 0, 7, 0, 0, 0, 0])),
        }
        assert_eq!(counted(&server), 0, "stream {stream}");
    }
}

#[test]
fn a_field_block_counts_as_far_as_it_has_arrived() {
    let mut server = Server::new();
    let partial = |server: &Server| server.seen.partial.load(Ordering::Relaxed);
    let start = frame(HEADERS, 0, 1, &[0x82; 100]);
    let (some, others) = start.split_at(49);
    server.receive(some);
    assert_eq!(partial(&server), 40);
    server.receive(others);
    assert_eq!(partial(&server), 100);
    server.receive(&frame(CONTINUATION, 0, 1, &[0x82; 20]));
    assert_eq!(partial(&server), 120);
    server.receive(&frame(CONTINUATION, END_HEADERS, 1, &[0x82; 20]));
    assert_eq!(partial(&server), 0);
}
