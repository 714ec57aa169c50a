//! Embeds the ready-made scenarios and the examples for `bentpipe-gateway`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut table = String::from("&[\n");
    for folder in ["scenarios", "examples"] {
        let folder = root.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        for path in toml_files(&folder)? {
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
                continue;
            };
            let path = path.canonicalize()?;
            table += &format!("    ({name:?}, include_str!({path:?})),\n");
        }
    }
    table += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("ready_made.rs"), table)
}

/// Returns the TOML files of a folder, sorted.
fn toml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
