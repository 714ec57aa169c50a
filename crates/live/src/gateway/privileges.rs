//! Privileges of the threads of a gateway, which are dropped after the set-up.

use caps::{CapSet, Capability, CapsHashSet};

/// Drops all capabilities of the calling thread, and of those that it starts, except these. No
/// program that it executes gets more. Without rights, there is nothing to drop, and no error.
pub(super) fn keep_only(kept: &[Capability]) {
    let _ = nix::sys::prctl::set_no_new_privs();
    let has = |set, capability| caps::has_cap(None, set, capability).unwrap_or(false);
    for capability in caps::all() {
        if !kept.contains(&capability) && has(CapSet::Bounding, capability) {
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    let kept: CapsHashSet = (kept.iter().copied())
        .filter(|capability| has(CapSet::Permitted, *capability))
        .collect();
    let _ = caps::clear(None, CapSet::Ambient);
    // The effective set is a part of the permitted one.
    for set in [CapSet::Effective, CapSet::Permitted] {
        let _ = caps::set(None, set, &kept);
    }
    let _ = caps::clear(None, CapSet::Inheritable);
}
