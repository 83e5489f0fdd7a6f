//! Keeps passwords out of messages about failed logins.

use std::fmt;

use crate::client::options::{ConnectOptions, Credentials, Secret};

/// The words after which a server that does not know a command repeats its arguments, which may be
/// a login.
const REPEATS: &str = "args beginning with";

/// Shorter passwords are not removed: they could be part of any word.
const SHORTEST: usize = 4;

/// Removes a client's passwords from texts of servers and libraries.
///
/// A server or proxy without `HELLO` or `AUTH` answers with an error that repeats their arguments,
/// and a client library passes that on. Adapters filter everything that they report about
/// connecting.
#[derive(Clone)]
pub struct SecretFilter {
    secrets: Vec<Secret>,
}

impl SecretFilter {
    /// Filters the fixed logins of these options.
    #[must_use]
    pub fn of(options: &ConnectOptions) -> Self {
        let logins = [&options.credentials, &options.sentinel_credentials];
        let secrets = logins
            .into_iter()
            .flatten()
            .map(|Credentials { password, .. }| password.clone());
        Self {
            secrets: secrets
                .filter(|secret| secret.expose().chars().count() >= SHORTEST)
                .collect(),
        }
    }

    /// The same filter with the credentials that a provider supplied for one login.
    #[must_use]
    pub fn and(&self, credentials: Option<&Credentials>) -> Self {
        let mut all = self.clone();
        let more = credentials.map(|credentials| credentials.password.clone());
        let more = more.filter(|secret| secret.expose().chars().count() >= SHORTEST);
        all.secrets.extend(more);
        all
    }

    /// The text without passwords and without command arguments.
    #[must_use]
    pub fn conceal(&self, text: &str) -> String {
        let mut shown = match text.split_once(REPEATS) {
            Some((before, _)) => format!("{before}{REPEATS}: ***"),
            None => text.to_owned(),
        };
        for secret in &self.secrets {
            shown = shown.replace(secret.expose(), "***");
        }
        shown
    }
}

impl fmt::Debug for SecretFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFilter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::options::{HostPort, Servers};

    #[test]
    fn neither_passwords_nor_arguments_are_told() {
        let mut options = ConnectOptions::new(Servers::Cluster(Vec::<HostPort>::new()));
        options.credentials = Some(Credentials {
            username: Some("app".to_owned()),
            password: Secret::new("s3cret"),
        });
        options.sentinel_credentials = Some(Credentials {
            username: None,
            password: Secret::new("other one"),
        });
        let secret_filter = SecretFilter::of(&options);
        for (said, told) in [
            ("WRONGPASS invalid", "WRONGPASS invalid"),
            (
                "no such user app with s3cret or other one",
                "no such user app with *** or ***",
            ),
            (
                "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'app' 's3cr",
                "ERR unknown command 'HELLO', with args beginning with: ***",
            ),
        ] {
            assert_eq!(secret_filter.conceal(said), told);
        }
        assert!(!format!("{secret_filter:?} {options:?}").contains("s3cret"));
        let provided = secret_filter.and(Some(&Credentials::new("app", "a-token")));
        let said = "no such user app with s3cret or a-token";
        assert_eq!(provided.conceal(said), "no such user app with *** or ***");
    }
}
