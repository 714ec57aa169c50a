//! Local ports of connections that an application opens.

/// First dynamic port (RFC 6335 section 6).
const FIRST_EPHEMERAL: u16 = 49_152;

/// A range of ports, used in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    first: u16,
    last: u16,
    next: u16,
}

impl Default for Ports {
    /// All ephemeral ports.
    fn default() -> Self {
        Self::range(FIRST_EPHEMERAL, u16::MAX)
    }
}

impl Ports {
    /// Creates an inclusive range.
    #[must_use]
    pub fn range(first: u16, last: u16) -> Self {
        debug_assert!(first <= last, "no port at all");
        Self {
            first,
            last,
            next: first,
        }
    }

    /// Returns the first and last port.
    #[must_use]
    pub fn bounds(self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// Returns the next free port.
    pub fn take(&mut self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        for _ in self.first..=self.last {
            let port = self.next;
            self.next = if port >= self.last {
                self.first
            } else {
                port + 1
            };
            if is_free(port) {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_allocated_cyclically_until_exhausted() {
        let mut ports = Ports::range(u16::MAX - 1, u16::MAX);
        assert_eq!(ports.take(|_| true), Some(u16::MAX - 1));
        assert_eq!(ports.take(|_| true), Some(u16::MAX));
        assert_eq!(ports.take(|port| port == u16::MAX), Some(u16::MAX));
        assert_eq!(ports.take(|_| false), None);
    }
}
