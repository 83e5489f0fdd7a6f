//! The answers of a Java thread.

use super::error::RedissonError;

/// The answer of a Java thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done, or yes.
    Done,
    /// Done, with this result.
    Value(String),
    /// Not acquired, or no.
    No,
    /// An exception.
    Threw {
        /// The simple name of the exception's class.
        class: String,
        /// Its message.
        message: String,
    },
}

impl Reply {
    pub(super) fn parse(text: &str) -> Result<Self, RedissonError> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (word, rest) {
            ("ok", "") => Ok(Self::Done),
            ("ok", value) => Ok(Self::Value(value.to_owned())),
            ("no", "") => Ok(Self::No),
            ("error", what) => {
                let (class, message) = what.split_once(' ').unwrap_or((what, ""));
                Ok(Self::Threw {
                    class: class.to_owned(),
                    message: message.to_owned(),
                })
            }
            _ => Err(RedissonError::Odd(text.to_owned())),
        }
    }

    /// The result, if it is a number.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Value(value) => value.parse().ok(),
            Self::Done | Self::No | Self::Threw { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let threw = Reply::Threw {
            class: "IllegalMonitorStateException".to_owned(),
            message: "not locked".to_owned(),
        };
        for (text, reply) in [
            ("ok", Reply::Done),
            ("ok 12", Reply::Value("12".to_owned())),
            ("no", Reply::No),
            ("error IllegalMonitorStateException not locked", threw),
        ] {
            assert_eq!(Reply::parse(text).unwrap(), reply);
        }
        assert!(Reply::parse("Exception in thread").is_err());
    }
}
