//! A handshake without cryptography, whose messages and packets are as long as those of TLS 1.3
//! with AES-GCM.
//!
//! Messages have the four-byte header of TLS (type and length). A client's first message and a
//! server's encrypted extensions contain the transport parameters; the rest is padding up to the
//! lengths in [`HandshakeLengths`]. Packets keep their 16 bytes of authentication tag, which
//! contain the packet number, and the 16 bytes of sample for header protection, which is absent.

use std::any::Any;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Lengths of handshake messages in bytes, with their headers, without transport parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeLengths {
    /// ClientHello.
    pub client_hello: u16,
    /// Ticket and binder in a ClientHello that resumes a session.
    pub resumption: u16,
    /// ServerHello.
    pub server_hello: u16,
    /// Additional extension in a ServerHello that resumes a session.
    pub resumed_server_hello: u16,
    /// EncryptedExtensions.
    pub encrypted_extensions: u16,
    /// Additional extension in EncryptedExtensions that accept 0-RTT data.
    pub accepted_early_data: u16,
    /// Certificate and CertificateVerify. Absent if a session is resumed.
    pub certificate: u16,
    /// Finished, of both ends.
    pub finished: u16,
    /// All NewSessionTicket messages together.
    pub tickets: u16,
}

impl Default for HandshakeLengths {
    /// Lengths of rustls 0.23 with X25519, TLS_AES_256_GCM_SHA384 and a server name of nine bytes.
    /// The certificate chain has 2.5 kB: the server's flight is within three times the client's
    /// first packet (RFC 9000 section 8.1). Those of resumed sessions are usual ones, and not
    /// compared with rustls.
    fn default() -> Self {
        Self {
            client_hello: 183,
            resumption: 233,
            server_hello: 90,
            resumed_server_hello: 6,
            encrypted_extensions: 10,
            accepted_early_data: 4,
            certificate: 2_500,
            finished: 52,
            tickets: 162,
        }
    }
}

// Types of messages (RFC 8446 section 4).
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;

/// Length of a message's header.
const HEADER: usize = 4;

/// Content of a message before its padding: flags and the length of the transport parameters.
const PREFIX: usize = 3;

/// The client resumes a session, or the server accepts that.
const RESUMES: u8 = 1;

/// A client's transport parameters that it remembers for 0-RTT: those of the server.
type Remembered = Arc<Mutex<Option<Vec<u8>>>>;

/// The client's side of a configuration.
#[derive(Clone, Debug, Default)]
pub struct PlainClient {
    lengths: HandshakeLengths,
    early_data: bool,
    tickets: Remembered,
}

impl PlainClient {
    /// Creates a configuration. With `early_data`, a connection after the first one resumes its
    /// session and may send 0-RTT data.
    #[must_use]
    pub fn new(lengths: HandshakeLengths, early_data: bool) -> Self {
        Self {
            lengths,
            early_data,
            tickets: Remembered::default(),
        }
    }
}

/// The server's side of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainServer {
    lengths: HandshakeLengths,
}

impl PlainServer {
    /// Creates a configuration.
    #[must_use]
    pub fn new(lengths: HandshakeLengths) -> Self {
        Self { lengths }
    }
}

impl crypto::ClientConfig for PlainClient {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let ticket = self.tickets.lock().ok().and_then(|ticket| ticket.clone());
        let mut session = PlainSession::new(Side::Client, self.lengths, params);
        session.peer_parameters.clone_from(&ticket);
        session.resumes = ticket.is_some();
        session.remembers = self.early_data.then(|| Arc::clone(&self.tickets));
        Ok(Box::new(session))
    }
}

impl crypto::ServerConfig for PlainServer {
    fn initial_keys(
        &self,
        _version: u32,
        _dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; TAG]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(PlainSession::new(Side::Server, self.lengths, params))
    }
}

/// Next step of a session's own messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The client sends its ClientHello.
    Hello,
    /// Waits for the first message of the other end.
    AwaitHello,
    /// Reports the handshake keys; a server sends its ServerHello before.
    HandshakeKeys,
    /// A server sends its flight and reports the keys for data.
    ServerFlight,
    /// Waits for the other end's Finished.
    AwaitFinished,
    /// A client sends its Finished and reports the keys for data.
    ClientFinished,
    /// A server sends tickets.
    Tickets,
    /// The handshake is over.
    Done,
}

/// A session of one connection.
struct PlainSession {
    side: Side,
    lengths: HandshakeLengths,
    step: Step,
    /// Own transport parameters, encoded.
    parameters: Vec<u8>,
    peer_parameters: Option<Vec<u8>>,
    /// The client offers to resume a session, or the server accepts it.
    resumes: bool,
    /// The server has accepted 0-RTT data.
    accepted: bool,
    remembers: Option<Remembered>,
    /// Bytes of an incomplete message.
    received: Vec<u8>,
    /// Whether handshake data were reported.
    reported: bool,
}

impl PlainSession {
    fn new(side: Side, lengths: HandshakeLengths, parameters: &TransportParameters) -> Self {
        let mut encoded = Vec::new();
        parameters.write(&mut encoded);
        Self {
            side,
            lengths,
            step: match side {
                Side::Client => Step::Hello,
                Side::Server => Step::AwaitHello,
            },
            parameters: encoded,
            peer_parameters: None,
            resumes: false,
            accepted: false,
            remembers: None,
            received: Vec::new(),
            reported: false,
        }
    }

    /// Appends a message of `length` bytes, plus transport parameters if there are any.
    fn write(&self, kind: u8, length: u16, parameters: &[u8], buf: &mut Vec<u8>) {
        let flags = if self.resumes { RESUMES } else { 0 };
        let length = usize::from(length).max(HEADER + PREFIX) + parameters.len();
        let start = buf.len();
        let body = (length - HEADER) as u32;
        buf.extend_from_slice(&(u32::from(kind) << 24 | body).to_be_bytes());
        buf.push(flags);
        buf.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        buf.extend_from_slice(parameters);
        buf.resize(start + length, 0);
    }

    /// Processes a whole message without its header.
    fn read(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        let (flags, parameters) = match body {
            [flags, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                (*flags, rest.get(..length).ok_or_else(malformed)?)
            }
            _ => return Err(malformed()),
        };
        match (kind, self.side, self.step) {
            (CLIENT_HELLO, Side::Server, Step::AwaitHello) => {
                self.resumes = flags & RESUMES != 0;
                self.peer_parameters = Some(parameters.to_vec());
                self.step = Step::HandshakeKeys;
            }
            (SERVER_HELLO, Side::Client, Step::AwaitHello) => self.step = Step::HandshakeKeys,
            (ENCRYPTED_EXTENSIONS, Side::Client, Step::AwaitFinished) => {
                self.accepted = flags & RESUMES != 0;
                self.peer_parameters = Some(parameters.to_vec());
            }
            (CERTIFICATE, Side::Client, Step::AwaitFinished) => (),
            (FINISHED, Side::Client, Step::AwaitFinished) => self.step = Step::ClientFinished,
            (FINISHED, Side::Server, Step::AwaitFinished) => self.step = Step::Tickets,
            (NEW_SESSION_TICKET, Side::Client, Step::Done) => {
                if let Some(remembers) = &self.remembers
                    && let Ok(mut ticket) = remembers.lock()
                {
                    ticket.clone_from(&self.peer_parameters);
                }
            }
            _ => return Err(malformed()),
        }
        Ok(())
    }
}

/// Returns the error of a message that is malformed or out of order: the alert
/// unexpected_message of TLS.
fn malformed() -> TransportError {
    TransportError {
        code: TransportErrorCode::crypto(10),
        frame: None,
        reason: "unexpected handshake message".into(),
    }
}

impl Session for PlainSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.reported.then(|| Box::new(()) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.resumes
            .then(|| (Box::new(PlainKeys) as _, Box::new(PlainKeys) as _))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        (self.side == Side::Client).then_some(self.accepted)
    }

    fn is_handshaking(&self) -> bool {
        match self.step {
            Step::Tickets | Step::Done => false,
            Step::ClientFinished => self.side == Side::Server,
            _ => true,
        }
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        let received = std::mem::take(&mut self.received);
        let mut rest = &received[..];
        while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
            let header = u32::from_be_bytes(*header);
            let Some(body) = after.get(..(header & 0xff_ffff) as usize) else {
                break;
            };
            rest = &after[body.len()..];
            self.read((header >> 24) as u8, body)?;
        }
        self.received = rest.to_vec();
        let has_data = self.peer_parameters.is_some() || !self.is_handshaking();
        Ok(has_data && !std::mem::replace(&mut self.reported, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(encoded) = &self.peer_parameters else {
            return Ok(None);
        };
        TransportParameters::read(self.side, &mut &encoded[..])
            .map(Some)
            .map_err(Into::into)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let lengths = self.lengths;
        let more = |has: bool, bytes: u16| if has { bytes } else { 0 };
        match self.step {
            Step::Hello => {
                let length = lengths.client_hello + more(self.resumes, lengths.resumption);
                self.write(CLIENT_HELLO, length, &self.parameters, buf);
                self.step = Step::AwaitHello;
                None
            }
            Step::HandshakeKeys if self.side == Side::Server => {
                let length =
                    lengths.server_hello + more(self.resumes, lengths.resumed_server_hello);
                self.write(SERVER_HELLO, length, &[], buf);
                self.step = Step::ServerFlight;
                Some(keys())
            }
            Step::HandshakeKeys => {
                self.step = Step::AwaitFinished;
                Some(keys())
            }
            Step::ServerFlight => {
                let length =
                    lengths.encrypted_extensions + more(self.resumes, lengths.accepted_early_data);
                self.write(ENCRYPTED_EXTENSIONS, length, &self.parameters, buf);
                if !self.resumes {
                    self.write(CERTIFICATE, lengths.certificate, &[], buf);
                }
                self.write(FINISHED, lengths.finished, &[], buf);
                self.step = Step::AwaitFinished;
                Some(keys())
            }
            Step::ClientFinished => {
                self.write(FINISHED, lengths.finished, &[], buf);
                self.step = Step::Done;
                Some(keys())
            }
            Step::Tickets => {
                if lengths.tickets > 0 {
                    self.write(NEW_SESSION_TICKET, lengths.tickets, &[], buf);
                }
                self.step = Step::Done;
                None
            }
            Step::AwaitHello | Step::AwaitFinished | Step::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], payload: &[u8]) -> bool {
        payload.len() >= TAG
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Length of an authentication tag and of a header protection sample with AES-GCM (RFC 9001
/// sections 5.3 and 5.4.3).
const TAG: usize = 16;

/// Keys that change nothing.
struct PlainKeys;

fn keys() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(PlainKeys),
            remote: Box::new(PlainKeys),
        },
        packet: KeyPair {
            local: Box::new(PlainKeys),
            remote: Box::new(PlainKeys),
        },
    }
}

impl HeaderKey for PlainKeys {
    fn decrypt(&self, _number_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _number_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for PlainKeys {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _header_len: usize) {
        if let Some((_, tag)) = buf.split_last_chunk_mut::<TAG>() {
            *tag = [0; TAG];
            tag[..8].copy_from_slice(&packet.to_be_bytes());
        }
    }

    fn decrypt(
        &self,
        packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        let tag = &payload[length..];
        if tag[..8] != packet.to_be_bytes() || tag[8..] != [0; TAG - 8] {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        // RFC 9001 section 6.6, AES-GCM.
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}
