//! URLs with schemes that connectors of other crates offer.

use std::error::Error;
use std::fmt;

use super::authority::addresses;
use super::options::{FOR_ANY_BACKEND, UrlOptions};
use super::parse::address_and_path;
use super::shown::{HIDDEN, RedactedUrl, UrlError, UrlFault, decode, is_legible};

/// A URL with a scheme that a [`Connector`](crate::Connector) offers.
///
/// Like all messages, `Debug` and `Display` show it without its login and without the connector's
/// own options. [`expose`](Self::expose) returns the text with its secrets.
///
/// ```
/// use std::sync::Arc;
/// use locktopus::{Connector, ConnectorError, DynBackend, MemoryBackend, url::CustomUrl};
///
/// struct Files;
///
/// #[async_trait::async_trait]
/// impl Connector for Files {
///     fn schemes(&self) -> &[&str] {
///         &["files", "nfs"]
///     }
///
///     async fn connect(&self, url: &CustomUrl) -> Result<DynBackend, ConnectorError> {
///         let folder = url.expose().split_once(':').map_or("", |(_, folder)| folder);
///         if url.scheme() == "nfs" || folder.is_empty() {
///             return Err(url.error("folder", "is missing, or not on this machine").into());
///         }
///         Ok(Arc::new(MemoryBackend::new())) // a backend of yours
///     }
/// }
/// ```
#[derive(Clone)]
pub struct CustomUrl {
    scheme: String,
    exposed: String,
    pub(crate) options: UrlOptions,
    shown: RedactedUrl,
    /// Longest first, so that a shorter one never leaves part of a longer one.
    secrets: Vec<String>,
}

impl CustomUrl {
    /// `text` begins with `scheme` and a colon.
    pub(crate) fn parse(text: &str, scheme: &str) -> Result<Self, UrlError> {
        let mut shown = RedactedUrl::default();
        match Self::read(text, scheme, &mut shown) {
            Ok(url) => Ok(Self { shown, ..url }),
            Err(fault) => Err(shown.error(fault)),
        }
    }

    fn read(text: &str, scheme: &str, shown: &mut RedactedUrl) -> Result<Self, UrlFault> {
        let rest = &text[scheme.len() + ":".len()..];
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        shown.add(&text[..text.len() - rest.len()]);
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let (address, path) = address_and_path(rest)?;
        show_place(address, path, shown);
        let (ours, theirs): (Vec<_>, Vec<_>) = query
            .split('&')
            .filter(|option| !option.is_empty())
            .partition(|option| {
                let name = option.split_once('=').map_or(*option, |(name, _)| name);
                FOR_ANY_BACKEND.contains(&name)
            });
        let options = UrlOptions::parse(&ours.join("&"), true, shown)?;
        let mut exposed = place.to_owned();
        if !theirs.is_empty() {
            exposed = format!("{place}?{}", theirs.join("&"));
            shown.add(if ours.is_empty() { "?" } else { "&" });
            shown.add(HIDDEN);
        }
        Ok(Self {
            scheme: scheme.to_owned(),
            exposed,
            options,
            secrets: secrets(text, address, &theirs, shown),
            shown: RedactedUrl::default(),
        })
    }

    /// The scheme, without the colon, in lower case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The URL as written, **with its secrets**. The scheme is in lower case, and the options
    /// `namespace`, `names`, `renewed_lease`, `label`, `label_host` and `checks` are left out.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.exposed
    }

    /// Makes an error about this URL, for a connector that cannot use it: which part is wrong, and
    /// how. Removes from both texts every piece of the URL that messages do not show.
    #[must_use]
    pub fn error(&self, part: &str, problem: &str) -> UrlError {
        let fault = UrlFault::new(self.scrub(part), self.scrub(problem));
        self.shown.error(fault)
    }

    fn scrub(&self, text: &str) -> String {
        let secrets = self.secrets.iter();
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }

    /// Makes a connector's error safe to show. Returns it unchanged, or, if any of its texts
    /// contains a hidden piece of the URL, only its text without these pieces.
    pub(crate) fn without_secrets(
        &self,
        error: Box<dyn Error + Send + Sync>,
    ) -> Box<dyn Error + Send + Sync> {
        let (mut chain, mut next) = (Vec::new(), error.source());
        chain.push(error.to_string());
        while let Some(cause) = next {
            chain.push(cause.to_string());
            next = cause.source();
        }
        let texts = format!("{error:?} {error:#?} {}", chain.join(" "));
        if !self.secrets.iter().any(|secret| texts.contains(secret)) {
            return error;
        }
        self.scrub(&chain.join(": ")).into()
    }
}

/// Shows the addresses and the path of a connector's URL, if they look like such.
fn show_place(address: &str, path: &str, shown: &mut RedactedUrl) {
    let hosts = address.rsplit_once('@').map_or(address, |(_, hosts)| hosts);
    if !hosts.is_empty() && addresses(hosts, 1).is_err() {
        shown.add(HIDDEN);
        return;
    }
    shown.add_authority(address);
    if !path.is_empty() {
        let path = if is_legible(path) { path } else { HIDDEN };
        shown.add(&format!("/{path}"));
    }
}

/// The pieces of the URL that no message shows: as written, as decoded, and as `Debug` writes them.
fn secrets(text: &str, address: &str, options: &[&str], shown: &RedactedUrl) -> Vec<String> {
    let mut pieces = vec![text, address];
    if let Some((login, _)) = address.rsplit_once('@') {
        pieces.push(login);
        pieces.extend(login.split_once(':').map(|(_, password)| password));
    }
    let place = text.split('?').next().unwrap_or(text);
    // In connection strings of other libraries, a password begins or ends at one of these.
    pieces.extend(place.split([',', ';', '#', '/', '@']));
    pieces.extend(options);
    let values: Vec<_> = pieces
        .iter()
        .filter_map(|piece| Some(piece.split_once(['=', ':'])?.1))
        .collect();
    pieces.extend(values);
    let mut secrets: Vec<String> = pieces
        .into_iter()
        .flat_map(|piece| {
            let meant = decode(piece, "").unwrap_or_default();
            let debug = meant.escape_debug().to_string();
            [piece.to_owned(), meant, debug]
        })
        .filter(|piece| !piece.is_empty() && !shown.as_str().contains(piece))
        .collect();
    secrets.sort_unstable_by_key(|piece| std::cmp::Reverse(piece.len()));
    secrets.dedup();
    secrets
}

impl fmt::Display for CustomUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown.as_str())
    }
}

impl fmt::Debug for CustomUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomUrl({})", self.shown.as_str())
    }
}
