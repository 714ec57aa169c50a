//! The scenario file as a tree of values with their positions.
//!
//! `serde` reads the tree and `--set` changes it. The tree is kept after reading, so that an error
//! found later can name the line of its key.

pub(crate) mod overrides;
pub(crate) mod parsed;
pub(crate) mod reader;
pub(crate) mod tree;
