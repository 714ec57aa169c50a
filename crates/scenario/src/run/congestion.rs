//! Congestion control of a host.

use bentpipe_tcp::CongestionControlKind;

use super::RunError;
use crate::CustomControls;
use crate::schema::CongestionControlName;

/// Returns the congestion control of this name.
pub(super) fn kind(
    name: &CongestionControlName,
    custom: &CustomControls,
) -> Result<CongestionControlKind, RunError> {
    match name {
        CongestionControlName::BuiltIn(rule) => Ok((*rule).into()),
        CongestionControlName::Custom(name) => {
            let message = || format!("no congestion control is registered as \"{name}\"");
            (custom.factory(name))
                .map(|factory| CongestionControlKind::Custom(factory.clone()))
                .ok_or_else(|| RunError::Request(message()))
        }
    }
}
