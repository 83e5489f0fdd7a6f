//! The random values that prove ownership of a mutex, in the forms of other libraries.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::host::host;
use crate::owner::{self, OwnerId, OwnerIds};

/// The form of the random value that proves ownership of a mutex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ValueEncoding {
    /// An [`OwnerId`] in the standard form. The default.
    #[default]
    Owner,
    /// 16 random bytes as 32 lower-case hex digits (redis-py, node-redlock, redlock-universal).
    Hex32,
    /// 16 random bytes in standard base64 with padding, 24 characters (redsync).
    Base64,
    /// 18 random bytes in standard base64, 24 characters (python-redis-lock).
    Base64Of18,
    /// 16 random bytes in URL-safe base64 without padding, 22 characters (bsm/redislock).
    Base64Url,
    /// A random version 4 UUID as text (redlock-rb, RedLock.net, pottery, Spring, ...).
    Uuid,
    /// 20 raw random bytes (rslock).
    Raw20,
    /// `<host>_<process id>_<32 hex digits>` (Medallion).
    Medallion,
    /// `ADDED:<time>@<host>:<UUID>` (ShedLock).
    ShedLock,
}

impl ValueEncoding {
    /// A fresh value, followed by `metadata`.
    pub(super) fn generate(self, ids: &OwnerIds, metadata: &str) -> OwnerId {
        let text = match self {
            Self::Owner => return followed(ids.any(), metadata),
            Self::Raw20 => {
                return followed(OwnerId::from_bytes(owner::random::<20>()), metadata);
            }
            Self::Hex32 => hex(&owner::random::<16>()),
            Self::Base64 => STANDARD.encode(owner::random::<16>()),
            Self::Base64Of18 => STANDARD.encode(owner::random::<18>()),
            Self::Base64Url => URL_SAFE_NO_PAD.encode(owner::random::<16>()),
            Self::Uuid => uuid_v4(),
            Self::Medallion => {
                let random = hex(&owner::random::<16>());
                format!("{}_{}_{random}", known_host(), std::process::id())
            }
            Self::ShedLock => {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
                let millis = since_epoch.unwrap_or_default().as_millis();
                format!("ADDED:{}@{}:{}", iso_time(millis), known_host(), uuid_v4())
            }
        };
        followed(OwnerId::from_bytes(text.into_bytes()), metadata)
    }
}

fn followed(value: OwnerId, metadata: &str) -> OwnerId {
    if metadata.is_empty() {
        return value;
    }
    OwnerId::from_bytes([value.expose(), metadata.as_bytes()].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn uuid_v4() -> String {
    let mut bytes: [u8; 16] = owner::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

fn known_host() -> &'static str {
    host().unwrap_or("unknown")
}

/// Milliseconds since 1970 as `2026-01-31T23:59:59.999Z`.
fn iso_time(millis: u128) -> String {
    let (days, of_day) = (millis / 86_400_000, millis % 86_400_000);
    // A year that begins in March ends with its leap day. 400 such years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (year, day) = (year + era * 400, day - (153 * month + 2) / 5 + 1);
    let (year, month) = match month {
        0..=9 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_lengths_of_their_libraries() {
        for (encoding, length) in [
            (ValueEncoding::Hex32, 32),
            (ValueEncoding::Base64, 24),
            (ValueEncoding::Base64Of18, 24),
            (ValueEncoding::Base64Url, 22),
            (ValueEncoding::Uuid, 36),
            (ValueEncoding::Raw20, 20),
        ] {
            assert_eq!(
                encoding
                    .generate(&OwnerIds::of_process(), "")
                    .expose()
                    .len(),
                length,
                "{encoding:?}"
            );
            let with_metadata = encoding.generate(&OwnerIds::of_process(), "{\"who\":7}");
            assert_eq!(with_metadata.expose().len(), length + 9, "{encoding:?}");
            assert!(with_metadata.expose().ends_with(b"{\"who\":7}"));
        }
    }

    #[test]
    fn values_with_parts_have_them() {
        let text = |encoding: ValueEncoding| {
            String::from_utf8(
                encoding
                    .generate(&OwnerIds::of_process(), "")
                    .expose()
                    .to_vec(),
            )
            .unwrap()
        };
        let medallion = text(ValueEncoding::Medallion);
        let parts: Vec<_> = medallion.rsplitn(3, '_').collect();
        assert_eq!(parts[0].len(), 32, "{medallion}");
        assert_eq!(parts[1], std::process::id().to_string(), "{medallion}");
        let shed = text(ValueEncoding::ShedLock);
        let (time, rest) = shed
            .strip_prefix("ADDED:")
            .and_then(|rest| rest.split_once('@'))
            .unwrap();
        assert_eq!(time.len(), "2026-01-31T23:59:59.999Z".len(), "{shed}");
        assert_eq!(rest.rsplit_once(':').unwrap().1.len(), 36, "{shed}");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_769_903_999_999, "2026-01-31T23:59:59.999Z"),
            (1_772_323_200_000, "2026-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_time(millis), text);
        }
    }
}
