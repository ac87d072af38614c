//! Two ends of a connection, and what is on its way between them.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hybriq::{StreamId, tls::Side};
use hybriq_h3::{
    Config, Connection, Critical, Event, Head, Received, Receiver, Settings, Uni, UniReceiver,
    put_data_head,
};

/// A step: what happens, where, and fields.
pub(crate) type Step = (u8, u8, Vec<(u8, u8)>);

/// Critical streams, in the order of [`End::arriving`].
const CRITICAL: [Critical; 3] = [Critical::Control, Critical::Encoder, Critical::Decoder];

/// Streams of messages of one input, at most.
const MESSAGES: usize = 64;

/// One end, and what is on its way to it.
struct End {
    core: Connection,
    unis: [UniReceiver; 3],
    arriving: [Vec<u8>; 3],
    goaway: Option<StreamId>,
}

impl End {
    fn new(side: Side, choice: u8) -> Self {
        let mut settings = Settings::new();
        settings.qpack_max_table_capacity = [0, 100, 600, 4096][usize::from(choice % 4)];
        settings.qpack_blocked_streams = [0, 1, 3, 100][usize::from(choice / 4 % 4)];
        let mut config = Config::new(settings);
        config.grease = (choice >= 128).then_some(u64::from(choice) << 20);
        Self {
            core: Connection::new(side, config),
            unis: Default::default(),
            arriving: Default::default(),
            goaway: None,
        }
    }
}

/// A message with its data: sent, under way, and received.
struct Message<H> {
    receiver: Receiver<H>,
    way: Vec<u8>,
    is_sent: bool,
    heads: Vec<HeaderMap>,
    content: Vec<u8>,
    trailers: Option<HeaderMap>,
    came: Came,
}

#[derive(Default)]
struct Came {
    heads: usize,
    content: Vec<u8>,
    trailers: Option<HeaderMap>,
    is_over: bool,
    is_given_up: bool,
    is_blocked: bool,
}

impl<H: Head + std::fmt::Debug> Message<H> {
    fn new(receiver: Receiver<H>) -> Self {
        Self {
            receiver,
            way: Vec::new(),
            is_sent: false,
            heads: Vec::new(),
            content: Vec::new(),
            trailers: None,
            came: Came::default(),
        }
    }

    /// Delivers some of what is on its way, and the end with the last of it.
    fn deliver(&mut self, most: usize, core: &mut Connection, fields: fn(&H) -> &HeaderMap) -> u64 {
        if self.came.is_over || self.came.is_given_up {
            return 0;
        }
        let most = most.min(self.way.len());
        let data: Vec<u8> = self.way.drain(..most).collect();
        self.receiver.on_data(data.into());
        if self.is_sent && self.way.is_empty() {
            self.receiver.on_fin();
        }
        self.read(core, fields)
    }

    /// Reads the data that has arrived. Returns 1 if the message waits for entries from now on.
    fn read(&mut self, core: &mut Connection, fields: fn(&H) -> &HeaderMap) -> u64 {
        while !(self.came.is_blocked || self.came.is_over) {
            match self.receiver.poll(core).expect("a message of our own") {
                Received::NeedData => break,
                Received::Pause => {}
                Received::Blocked => {
                    self.came.is_blocked = true;
                    return 1;
                }
                Received::Head(head) => {
                    assert_eq!(fields(&head), &self.heads[self.came.heads]);
                    self.came.heads += 1;
                }
                Received::Data(data) => self.came.content.extend_from_slice(&data),
                Received::Trailers(trailers) => self.came.trailers = Some(trailers),
                Received::End => {
                    assert_eq!(self.came.heads, self.heads.len());
                    assert_eq!(self.came.content, self.content);
                    assert_eq!(self.came.trailers, self.trailers);
                    self.came.is_over = true;
                }
                other => panic!("{other:?} of a message of our own"),
            }
        }
        0
    }

    fn give_up(&mut self, core: &mut Connection) {
        if !self.came.is_over && !self.came.is_given_up {
            self.receiver.cancel(core);
            self.came.is_given_up = true;
        }
    }

    /// Sends content, perhaps trailers, and the end.
    fn send_rest(
        &mut self,
        stream: StreamId,
        number: u8,
        fields: &HeaderMap,
        core: &mut Connection,
    ) {
        for part in 0..number % 3 {
            let content = vec![part; usize::from(number)];
            put_data_head(content.len() as u64, &mut self.way);
            self.content.extend_from_slice(&content);
            self.way.extend(content);
        }
        if number % 4 == 1 {
            let written = core.write_trailers(stream, fields, &mut self.way);
            written.expect("no limit");
            self.trailers = Some(joined(fields));
        }
        self.is_sent = true;
    }
}

/// Returns fields by choice. Some come often, and some are long.
fn fields(choices: &[(u8, u8)]) -> HeaderMap {
    const NAMES: [&str; 8] = [
        "cookie",
        "x-a",
        "etag",
        "accept",
        "authorization",
        "x-long",
        "user-agent",
        "date",
    ];
    let mut fields = HeaderMap::new();
    for (name, value) in choices.iter().take(20) {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        let long = if name == "x-long" { 8 } else { 1 };
        let text = format!("{value}").repeat(1 + usize::from(value % 16) * long);
        let mut value = HeaderValue::from_str(&text).unwrap();
        value.set_sensitive(name == "etag" && text.len() % 2 == 0);
        fields.append(HeaderName::from_static(name), value);
    }
    fields
}

/// Returns fields as they arrive: with all cookies in one (RFC 9114 §4.2.1).
fn joined(fields: &HeaderMap) -> HeaderMap {
    let mut joined = fields.clone();
    let cookies: Vec<_> = fields
        .get_all("cookie")
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if !cookies.is_empty() {
        let all = HeaderValue::from_bytes(&cookies.join(&b"; "[..])).unwrap();
        joined.insert("cookie", all);
    }
    joined
}

/// Both ends.
pub(crate) struct Pair {
    client: End,
    server: End,
    requests: Vec<Message<Request<()>>>,
    /// By the place of their requests.
    responses: Vec<Message<Response<()>>>,
    /// Sections that had to wait.
    pub(crate) blocked: u64,
}

const fn stream(place: usize) -> StreamId {
    StreamId(4 * place as u64)
}

impl Pair {
    pub(crate) fn new(choice: u8) -> Self {
        let mut pair = Self {
            client: End::new(Side::Client, choice),
            server: End::new(Side::Server, choice.rotate_left(2)),
            requests: Vec::new(),
            responses: Vec::new(),
            blocked: 0,
        };
        // Some requests are sent before the settings arrive.
        if choice & 0x40 == 0 {
            pair.flush();
            pair.carry(Side::Server, 0, usize::MAX);
            pair.carry(Side::Client, 0, usize::MAX);
        }
        pair
    }

    pub(crate) fn step(&mut self, (what, number, choices): &Step) {
        let place = usize::from(*number) % self.requests.len().max(1);
        let most = choices.first().map_or(9, |(most, _)| usize::from(*most));
        match what % 9 {
            0 | 1 if self.requests.len() < MESSAGES => self.request(*number, &fields(choices)),
            2 | 3 if !self.requests.is_empty() => self.respond(place, *number, &fields(choices)),
            4 | 5 => {
                self.flush();
                let side = [Side::Client, Side::Server][usize::from(number % 2)];
                self.carry(side, usize::from(number / 2 % 3), 4 * most);
            }
            6 if !self.requests.is_empty() => self.deliver(place, 2 * most),
            7 if !self.requests.is_empty() && number % 4 == 0 => {
                self.requests[place].give_up(&mut self.server.core);
            }
            7 if !self.requests.is_empty() && number % 4 == 1 => {
                self.responses[place].give_up(&mut self.client.core);
            }
            8 if *number > 250 => self.server.core.go_away(stream(self.requests.len())),
            _ => {}
        }
    }

    fn request(&mut self, number: u8, fields: &HeaderMap) {
        let place = self.requests.len();
        let mut request = Request::new(());
        *request.uri_mut() = format!("https://example.com/{}", number % 8)
            .parse()
            .unwrap();
        *request.method_mut() = [Method::GET, Method::PUT][usize::from(number % 2)].clone();
        *request.headers_mut() = fields.clone();
        let mut message = Message::new(Receiver::request(stream(place)));
        let client = &mut self.client.core;
        let written = client.write_request(stream(place), &request, &mut message.way);
        written.expect("no limit");
        message.heads.push(joined(fields));
        message.send_rest(stream(place), number, fields, client);
        self.requests.push(message);
        let receiver = Receiver::response(stream(place), request.method());
        self.responses.push(Message::new(receiver));
    }

    fn respond(&mut self, place: usize, number: u8, fields: &HeaderMap) {
        let message = &mut self.responses[place];
        if message.is_sent {
            return;
        }
        let statuses = [StatusCode::EARLY_HINTS, StatusCode::OK];
        let server = &mut self.server.core;
        for status in &statuses[usize::from(number % 2)..] {
            let id = stream(place);
            let written = server.write_response(id, *status, fields, [], &mut message.way);
            written.expect("no limit");
            message.heads.push(joined(fields));
        }
        message.send_rest(stream(place), number, fields, server);
    }

    /// Puts what waits at both ends on its way.
    fn flush(&mut self) {
        let ends = [&mut self.client, &mut self.server];
        let [client, server] = ends;
        for (place, stream) in CRITICAL.into_iter().enumerate() {
            server.arriving[place].extend(client.core.take_output(stream));
            client.arriving[place].extend(server.core.take_output(stream));
        }
    }

    /// Delivers bytes of a critical stream to a side.
    fn carry(&mut self, side: Side, place: usize, most: usize) {
        let end = match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let most = most.min(end.arriving[place].len());
        let data: Vec<u8> = end.arriving[place].drain(..most).collect();
        let read = end.unis[place].on_data(data.into(), &mut end.core);
        assert_eq!(read, Ok(Uni::NeedData));
        let mut unblocked = Vec::new();
        while let Some(event) = end.core.poll_event() {
            match event {
                Event::Unblocked(id) => unblocked.push(id.0 as usize / 4),
                Event::Goaway(id) => {
                    assert!(end.goaway.is_none_or(|before| id.0 < before.0));
                    end.goaway = Some(id);
                }
                _ => {}
            }
        }
        for place in unblocked {
            self.blocked += match side {
                Side::Server => {
                    let message = &mut self.requests[place];
                    assert!(std::mem::take(&mut message.came.is_blocked));
                    message.read(&mut self.server.core, Request::headers)
                }
                Side::Client => {
                    let message = &mut self.responses[place];
                    assert!(std::mem::take(&mut message.came.is_blocked));
                    message.read(&mut self.client.core, Response::headers)
                }
            };
        }
    }

    fn deliver(&mut self, place: usize, most: usize) {
        let server = &mut self.server.core;
        self.blocked += self.requests[place].deliver(most, server, Request::headers);
        let client = &mut self.client.core;
        self.blocked += self.responses[place].deliver(most, client, Response::headers);
    }

    /// Delivers everything. Then every message has come, and nothing waits.
    pub(crate) fn finish(&mut self) {
        for place in 0..self.requests.len() {
            self.respond(place, place as u8, &HeaderMap::new());
        }
        // Answers to what is delivered are delivered as well.
        for _ in 0..4 {
            self.flush();
            for place in 0..CRITICAL.len() {
                self.carry(Side::Server, place, usize::MAX);
                self.carry(Side::Client, place, usize::MAX);
            }
            for place in 0..self.requests.len() {
                self.deliver(place, usize::MAX);
            }
        }
        let requests = self.requests.iter().map(|message| &message.came);
        let responses = self.responses.iter().map(|message| &message.came);
        for (place, came) in requests.chain(responses).enumerate() {
            let is_done = came.is_over || came.is_given_up;
            assert!(is_done, "message {place} of {}", 2 * self.requests.len());
        }
        let (client, server) = (&self.client.core, &self.server.core);
        assert!(!client.has_output() && !server.has_output());
        assert_eq!(client.inserted().local, server.inserted().peer);
        assert_eq!(server.inserted().local, client.inserted().peer);
        assert_eq!((client.unsent(), server.unsent()), (0, 0));
    }
}
