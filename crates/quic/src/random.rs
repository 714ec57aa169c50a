//! Randomness of an endpoint, from random streams of the run.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bentpipe_types::RandomStream;
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Length of connection identifiers: that of quinn's default generator.
const CONNECTION_ID_LENGTH: usize = 8;

/// Length of the first destination connection identifier of a client: quinn's, the longest of RFC
/// 9000 section 17.2.
const INITIAL_ID_LENGTH: usize = 20;

/// Length of a stateless reset key's signature: that of HMAC-SHA256.
const SIGNATURE_LENGTH: usize = 32;

/// Length of the tag of a sealed token.
const TAG_LENGTH: usize = 16;

/// Connection identifiers of an endpoint.
#[derive(Clone)]
pub(crate) struct Identifiers(Arc<Mutex<RandomStream>>);

impl Identifiers {
    pub(crate) fn new(stream: RandomStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Draws the first destination connection identifier of a client.
    pub(crate) fn initial(&self) -> ConnectionId {
        self.draw(INITIAL_ID_LENGTH)
    }

    fn draw(&self, length: usize) -> ConnectionId {
        let mut bytes = [0; 24];
        if let Ok(mut stream) = self.0.lock() {
            for word in bytes.chunks_exact_mut(8) {
                word.copy_from_slice(&stream.bits().to_le_bytes());
            }
        }
        ConnectionId::new(&bytes[..length])
    }
}

impl fmt::Debug for Identifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identifiers")
    }
}

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        self.draw(CONNECTION_ID_LENGTH)
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Key of stateless resets and of tokens. Their authenticity has no effect in a simulation; their
/// lengths are those of HMAC-SHA256 and AES-256-GCM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainKey(pub(crate) u64);

impl PlainKey {
    /// A 64-bit hash of the data (FNV-1a, seeded with the key).
    fn hash(self, data: &[u8]) -> u64 {
        let start = 0xcbf2_9ce4_8422_2325_u64 ^ self.0;
        data.iter().fold(start, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    fn fill(self, data: &[u8], out: &mut [u8]) {
        let hash = self.hash(data);
        for (index, bytes) in (0_u64..).zip(out.chunks_mut(8)) {
            let word = bentpipe_types::splitmix64(hash ^ index).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }
}

impl HmacKey for PlainKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        self.fill(data, signature_out);
    }

    fn signature_len(&self) -> usize {
        SIGNATURE_LENGTH
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; SIGNATURE_LENGTH];
        self.fill(data, &mut expected);
        (signature == expected).then_some(()).ok_or(CryptoError)
    }
}

impl HandshakeTokenKey for PlainKey {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self(self.hash(random_bytes)))
    }
}

impl AeadKey for PlainKey {
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError> {
        let mut tag = [0; TAG_LENGTH];
        self.fill(&[&data[..], additional_data].concat(), &mut tag);
        data.extend_from_slice(&tag);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_LENGTH).ok_or(CryptoError)?;
        let (plain, tag) = data.split_at_mut(length);
        let mut expected = [0; TAG_LENGTH];
        self.fill(&[plain, additional_data].concat(), &mut expected);
        (tag == expected).then_some(plain).ok_or(CryptoError)
    }
}
