//! What this machine calls itself.

use std::sync::OnceLock;

/// This machine's name, as far as it is easily known. Only for people who look at a value.
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
