//! The error of connecting.

use std::error::Error;

use locktopus_core::internal::with_causes;
use locktopus_core::{BackendError, Finding, LockError};

use crate::url::UrlError;

/// The reason why [`connect`](crate::connect) returned no `Locktopus`. No lock was taken.
///
/// The text includes every cause, so it is enough to log or print it. Programs find the same causes
/// one by one through [`source`](Error::source). Neither contains a secret of the URL.
///
/// ```
/// # #[cfg(feature = "redis")]
/// # #[tokio::main] async fn main() {
/// let error = locktopus::connect("redis://app:s3cret@127.0.0.1:1").await.unwrap_err();
/// let text = error.to_string();
/// assert!(text.starts_with("cannot connect to redis://***@127.0.0.1:1"));
/// assert!(text.to_lowercase().contains("connection refused"));
/// assert_eq!(text.matches("cannot connect").count(), 1);
/// assert!(!text.contains("s3cret"));
/// # }
/// # #[cfg(not(feature = "redis"))] fn main() {}
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is wrong.
    #[error(transparent)]
    Url(#[from] UrlError),

    /// The URL needs a feature that this build does not have.
    #[error("{url} needs the feature \"{feature}\" of the locktopus crate, which is not enabled")]
    FeatureMissing {
        /// The URL, without secrets.
        url: String,
        /// The feature to enable.
        feature: &'static str,
    },

    /// The URL names no client, so it means `client=redis`, which this build does not have.
    /// Features never choose the client, so enabling another one changes nothing.
    #[error(
        "{url} names no client, which means client=redis, but the feature \"redis\" of the locktopus crate is not enabled; \
             write client=fred, or enable it"
    )]
    ClientMissing {
        /// The URL, without secrets.
        url: String,
    },

    /// A connector cannot be added. Nothing was connected.
    #[error("scheme {scheme:?} of a connector {problem}")]
    SchemeRefused {
        /// The scheme.
        scheme: String,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// No server could be reached, or it refused the login.
    #[error("cannot connect to {url}: {}", why_unreachable(&**source))]
    Unreachable {
        /// The URL, without secrets.
        url: String,
        /// The error of the client library or the connector.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The servers answered, but locks cannot be kept on them.
    #[error("{url} cannot be used: {}", with_causes(source))]
    Backend {
        /// The URL, without secrets.
        url: String,
        /// The error of the backend.
        #[source]
        source: BackendError,
    },

    /// The connect-time checks found a way to lose locks silently, and the URL has `checks=refuse`.
    #[error("{url} is not safe for locks: {}", list(.findings))]
    Unsafe {
        /// The URL, without secrets.
        url: String,
        /// The findings.
        findings: Vec<Finding>,
    },

    /// A node of a quorum must be one standalone server.
    #[error(
        "{url} cannot be a node of a quorum: only one standalone server (redis:// or rediss://) can, because what is \
             promoted after a failure may have lost locks without a restart"
    )]
    NotANode {
        /// The URL, without secrets.
        url: String,
    },

    /// A node of a quorum has no safety mode of its own.
    #[error(
        "{url} asks for safety={mode}, but a node of a quorum has no safety mode of its own: the majority is what makes it safe; \
             leave the option out"
    )]
    NodeWithMode {
        /// The URL, without secrets.
        url: String,
        /// The mode it asks for.
        mode: &'static str,
    },

    /// The nodes of a quorum differ in an option that must be the same for all.
    #[error("{url} has another {option} than the first node of the quorum; all must have the same")]
    NodesDiffer {
        /// The URL, without secrets.
        url: String,
        /// The option.
        option: &'static str,
    },

    /// The program's own client has a setting that cannot be read, or that connections for locks
    /// cannot use.
    #[error("the client's own settings cannot be used: {setting} {problem}")]
    ClientSettings {
        /// The setting, by its name in the client library.
        setting: &'static str,
        /// What is wrong with it, and what to do.
        problem: String,
    },

    /// A setting of the builder is wrong.
    #[error(transparent)]
    Settings(#[from] LockError),
}

/// Why a server is unreachable. Client libraries say "cannot connect to ADDRESS: " first, as
/// [`ConnectError`] does with the URL.
pub(crate) fn why_unreachable(source: &dyn Error) -> String {
    let text = with_causes(source);
    let reason = text
        .strip_prefix("cannot connect to ")
        .and_then(|rest| rest.split_once(": "));
    match reason {
        Some((_, reason)) => reason.to_owned(),
        None => text,
    }
}

#[cfg(any(feature = "redis", feature = "fred"))]
impl From<locktopus_protocol::SettingsError> for ConnectError {
    fn from(error: locktopus_protocol::SettingsError) -> Self {
        Self::ClientSettings {
            setting: error.setting,
            problem: error.problem,
        }
    }
}

fn list(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use locktopus_core::{BackendErrorKind, Executed};

    use super::*;

    #[test]
    fn the_text_says_why_and_says_it_once() {
        let refused = std::io::Error::other("connection refused");
        let why = BackendError::new(
            "redis",
            BackendErrorKind::Unavailable,
            Executed::No,
            "asking for the version failed",
        );
        let error = ConnectError::Backend {
            url: "redis://h".to_owned(),
            source: why.with_source(refused),
        };
        assert_eq!(
            error.to_string(),
            "redis://h cannot be used: redis: asking for the version failed: connection refused"
        );
        let said = BackendError::new(
            "redis",
            BackendErrorKind::Unavailable,
            Executed::No,
            "connection refused",
        );
        let error = ConnectError::Unreachable {
            url: "redis://h".to_owned(),
            source: said
                .with_source(std::io::Error::other("connection refused"))
                .into(),
        };
        assert_eq!(
            error.to_string(),
            "cannot connect to redis://h: redis: connection refused"
        );
        assert!(
            error
                .source()
                .is_some_and(|cause| cause.is::<BackendError>())
        );
        let error = ConnectError::Unreachable {
            url: "redis-cluster://[::1]:1,[::1]:2".to_owned(),
            source: "cannot connect to the cluster of [::1]:1, [::1]:2: [::1]:1: refused".into(),
        };
        assert_eq!(
            error.to_string(),
            "cannot connect to redis-cluster://[::1]:1,[::1]:2: [::1]:1: refused"
        );
    }
}
