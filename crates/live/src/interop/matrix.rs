//! The cells of the matrix.

use bentpipe_types::IpVersion;

use super::cell::{Cell, Condition, Exchange, Options, Role};

const ROLES: [Role; 2] = [Role::Client, Role::Server];
const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

const PLAIN: Cell = Cell {
    exchange: Exchange::Refused,
    role: Role::Client,
    version: IpVersion::V4,
    mtu: 1500,
    options: Options::ALL,
    condition: Condition::Clean,
};

/// Returns a subset that takes some seconds, with every exchange, role, version, condition, option
/// and MTU at least once.
#[must_use]
pub fn quick() -> Vec<Cell> {
    let mut cells = Vec::new();
    let small = Exchange::Transfer { bytes: 5_000_000 };
    for (n, condition) in Condition::ALL.into_iter().enumerate() {
        for (role, version) in [
            (Role::Client, VERSIONS[n % 2]),
            (Role::Server, VERSIONS[(n + 1) % 2]),
        ] {
            cells.push(Cell {
                exchange: small,
                role,
                version,
                condition,
                ..PLAIN
            });
        }
    }
    for (n, options) in Options::combinations().into_iter().enumerate().skip(1) {
        cells.push(Cell {
            exchange: small,
            role: ROLES[n % 2],
            version: VERSIONS[n / 2 % 2],
            options,
            condition: if n % 2 == 0 {
                Condition::Clean
            } else {
                Condition::Loss
            },
            ..PLAIN
        });
    }
    for (n, mtu) in [576, 9000].into_iter().enumerate() {
        cells.push(Cell {
            exchange: small,
            role: ROLES[n],
            version: if mtu < 1280 {
                IpVersion::V4
            } else {
                IpVersion::V6
            },
            mtu,
            condition: Condition::Loss,
            ..PLAIN
        });
    }
    for (n, exchange) in exchanges(200).into_iter().enumerate() {
        cells.push(Cell {
            exchange,
            role: ROLES[n % 2],
            version: VERSIONS[n / 2 % 2],
            ..PLAIN
        });
    }
    cells
}

/// Returns every combination: transfers of `bytes` in each direction under each condition, option
/// set, role, version and MTU, and every other exchange in each role and version.
#[must_use]
pub fn full(bytes: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for role in ROLES {
        for version in VERSIONS {
            // IPv6 needs at least 1280 (RFC 8200 section 5).
            let small = if version == IpVersion::V4 { 576 } else { 1280 };
            for mtu in [small, 1500, 9000] {
                for condition in Condition::ALL {
                    for options in Options::combinations() {
                        cells.push(Cell {
                            exchange: Exchange::Transfer { bytes },
                            role,
                            version,
                            mtu,
                            options,
                            condition,
                        });
                    }
                }
            }
            for exchange in exchanges(1000) {
                for condition in [Condition::Clean, Condition::Everything] {
                    cells.push(Cell {
                        exchange,
                        role,
                        version,
                        condition,
                        ..PLAIN
                    });
                }
            }
        }
    }
    cells
}

/// Returns the exchanges other than a transfer.
fn exchanges(connections: u32) -> [Exchange; 7] {
    [
        Exchange::Short { connections },
        Exchange::HalfClose { bytes: 10_000_000 },
        Exchange::OurReset,
        Exchange::TheirReset,
        Exchange::Refused,
        Exchange::OurPause,
        Exchange::TheirPause,
    ]
}
