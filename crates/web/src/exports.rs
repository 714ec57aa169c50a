//! The functions of the WebAssembly module.
//!
//! A page writes a request to the memory at [`reserve`], calls [`call`] or [`file()`], and reads
//! the reply at [`reply`]. Samples, which are many, are not in the reply but in [`values`], as
//! 64-bit floats. All memory is the module's. Addresses are valid until the next `reserve`, `call`
//! or `file`.

#![allow(
    unsafe_code,
    reason = "an exported function needs a name that is unique in the program"
)]

use std::cell::RefCell;

use crate::Engine;

/// Longest request in bytes: the longest trace file and its name.
const LONGEST_REQUEST: usize = (64 << 20) + 4096;

#[derive(Default)]
struct Exchange {
    engine: Engine,
    request: Vec<u8>,
    reply: String,
}

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
}

fn with<R>(work: impl FnOnce(&mut Exchange) -> R) -> R {
    EXCHANGE.with_borrow_mut(work)
}

/// Returns the address for a request of `length` bytes, or 0 if it is too long.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> usize {
    if length > LONGEST_REQUEST {
        return 0;
    }
    with(|exchange| {
        exchange.request.clear();
        exchange.request.resize(length, 0);
        exchange.request.as_mut_ptr() as usize
    })
}

/// Answers the request in the reserved memory. Returns the length of the reply in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    with(|exchange| {
        let request = std::mem::take(&mut exchange.request);
        exchange.reply = exchange.engine.answer(&request);
        exchange.reply.len()
    })
}

/// Holds a trace file: the reserved memory has its name, which is `name_length` bytes long, and its
/// contents. Returns the length of the reply in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn file(name_length: usize) -> usize {
    with(|exchange| {
        let mut name = std::mem::take(&mut exchange.request);
        let content = name.split_off(name_length.min(name.len()));
        let name = String::from_utf8_lossy(&name).into_owned();
        exchange.reply = exchange.engine.provide(name, content);
        exchange.reply.len()
    })
}

/// Returns the address of the last reply: JSON in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> usize {
    with(|exchange| exchange.reply.as_ptr() as usize)
}

/// Returns the address of the last reply's samples.
#[unsafe(no_mangle)]
pub extern "C" fn values() -> usize {
    with(|exchange| exchange.engine.values().as_ptr() as usize)
}

/// Returns the number of the last reply's samples.
#[unsafe(no_mangle)]
pub extern "C" fn values_length() -> usize {
    with(|exchange| exchange.engine.values().len())
}
