//! Hands the ready-made scenarios to maturin, which ships them inside the Python package.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", source.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let copies = out.join("scenarios");
    // What an earlier build left there may have another name by now.
    fs::remove_dir_all(&copies).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    fs::create_dir_all(&copies)?;
    if !source.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&source)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            fs::copy(&path, copies.join(name))?;
        }
    }
    Ok(())
}
