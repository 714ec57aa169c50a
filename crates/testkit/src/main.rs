//! `bentpipe-testkit run FILE.pkt ...`: runs scripts and reports their results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bentpipe_testkit::report::{Outcome, Report};
use bentpipe_testkit::{Defines, check};
use clap::{Parser, Subcommand};

/// packetdrill scripts, run in simulated time against bentpipe's TCP.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs scripts. Exit status: 0 if all scripts that ran passed, 1 if one failed or none ran, 2
    /// for a wrong request.
    Run(Run),
}

#[derive(clap::Args)]
struct Run {
    /// Scripts, or folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print one JSON object on standard output, and nothing else.
    #[arg(long, conflicts_with = "table")]
    json: bool,
    /// Print a Markdown table of the scripts that did not pass, with known causes.
    #[arg(long)]
    table: bool,
    /// Fail unless FILE contains the table, word for word.
    #[arg(long, value_name = "FILE", requires = "table")]
    check: Option<PathBuf>,
    /// Exclude scripts whose path has this suffix.
    #[arg(long, value_name = "SUFFIX")]
    exclude: Vec<String>,
    /// Count unsupported scripts as failures.
    #[arg(long)]
    strict: bool,
    /// Do not list scripts that pass.
    #[arg(long, short)]
    quiet: bool,
    /// Define a word that scripts use: NAME=VALUE.
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = definition)]
    defines: Vec<(String, String)>,
}

fn definition(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn main() -> ExitCode {
    let Command::Run(arguments) = Arguments::parse().command;
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("bentpipe-testkit: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Run) -> Result<bool, String> {
    let mut scripts = Vec::new();
    for path in &arguments.paths {
        collect(path, &mut scripts)?;
    }
    scripts.retain(|script| {
        let path = script.to_string_lossy();
        !arguments
            .exclude
            .iter()
            .any(|suffix| path.ends_with(suffix.as_str()))
    });
    if scripts.is_empty() {
        return Err("no scripts there".to_owned());
    }
    let defines: Defines = arguments.defines.iter().cloned().collect();
    let mut report = Report::default();
    let talks = !arguments.json && !arguments.table;
    for script in scripts {
        let source = std::fs::read_to_string(&script)
            .map_err(|error| format!("{}: {error}", script.display()))?;
        let outcome = Outcome::new(&script.to_string_lossy(), check(&source, &defines));
        if talks && !(arguments.quiet && outcome.passed()) {
            println!("{outcome}");
        }
        report.add(outcome);
    }
    if arguments.json {
        println!("{}", report.json());
    } else if arguments.table {
        let table = report.table();
        match &arguments.check {
            None => print!("{table}"),
            Some(file) => return compare(file, &table),
        }
    } else {
        println!("{}", report.summary());
    }
    Ok(report.is_good(arguments.strict))
}

fn compare(file: &Path, table: &str) -> Result<bool, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let same = text.contains(table);
    if same {
        println!("{} is up to date", file.display());
    } else {
        println!("{} does not contain this table:\n\n{table}", file.display());
    }
    Ok(same)
}

/// Collects the scripts at a path: the file itself, or all files below a folder, sorted.
fn collect(path: &Path, scripts: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let kind = std::fs::metadata(path).map_err(wrong)?;
    if !kind.is_dir() {
        scripts.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(wrong)?;
    let entries: Result<Vec<_>, _> = entries.map(|entry| entry.map(|e| e.path())).collect();
    let mut entries = entries.map_err(wrong)?;
    entries.sort();
    for entry in entries {
        // A symbolic link could form a cycle.
        if entry.is_symlink() {
            continue;
        }
        if entry.is_dir() || entry.extension().is_some_and(|e| e == "pkt") {
            collect(&entry, scripts)?;
        }
    }
    Ok(())
}
