//! Schemes may be written in capitals.

use std::borrow::Cow;

use super::shown::SCHEMES;

/// The same URL with its scheme in lower case, if the scheme is one of this crate's.
pub(super) fn with_small_scheme(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once(':') else {
        return text.into();
    };
    let small = scheme.to_ascii_lowercase();
    let is_known = small == "memory" || SCHEMES.contains(&&*small) && rest.starts_with("//");
    if is_known && small != scheme {
        format!("{small}:{rest}").into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::BackendUrl;

    #[test]
    fn every_scheme_may_be_written_in_capitals() {
        for small in SCHEMES.iter().map(|scheme| format!("{scheme}://")) {
            let behind = match &*small {
                socket if socket.contains("unix") => "/run/redis.sock",
                sentinel if sentinel.contains("sentinel") => "u:S3CRET@H:7/M",
                _ => "u:S3CRET@H:7",
            };
            let small = format!("{small}{behind}");
            let as_written: BackendUrl = small.parse().unwrap();
            let capitals = small.replacen(
                small.split(':').next().unwrap(),
                &small.split(':').next().unwrap().to_ascii_uppercase(),
                1,
            );
            let mixed = format!("{}{}", small[..1].to_ascii_uppercase(), &small[1..]);
            for text in [capitals, mixed] {
                let parsed: BackendUrl = text.parse().unwrap();
                assert!(parsed == as_written, "{parsed}");
                assert!(!format!("{parsed} {parsed:?}").contains("S3CRET"));
            }
        }
        let memory: BackendUrl = "Memory:Shop".parse().unwrap();
        assert!(memory == "memory:Shop".parse().unwrap());
    }

    #[test]
    fn what_may_be_a_login_is_not_touched() {
        for text in [
            "App:SECRET@host",
            "REDIS:SECRET@host",
            "HTTP://h",
            "Redis",
            "",
        ] {
            assert_eq!(with_small_scheme(text), text);
        }
    }
}
