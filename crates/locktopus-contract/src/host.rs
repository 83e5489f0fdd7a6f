//! The name of this machine.

use std::sync::OnceLock;

/// This machine's name, if it is easy to find out. For display only.
pub(crate) fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        let variable = |name| std::env::var(name).ok();
        variable("COMPUTERNAME")
            .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
            .or_else(|| variable("HOSTNAME"))
            .map(|host| host.trim().to_owned())
            .filter(|host| !host.is_empty())
    });
    host.as_deref()
}
