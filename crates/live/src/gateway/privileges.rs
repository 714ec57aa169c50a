//! Privileges of the threads of a gateway, which are dropped after the set-up.

use caps::{CapSet, Capability, CapsHashSet};

/// Drops all capabilities of the calling thread, and of those that it starts, except these. No
/// program that it executes gets more. Without rights, there is nothing to drop, and no error.
///
/// A user other than root passes capabilities to programs by the ambient set (capabilities(7)),
/// which a service manager fills. `nft`, which sets connection tracking zones, needs them.
pub(super) fn keep_only(kept: &[Capability]) {
    let _ = nix::sys::prctl::set_no_new_privs();
    let has = |set, capability| caps::has_cap(None, set, capability).unwrap_or(false);
    for capability in caps::all() {
        if !kept.contains(&capability) && has(CapSet::Bounding, capability) {
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    // The effective set is a part of the permitted one, and the ambient set one of both others.
    let sets = [
        CapSet::Ambient,
        CapSet::Effective,
        CapSet::Permitted,
        CapSet::Inheritable,
    ];
    for set in sets {
        let left: CapsHashSet = (kept.iter().copied())
            .filter(|capability| has(set, *capability))
            .collect();
        let _ = caps::set(None, set, &left);
    }
}
