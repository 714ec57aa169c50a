//! Copies the ready-made scenarios, the examples, the notebooks and the window rules in C for
//! maturin, which ships them inside the Python package, and records the commit that the module is
//! built from. Where clang is, compiles the window rules for BPF.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Folders of the repository, each with its name in the package and the copied kinds of files.
const FOLDERS: [(&str, &str, &[&str]); 4] = [
    ("scenarios", "scenarios", &["toml"]),
    ("examples", "examples", &["toml", "py"]),
    ("docs/notebooks", "notebooks", &["ipynb"]),
    ("kernel", "kernel", &["c", "h"]),
];

fn main() -> io::Result<()> {
    println!("cargo::rustc-env=BENTPIPE_COMMIT={}", commit());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    for (source, name, kinds) in FOLDERS {
        copy(&root.join(source), &out.join(name), kinds)?;
    }
    compile_window_rules(&root.join("kernel"), &out.join("kernel"))
}

/// Compiles the window rules for BPF. Without clang there are none: they are then compiled when
/// they are loaded.
fn compile_window_rules(sources: &Path, objects: &Path) -> io::Result<()> {
    for entry in fs::read_dir(sources)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(rule) = name.and_then(|name| name.strip_suffix(".bpf.c")) else {
            continue;
        };
        let object = objects.join(format!("{rule}.bpf.o"));
        let status = Command::new("clang")
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-c"])
            .arg(&path)
            .arg("-o")
            .arg(&object)
            .status();
        match status {
            Ok(status) if !status.success() => {
                println!("cargo::warning={rule}: clang does not compile it for BPF");
            }
            Ok(_) => {}
            // There is no clang.
            Err(_) => break,
        }
    }
    Ok(())
}

/// Copies the files with these extensions.
fn copy(source: &Path, copies: &Path, kinds: &[&str]) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", source.display());
    // Removes files of an earlier build that have been renamed since.
    fs::remove_dir_all(copies).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    fs::create_dir_all(copies)?;
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        let kind = path.extension().and_then(|extension| extension.to_str());
        if let (Some(kind), Some(name)) = (kind, path.file_name())
            && kinds.contains(&kind)
        {
            fs::copy(&path, copies.join(name))?;
        }
    }
    Ok(())
}

/// Returns the commit that is checked out, with the suffix "with changes" if the sources differ
/// from it; empty without a checkout or git.
fn commit() -> String {
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return String::new();
    };
    // Rebuilds when the commit or branch changes.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if !changes.is_empty() => format!("{commit}, with changes"),
        _ => commit,
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR")])
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
