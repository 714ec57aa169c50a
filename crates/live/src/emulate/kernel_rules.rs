//! Window rules of kernel hosts, and those that were loaded into the kernel for an emulation.

use std::collections::BTreeMap;

use bentpipe_scenario::{Scenario, TcpSettings};

/// Window rules loaded into the kernel as BPF programs.
#[derive(Clone, Debug, Default)]
pub struct KernelRules {
    /// Names in the kernel, by host.
    pub names: BTreeMap<String, String>,
    /// Why a rule could not be loaded, by its name in the scenario.
    pub obstacles: BTreeMap<String, String>,
}

/// Returns the name of a host's window rule in the kernel.
pub(super) fn congestion_control_of(
    scenario: &Scenario,
    host: usize,
    rules: &KernelRules,
) -> String {
    if let Some(loaded) = rules.names.get(&scenario.nodes[host].name) {
        return loaded.clone();
    }
    let name = name_in_scenario(scenario, host);
    match name.as_str() {
        // The kernel's "bbr" is version 1.
        "bbr1" => "bbr".to_owned(),
        // Names of BPF programs have no dashes.
        "enhanced-hybla" | "westwood-2001" => name.replace('-', "_"),
        _ => name,
    }
}

/// Returns the name of a host's window rule in the scenario.
pub(super) fn name_in_scenario(scenario: &Scenario, host: usize) -> String {
    let tcp: Option<&TcpSettings> = scenario.tcp_of(host);
    tcp.map_or_else(String::new, |tcp| tcp.file.congestion_control.to_string())
}
