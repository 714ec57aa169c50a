//! Values of Linux constants on x86-64.

use super::Problem;
use crate::script::Expression;

pub(super) const O_RDWR: i64 = 2;
pub(super) const O_NONBLOCK: i64 = 0x800;
pub(super) const MSG_DONTWAIT: i64 = 0x40;
pub(super) const MSG_PEEK: i64 = 0x2;
pub(super) const MSG_TRUNC: i64 = 0x20;
pub(super) const MSG_EOR: i64 = 0x80;
pub(super) const MSG_NOSIGNAL: i64 = 0x4000;
pub(super) const MSG_MORE: i64 = 0x8000;
pub(super) const MSG_FASTOPEN: i64 = 0x2000_0000;
pub(super) const MSG_WAITALL: i64 = 0x100;
pub(super) const POLLIN: i64 = 0x1;
pub(super) const POLLOUT: i64 = 0x4;
pub(super) const POLLERR: i64 = 0x8;
pub(super) const POLLHUP: i64 = 0x10;
pub(super) const POLLRDHUP: i64 = 0x2000;
pub(super) const EPOLLET: i64 = 1 << 31;
pub(super) const EPOLLONESHOT: i64 = 1 << 30;

const NAMES: &[(&str, i64)] = &[
    ("O_RDWR", O_RDWR),
    ("O_NONBLOCK", O_NONBLOCK),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_PEEK", MSG_PEEK),
    ("MSG_TRUNC", MSG_TRUNC),
    ("MSG_EOR", MSG_EOR),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_MORE", MSG_MORE),
    ("MSG_WAITALL", MSG_WAITALL),
    ("MSG_FASTOPEN", MSG_FASTOPEN),
    ("POLLIN", POLLIN),
    ("POLLOUT", POLLOUT),
    ("POLLERR", POLLERR),
    ("POLLHUP", POLLHUP),
    ("POLLRDHUP", POLLRDHUP),
    ("EPOLLIN", POLLIN),
    ("EPOLLOUT", POLLOUT),
    ("EPOLLERR", POLLERR),
    ("EPOLLHUP", POLLHUP),
    ("EPOLLRDHUP", POLLRDHUP),
    ("EPOLLET", EPOLLET),
    ("EPOLLONESHOT", EPOLLONESHOT),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("NULL", 0),
    ("IPTOS_ECN_NOT_ECT", 0),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
];

/// Returns the value of a numeric argument.
pub(super) fn number(expression: &Expression) -> Result<i64, Problem> {
    match expression {
        Expression::Integer(n) => Ok(*n),
        Expression::Word(word) => {
            let known = NAMES.iter().find(|(name, _)| name == word);
            match known {
                Some((_, value)) => Ok(*value),
                None => Err(Problem::missing(word.clone())),
            }
        }
        Expression::Or(all) => all
            .iter()
            .try_fold(0, |bits, part| Ok(bits | number(part)?)),
        Expression::Apply(name, arguments) if name == "htons" || name == "htonl" => {
            match &arguments[..] {
                [one] => number(one),
                _ => Err(Problem::missing(format!("{name} of several"))),
            }
        }
        other => Err(Problem::missing(format!("a number like {other:?}"))),
    }
}

/// Returns the number in `[n]`.
pub(super) fn listed(expression: &Expression) -> Result<i64, Problem> {
    match expression {
        Expression::List(all) if all.len() == 1 => number(&all[0]),
        other => number(other),
    }
}

/// Returns the name in an argument.
pub(super) fn word(expression: &Expression) -> &str {
    match expression {
        Expression::Word(word) => word,
        _ => "",
    }
}
