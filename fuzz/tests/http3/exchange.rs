//! Exchanges over a simulated network: a client with many requests, some of which it gives up, and a server.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hybriq::{Direction, StreamId, tls::Side};
use hybriq_h3::{
    Code, Config, Connection as Core, Critical, Event as News, Head, Received, Receiver, Settings,
    Uni, UniReceiver, put_data_head,
};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    owners::streams::{ReadError, StreamEvent, Streams, WriteError},
    wire::error::ConnectionError,
};
use hybriq_sim::{Answer, App, Network, Progress, Rng, World, ms, per_mille};

/// Seed, losses, reordering, table and blocked streams.
pub(crate) type Path = (u64, u8, u8, u8);

/// Requests of an exchange, and how many of them are under way at once.
const REQUESTS: usize = 24;
const AT_ONCE: usize = 6;

/// Virtual time that an exchange may take.
const LIMIT: Duration = Duration::from_mins(5);

/// What one end reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    pub(crate) blocked: u64,
    pub(crate) inserted: u64,
    received: u64,
    /// Messages that are neither over nor given up.
    open: usize,
    /// Bytes that wait to be sent.
    waiting: usize,
    answered: usize,
    given_up: usize,
}

type Shared = Arc<Mutex<Report>>;

/// Bytes for a stream, and what comes behind them.
#[derive(Default)]
struct Outgoing {
    bytes: VecDeque<u8>,
    is_last: bool,
}

/// What both ends have.
struct End {
    core: Core,
    critical: Option<[StreamId; 3]>,
    outgoing: BTreeMap<StreamId, Outgoing>,
    unis: BTreeMap<StreamId, UniReceiver>,
    report: Shared,
}

const CRITICAL: [Critical; 3] = [Critical::Encoder, Critical::Control, Critical::Decoder];

impl End {
    fn new(side: Side, choice: u8, report: &Shared) -> Self {
        let mut settings = Settings::new();
        settings.qpack_max_table_capacity = [4096, 4096, 1000, 300][usize::from(choice % 4)];
        settings.qpack_blocked_streams = [100, 100, 2, 0][usize::from(choice / 4 % 4)];
        Self {
            core: Core::new(side, Config::new(settings)),
            critical: None,
            outgoing: BTreeMap::new(),
            unis: BTreeMap::new(),
            report: report.clone(),
        }
    }

    fn open(&mut self, streams: &mut Streams) {
        let open = CRITICAL.map(|_| streams.open(Direction::Uni).expect("three streams"));
        self.critical = Some(open);
    }

    /// Sends what waits, the encoder stream's first.
    fn flush(&mut self, streams: &mut Streams) {
        let Some(critical) = self.critical else {
            return;
        };
        for (stream, id) in CRITICAL.into_iter().zip(critical) {
            let output = self.core.take_output(stream);
            self.outgoing.entry(id).or_default().bytes.extend(output);
        }
        for id in critical
            .into_iter()
            .chain(self.outgoing.keys().copied().collect::<Vec<_>>())
        {
            let is_over = self
                .outgoing
                .get_mut(&id)
                .is_some_and(|out| out.send(id, streams));
            if is_over {
                self.outgoing.remove(&id);
            }
        }
        let waiting = self
            .outgoing
            .values()
            .map(|out| out.bytes.len())
            .sum::<usize>();
        let mut report = self.report.lock().unwrap();
        report.waiting = waiting + self.core.unsent();
        let inserted = self.core.inserted();
        (report.inserted, report.received) = (inserted.local, inserted.peer);
    }

    /// Reads a unidirectional stream. Returns the streams whose entries have come.
    fn read_uni(&mut self, id: StreamId, streams: &mut Streams) -> Vec<StreamId> {
        let uni = self.unis.entry(id).or_default();
        while let Ok(Some(data)) = streams.read_chunk(id, 100) {
            let read = uni.on_data(data, &mut self.core);
            assert_eq!(read, Ok(Uni::NeedData));
        }
        let news = std::iter::from_fn(|| self.core.poll_event());
        let unblocked = news.filter_map(|news| match news {
            News::Unblocked(id) => Some(id),
            _ => None,
        });
        unblocked.collect()
    }
}

impl Outgoing {
    /// Writes as much as there is room for. Returns true if nothing more comes.
    fn send(&mut self, id: StreamId, streams: &mut Streams) -> bool {
        let bytes = self.bytes.make_contiguous();
        match streams.write(id, bytes) {
            Ok(taken) => drop(self.bytes.drain(..taken)),
            Err(WriteError::Blocked) => {}
            Err(_) => return true,
        }
        self.bytes.is_empty() && self.is_last && streams.finish(id).is_ok()
    }
}

/// A message that arrives.
struct Incoming<H> {
    receiver: Receiver<H>,
    head: Option<H>,
    content: Vec<u8>,
    trailers: Option<HeaderMap>,
    is_blocked: bool,
}

/// State of a message after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Over,
    Reset,
}

impl<H: Head + std::fmt::Debug> Incoming<H> {
    fn new(receiver: Receiver<H>) -> Self {
        Self {
            receiver,
            head: None,
            content: Vec::new(),
            trailers: None,
            is_blocked: false,
        }
    }

    fn read(&mut self, end: &mut End, streams: &mut Streams) -> State {
        loop {
            // A section that waits keeps the stream from being read.
            match self
                .receiver
                .poll(&mut end.core)
                .expect("a message of ours")
            {
                Received::NeedData => match streams.read_chunk(self.receiver.id(), 1000) {
                    Ok(Some(data)) => self.receiver.on_data(data),
                    Ok(None) => self.receiver.on_fin(),
                    Err(ReadError::Blocked) => return State::Open,
                    Err(_) => {
                        self.receiver.cancel(&mut end.core);
                        return State::Reset;
                    }
                },
                Received::Blocked => {
                    if !std::mem::replace(&mut self.is_blocked, true) {
                        end.report.lock().unwrap().blocked += 1;
                    }
                    return State::Open;
                }
                Received::Head(head) => self.head = Some(head),
                Received::Data(data) => self.content.extend_from_slice(&data),
                Received::Trailers(trailers) => self.trailers = Some(trailers),
                Received::End => return State::Over,
                other => panic!("{other:?} of a message of ours"),
            }
        }
    }
}

/// The fields of a message: some that repeat, and some that do not.
fn fields(number: u64) -> HeaderMap {
    let mut rng = Rng::new(number);
    let mut fields = HeaderMap::new();
    let mut add = |name: &'static str, value: String| {
        fields.append(name, HeaderValue::from_str(&value).unwrap());
    };
    add("user-agent", "a program with a name".to_owned());
    add("accept", format!("text/{}", rng.below(3)));
    add("x-large", format!("{:0>600}", rng.below(4)));
    add("x-once", number.to_string());
    for name in ["etag", "cookie", "x-some"] {
        if rng.below(2) == 0 {
            add(name, format!("{name} {}", rng.below(6)));
        }
    }
    fields
}

fn content(number: u64) -> Vec<u8> {
    vec![number as u8; (number as usize * 700) % 5000]
}

/// Appends content, and trailers behind some.
fn put_rest(core: &mut Core, id: StreamId, number: u64, out: &mut Vec<u8>) {
    let content = content(number);
    put_data_head(content.len() as u64, out);
    out.extend(content);
    if number.is_multiple_of(3) {
        core.write_trailers(id, &fields(number), out)
            .expect("no limit");
    }
}

/// Checks that a message is the one with this number.
fn check<H>(incoming: &Incoming<H>, headers: &HeaderMap, number: u64) {
    assert_eq!(headers, &fields(number));
    assert_eq!(incoming.content, content(number));
    assert_eq!(
        incoming.trailers,
        (number.is_multiple_of(3)).then(|| fields(number))
    );
}

struct Client {
    end: End,
    number: u64,
    asked: usize,
    responses: BTreeMap<StreamId, Incoming<Response<()>>>,
}

impl Client {
    /// Sends requests while there are few under way, and gives some up at once.
    fn ask(&mut self, streams: &mut Streams) {
        while self.asked < REQUESTS && self.responses.len() < AT_ONCE {
            let Some(id) = streams.open(Direction::Bidi) else {
                return;
            };
            let number = self.number + id.0;
            self.asked += 1;
            let mut request = Request::new(());
            *request.uri_mut() = format!("https://example.com/{}", number % 5)
                .parse()
                .unwrap();
            *request.method_mut() = Method::POST;
            *request.headers_mut() = fields(number);
            let mut bytes = Vec::new();
            let core = &mut self.end.core;
            core.write_request(id, &request, &mut bytes)
                .expect("no limit");
            put_rest(core, id, number, &mut bytes);
            let outgoing = self.end.outgoing.entry(id).or_default();
            outgoing.bytes.extend(bytes);
            outgoing.is_last = true;
            let mut incoming = Incoming::new(Receiver::response(id, request.method()));
            // Events tell of data once a read has found none.
            assert_eq!(incoming.read(&mut self.end, streams), State::Open);
            self.responses.insert(id, incoming);
        }
    }

    fn read_all(&mut self, ids: Vec<StreamId>, streams: &mut Streams) {
        for id in ids {
            self.read(id, streams);
        }
    }

    fn read(&mut self, id: StreamId, streams: &mut Streams) {
        let Some(incoming) = self.responses.get_mut(&id) else {
            return;
        };
        let state = incoming.read(&mut self.end, streams);
        let number = self.number + id.0;
        // Every fifth is given up once something of it has come, or while it waits.
        let begun = incoming.is_blocked || incoming.head.is_some();
        let is_given_up = state == State::Open && number % 20 == 8 && begun;
        let mut report = self.end.report.lock().unwrap();
        if state == State::Over {
            let head = incoming.head.as_ref().expect("a response has a head");
            check(incoming, head.headers(), number);
            report.answered += 1;
        } else if is_given_up {
            incoming.receiver.cancel(&mut self.end.core);
            let _ = streams.stop(id, Code::H3_REQUEST_CANCELLED.0);
            let _ = streams.reset(id, Code::H3_REQUEST_CANCELLED.0);
            self.end.outgoing.remove(&id);
            report.given_up += 1;
        } else {
            assert_eq!(state, State::Open, "a server that resets nothing");
            return;
        }
        drop(report);
        self.responses.remove(&id);
        self.ask(streams);
    }
}

impl App for Client {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => {
                self.end.open(streams);
                self.ask(streams);
            }
            Event::Stream(StreamEvent::Available(_)) => self.ask(streams),
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = streams.accept(Direction::Uni) {
                    let unblocked = self.end.read_uni(id, streams);
                    self.read_all(unblocked, streams);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) if self.end.unis.contains_key(id) => {
                let unblocked = self.end.read_uni(*id, streams);
                self.read_all(unblocked, streams);
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, streams),
            _ => {}
        }
        if !connection.is_closed() {
            self.end.flush(connection.streams());
            self.end.report.lock().unwrap().open = REQUESTS - self.asked + self.responses.len();
        }
    }

    fn progress(&self) -> Progress {
        // Its critical streams stay open.
        Progress::Busy
    }
}

struct Server {
    end: End,
    number: u64,
    requests: BTreeMap<StreamId, Incoming<Request<()>>>,
}

impl Server {
    fn read_all(&mut self, ids: Vec<StreamId>, streams: &mut Streams) {
        for id in ids {
            self.read(id, streams);
        }
    }

    fn read(&mut self, id: StreamId, streams: &mut Streams) {
        let Some(incoming) = self.requests.get_mut(&id) else {
            return;
        };
        match incoming.read(&mut self.end, streams) {
            State::Open => return,
            State::Reset => drop(streams.reset(id, Code::H3_REQUEST_CANCELLED.0)),
            State::Over => {
                let number = self.number + id.0;
                let head = incoming.head.as_ref().expect("a request has a head");
                check(incoming, head.headers(), number);
                let mut bytes = Vec::new();
                let core = &mut self.end.core;
                for status in [StatusCode::EARLY_HINTS, StatusCode::OK] {
                    let fields = fields(number);
                    core.write_response(id, status, &fields, [], &mut bytes)
                        .expect("no limit");
                }
                put_rest(core, id, number, &mut bytes);
                let outgoing = self.end.outgoing.entry(id).or_default();
                outgoing.bytes.extend(bytes);
                outgoing.is_last = true;
            }
        }
        self.requests.remove(&id);
    }
}

impl App for Server {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => self.end.open(streams),
            Event::Stream(StreamEvent::Stopped { id, code }) => {
                let _ = streams.reset(*id, *code);
                self.end.outgoing.remove(id);
            }
            Event::Stream(StreamEvent::Readable(id)) if self.end.unis.contains_key(id) => {
                let unblocked = self.end.read_uni(*id, streams);
                self.read_all(unblocked, streams);
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, streams),
            _ => {}
        }
        while let Some(id) = streams.accept(Direction::Uni) {
            let unblocked = self.end.read_uni(id, streams);
            self.read_all(unblocked, streams);
        }
        while let Some(id) = streams.accept(Direction::Bidi) {
            let receiver = Receiver::request(id);
            self.requests.insert(id, Incoming::new(receiver));
            self.read(id, streams);
        }
        if !connection.is_closed() {
            self.end.flush(connection.streams());
            self.end.report.lock().unwrap().open = self.requests.len();
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Runs an exchange to its end. Returns the sums of both ends.
pub(crate) fn exchange(
    (seed, loss, order, tables): Path,
    server: &Setup,
    client: &Setup,
) -> Report {
    let network = Network::new(seed)
        .delay(ms(20))
        .loss(per_mille(u32::from(loss)))
        .reorder(per_mille(u32::from(order) * 2), ms(70));
    let reports = [Shared::default(), Shared::default()];
    let [of_client, of_server] = reports.clone();
    let number = seed % 1000 * 4;
    let mut world = World::new(network, server.clone());
    world.server_mut().on_incoming(move |_| {
        let server = Server {
            end: End::new(Side::Server, tables, &of_server),
            number,
            requests: BTreeMap::new(),
        };
        Answer::Accept(None, Box::new(server))
    });
    let app = Client {
        end: End::new(Side::Client, tables.rotate_right(4), &of_client),
        number,
        asked: 0,
        responses: BTreeMap::new(),
    };
    world.connect(client, app);
    let [client, server] = reports
        .clone()
        .map(|report| move || *report.lock().unwrap());
    let is_over = |report: Report| report.answered + report.given_up == REQUESTS;
    let ends = world.run_until(LIMIT, |_| is_over(client()));
    // A network that loses too much for the idle timeout says nothing about the exchange.
    if matches!(
        world.client(0).close_reason(),
        Some(ConnectionError::TimedOut)
    ) {
        return Report::default();
    }
    assert!(ends, "{:?} {:?}", client(), server());
    // What is on its way arrives.
    world.run_for(Duration::from_secs(30));
    let (one, two) = (client(), server());
    for report in [one, two] {
        assert_eq!((report.open, report.waiting), (0, 0), "{one:?} {two:?}");
    }
    assert_eq!((one.inserted, one.received), (two.received, two.inserted));
    // The critical streams of both ends are all that there is.
    for connection in [world.client(0), world.accepted(0)] {
        let census = connection.connection.as_ref().expect("it is open").census();
        for halves in ["sending halves of streams", "receiving halves of streams"] {
            assert_eq!(census.entries(halves), CRITICAL.len(), "{census}");
        }
    }
    world.close_client(0, Code::H3_NO_ERROR.0);
    world.run(Duration::from_mins(1));
    Report {
        blocked: one.blocked + two.blocked,
        inserted: one.inserted + two.inserted,
        ..one
    }
}
