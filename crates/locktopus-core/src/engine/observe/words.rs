//! The values of labels: a small set, without names or error texts.

use crate::engine::error::{LockError, LostCause};

pub(super) const GRANTED: &str = "granted";
pub(super) const BUSY: &str = "busy";

/// The outcome of a wait that failed.
pub(super) fn of_error(error: &LockError) -> &'static str {
    match error {
        LockError::WaitTimeout { .. } => "timeout",
        LockError::Cancelled { .. } => "cancelled",
        LockError::Backend { .. } => "failed",
        LockError::ShutDown => "shut_down",
        _ => "refused",
    }
}

/// Why a hold ended.
pub(super) fn of_cause(cause: &LostCause) -> &'static str {
    match cause {
        LostCause::Released => RELEASED,
        LostCause::Transferred => TRANSFERRED,
        LostCause::Expired => "expired",
        LostCause::Unreachable { .. } => "unreachable",
        LostCause::Missing => "missing",
        LostCause::TakenOver => "taken_over",
        LostCause::MaxHold => "max_hold",
        LostCause::ShutDown => "shut_down",
        LostCause::Evicted { .. } => "evicted",
        LostCause::MemberLost { .. } => "member_lost",
    }
}

pub(super) const RELEASED: &str = "released";
pub(super) const TRANSFERRED: &str = "transferred";
