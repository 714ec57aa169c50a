//! Handshakes without cryptography have the packets of TLS 1.3 with AES-GCM.

use std::any::Any;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bentpipe_quic::session::{HandshakeLengths, PlainClient, PlainServer};
use bytes::BytesMut;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    DatagramEvent, Dir, Endpoint, EndpointConfig, Event, NoneTokenStore, ServerConfig, Side,
    TransportConfig, TransportError,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// Connection identifiers that are counted.
struct Counted(u64);

impl ConnectionIdGenerator for Counted {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

struct NoKey;

impl HmacKey for NoKey {
    fn sign(&self, _: &[u8], out: &mut [u8]) {
        out.fill(7);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for NoKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoKey {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

/// Lengths of the messages that a session writes, and of its transport parameters.
type Written = Arc<Mutex<Vec<usize>>>;

struct Logged {
    inner: Box<dyn Session>,
    written: Written,
}

impl Session for Logged {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let before = buf.len();
        let keys = self.inner.write_handshake(buf);
        if buf.len() > before {
            self.written
                .lock()
                .expect("no panic")
                .push(buf.len() - before);
        }
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// Configurations whose sessions log what they write; the first entry is the length of the
/// transport parameters.
struct LoggedClient(Arc<QuicClientConfig>, Written);
struct LoggedServer(Arc<QuicServerConfig>, Written);

fn logged(inner: Box<dyn Session>, params: &TransportParameters, written: &Written) -> Box<Logged> {
    let mut encoded = Vec::new();
    params.write(&mut encoded);
    written.lock().expect("no panic").push(encoded.len());
    Box::new(Logged {
        inner,
        written: Arc::clone(written),
    })
}

impl crypto::ClientConfig for LoggedClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let session =
            crypto::ClientConfig::start_session(Arc::clone(&self.0), version, name, params)?;
        Ok(logged(session, params, &self.1))
    }
}

impl crypto::ServerConfig for LoggedServer {
    fn initial_keys(&self, version: u32, cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        crypto::ServerConfig::initial_keys(&*self.0, version, cid)
    }

    fn retry_tag(&self, version: u32, cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        crypto::ServerConfig::retry_tag(&*self.0, version, cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        let session = crypto::ServerConfig::start_session(Arc::clone(&self.0), version, params);
        logged(session, params, &self.1)
    }
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
}

impl End {
    fn new(port: u16, server: Option<Arc<ServerConfig>>) -> Self {
        let mut config = EndpointConfig::new(Arc::new(NoKey));
        config
            .rng_seed(Some([port as u8; 32]))
            .cid_generator(|| Box::new(Counted(0)));
        Self {
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "an origin of the simulated time")]
/// Lets a client download 100 kB over a path of 20 ms. Returns the datagrams: sender and length.
fn datagrams(
    client: Arc<dyn crypto::ClientConfig>,
    server: Arc<dyn crypto::ServerConfig>,
) -> Vec<(usize, usize)> {
    let start = Instant::now();
    let mut server_config = ServerConfig::new(server, Arc::new(NoKey));
    server_config.transport_config(Arc::new(TransportConfig::default()));
    let mut ends = [
        End::new(1, None),
        End::new(2, Some(Arc::new(server_config))),
    ];
    let mut config = ClientConfig::new(client);
    config
        .token_store(Arc::new(NoneTokenStore))
        .initial_dst_cid_provider(Arc::new(|| ConnectionId::new(&[9; 20])));
    let to = ends[1].address;
    let opened = ends[0]
        .endpoint
        .connect(start, config, to, "localhost")
        .expect("a sound certificate");
    ends[0].connection = Some(opened);
    let mut wire: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
    let mut sizes = Vec::new();
    let (mut now, mut asked, mut read) = (start, false, 0);
    let mut left = 100_000;
    while read < 100_000 {
        for (index, end) in ends.iter_mut().enumerate() {
            let Some((handle, connection)) = &mut end.connection else {
                continue;
            };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = end.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                assert!(!matches!(event, Event::ConnectionLost { .. }), "{event:?}");
            }
            if index == 0 && !connection.is_handshaking() && !asked {
                asked = true;
                let id = connection.streams().open(Dir::Bi).expect("a stream");
                connection.send_stream(id).write(&[1; 100]).expect("room");
            }
            let id = quinn_proto::StreamId::new(Side::Client, Dir::Bi, 0);
            if index == 0 && asked {
                let mut stream = connection.recv_stream(id);
                let mut chunks = stream.read(true).expect("an open stream");
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    read += chunk.bytes.len();
                }
                let _ = chunks.finalize();
            } else if index == 1 && left > 0 && connection.streams().accept(Dir::Bi).is_some() {
                left -= connection
                    .send_stream(id)
                    .write(&vec![1; left])
                    .expect("room");
                assert_eq!(left, 0);
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 10, &mut buffer) {
                let segment = transmit.segment_size.unwrap_or(transmit.size);
                for bytes in buffer[..transmit.size].chunks(segment) {
                    sizes.push((index, bytes.len()));
                    wire.push_back((now + Duration::from_millis(20), 1 - index, bytes.to_vec()));
                }
                buffer.clear();
            }
        }
        let timer = |end: &mut End| end.connection.as_mut()?.1.poll_timeout();
        let timers = ends.iter_mut().filter_map(timer);
        let arrival = wire.front().map(|(at, ..)| *at);
        now = timers.chain(arrival).min().expect("it goes on").max(now);
        assert!(now < start + Duration::from_secs(60), "{read} bytes read");
        for end in &mut ends {
            if let Some((_, connection)) = &mut end.connection {
                connection.handle_timeout(now);
            }
        }
        while wire.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, to, bytes) = wire.pop_front().expect("a datagram");
            let from = ends[1 - to].address;
            let end = &mut ends[to];
            let data = BytesMut::from(&bytes[..]);
            let mut buffer = Vec::new();
            match end
                .endpoint
                .handle(now, from, None, None, data, &mut buffer)
            {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = end.endpoint.accept(incoming, now, &mut buffer, None);
                    end.connection = accepted.ok();
                    assert!(end.connection.is_some());
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    end.connection
                        .as_mut()
                        .expect("a connection")
                        .1
                        .handle_event(event);
                }
                Some(DatagramEvent::Response(_)) | None => (),
            }
        }
    }
    sizes
}

/// Configurations of rustls, with an Ed25519 certificate, whose signatures have one length.
fn with_tls() -> (rustls::ClientConfig, rustls::ServerConfig) {
    let certificate = CertificateDer::from(&include_bytes!("data/localhost.der")[..]);
    let key = PrivatePkcs8KeyDer::from(&include_bytes!("data/localhost.key.der")[..]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).expect("a sound certificate");
    let client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("a sound certificate")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("a sound certificate")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .expect("a sound certificate");
    (client, server)
}

#[test]
fn packets_are_as_long_as_with_tls() {
    let (client, server) = with_tls();
    let [by_client, by_server] = [Written::default(), Written::default()];
    let client = Arc::new(QuicClientConfig::try_from(client).expect("a sound certificate"));
    let server = Arc::new(QuicServerConfig::try_from(server).expect("a sound certificate"));
    let real = datagrams(
        Arc::new(LoggedClient(client, Arc::clone(&by_client))),
        Arc::new(LoggedServer(server, Arc::clone(&by_server))),
    );
    let by_client = by_client.lock().expect("no panic").clone();
    let by_server = by_server.lock().expect("no panic").clone();
    // Transport parameters, ClientHello, Finished; transport parameters, ServerHello, flight,
    // tickets.
    let [client_parameters, client_hello, finished] = by_client[..] else {
        panic!("{by_client:?}");
    };
    let [server_parameters, server_hello, flight, ref tickets @ ..] = by_server[..] else {
        panic!("{by_server:?}");
    };
    let usual = HandshakeLengths::default();
    let extensions = usize::from(usual.encrypted_extensions);
    let lengths = HandshakeLengths {
        client_hello: (client_hello - client_parameters) as u16,
        server_hello: server_hello as u16,
        certificate: (flight - server_parameters - extensions - finished) as u16,
        finished: finished as u16,
        tickets: tickets.iter().sum::<usize>() as u16,
        ..usual
    };
    let plain = datagrams(
        Arc::new(PlainClient::new(lengths, false)),
        Arc::new(PlainServer::new(lengths)),
    );
    assert!(real.len() > 90, "{}", real.len());
    assert_eq!(real, plain);
    // The defaults are these lengths, with a longer chain of certificates.
    let defaults = HandshakeLengths {
        certificate: lengths.certificate,
        ..usual
    };
    assert_eq!(lengths, defaults);
}
