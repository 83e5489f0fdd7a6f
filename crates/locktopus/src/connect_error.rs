//! Why connecting failed.

use locktopus_core::{BackendError, Finding, LockError};

use crate::url::UrlError;

/// Why [`connect`](crate::connect) gave no `Locktopus`. No lock was taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is wrong.
    #[error(transparent)]
    Url(#[from] UrlError),

    /// The URL asks for something this build does not have.
    #[error("{url} needs the feature \"{feature}\" of the locktopus crate, which is not enabled")]
    FeatureMissing {
        /// The URL, without secrets.
        url: String,
        /// The feature to enable.
        feature: &'static str,
    },

    /// The URL names no client, so it means `client=redis`, which this build does not have. Features never choose the
    /// client, so that a crate that turns on another one changes nothing.
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
    #[error("cannot connect to {url}")]
    Unreachable {
        /// The URL, without secrets.
        url: String,
        /// What the client library or the connector said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The servers answered, but not in a way that can carry locks.
    #[error("{url} cannot be used")]
    Backend {
        /// The URL, without secrets.
        url: String,
        /// What the backend said.
        #[source]
        source: BackendError,
    },

    /// The connect-time checks found something that can lose locks silently, and `checks=refuse` was asked
    /// for.
    #[error("{url} is not safe for locks: {}", list(.findings))]
    Unsafe {
        /// The URL, without secrets.
        url: String,
        /// What was found.
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

    /// The nodes of a quorum must agree.
    #[error("{url} has another {option} than the first node of the quorum; all must have the same")]
    NodesDiffer {
        /// The URL, without secrets.
        url: String,
        /// What differs.
        option: &'static str,
    },

    /// A setting of the builder is wrong.
    #[error(transparent)]
    Settings(#[from] LockError),
}

fn list(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
