//! The label of a program, for people who look at the locks that it holds.

use std::time::Duration;

use crate::host::host;
use crate::instance::InstanceRecord;
use crate::option_error::OptionError;

/// The longest label, in characters.
pub(crate) const LONGEST_LABEL: usize = 64;
/// The longest name of a host, in characters.
pub(crate) const LONGEST_HOST: usize = 253;
/// The longest time that a record can stay after the shutdown: ten years.
const LONGEST_LEFT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How an instance describes itself: a label, its host and its process. For
/// `LocktopusBuilder::label`, which also takes plain text.
///
/// Anyone who can inspect the locks can read it, so put no secret into it.
///
/// ```
/// use locktopus_contract::Label;
/// let label = Label::new("billing-worker").host("web-3");
/// let private = Label::new("billing-worker").without_host().without_process();
/// # let _ = (label, private);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    text: String,
    host: Host,
    process: bool,
    left: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    System,
    Given(String),
    Hidden,
}

impl Label {
    /// A label of 1 to 64 printable characters. By default, the host is the name of this system,
    /// and the process is this one.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            host: Host::System,
            process: true,
            left: Duration::ZERO,
        }
    }

    /// Sets the host's name: 1 to 253 printable characters.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.host = Host::Given(name.into());
        self
    }

    /// Hides the host.
    #[must_use]
    pub fn without_host(mut self) -> Self {
        self.host = Host::Hidden;
        self
    }

    /// Hides the process.
    #[must_use]
    pub fn without_process(mut self) -> Self {
        self.process = false;
        self
    }

    /// Keeps the record for this long after the shutdown, for locks that outlive the instance
    /// because it turned them into tickets. Default: the record is removed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use locktopus_contract::Label;
    /// let label = Label::new("batch").left_for(Duration::from_secs(3600));
    /// assert!(label.check().is_ok());
    /// assert!(Label::new("").check().is_err());
    /// ```
    #[must_use]
    pub fn left_for(mut self, time: Duration) -> Self {
        self.left = time;
        self
    }

    /// How long the record stays after the shutdown.
    #[doc(hidden)]
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Checks that it can be displayed. `LocktopusBuilder::build` calls this, so a bad label is
    /// never sent.
    ///
    /// # Errors
    ///
    /// [`OptionError`] for text that is empty, too long or unprintable.
    pub fn check(&self) -> Result<(), OptionError> {
        check_text("label", &self.text, LONGEST_LABEL)?;
        if let Host::Given(host) = &self.host {
            check_text("label_host", host, LONGEST_HOST)?;
        }
        if self.left > LONGEST_LEFT {
            let rule = format!("a label can be left for at most {LONGEST_LEFT:?}");
            return Err(OptionError::new("left_for", self.left, rule));
        }
        Ok(())
    }

    /// The record for this process.
    #[doc(hidden)]
    pub fn record(&self) -> InstanceRecord {
        let mut record = InstanceRecord::new(&self.text);
        let host = match &self.host {
            Host::System => host(),
            Host::Given(host) => Some(host.as_str()),
            Host::Hidden => None,
        };
        if let Some(host) = host {
            record = record.on_host(host);
        }
        if self.process {
            record = record.as_process(std::process::id());
        }
        record
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Label {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

fn check_text(option: &'static str, text: &str, longest: usize) -> Result<(), OptionError> {
    let count = text.chars().count();
    if (1..=longest).contains(&count) && text.chars().all(is_printable) {
        return Ok(());
    }
    // The whole text may be very long. `Debug` escapes unprintable characters.
    let start: String = text.chars().take(longest + 1).collect();
    let rule = format!("must be 1 to {longest} characters, without control characters");
    Err(OptionError::new(option, start, rule))
}

/// Whether a character is safe to show anywhere: it does not control a terminal, does not change
/// the direction of writing and is visible.
pub(crate) fn is_printable(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_printable() {
        for good in ["a", "billing worker (blue) größe 1", &"x".repeat(64)] {
            assert_eq!(Label::new(good).check(), Ok(()), "{good:?}");
            assert_eq!(Label::new(good).record().label(), good);
        }
        for bad in [
            "",
            "a\nb",
            "\u{1b}[2J",
            "a\tb",
            "\u{202e}a",
            "a\u{200b}",
            "\u{9b}2J",
            &"x".repeat(65),
        ] {
            let error = Label::new(bad).check().unwrap_err();
            assert_eq!(error.option, "label", "{bad:?}");
            assert!(error.to_string().chars().all(is_printable), "{error}");
            let hosted = Label::new("a").host(bad);
            let fine = bad.len() == 65;
            assert_eq!(hosted.check().is_ok(), fine, "{bad:?}");
        }
        assert!(
            Label::new("x".repeat(1 << 20))
                .check()
                .unwrap_err()
                .to_string()
                .len()
                < 300
        );
        assert!(Label::new("a").left_for(Duration::MAX).check().is_err());
    }

    #[test]
    fn a_record_says_what_the_label_allows() {
        let usual = Label::new("a").record();
        assert_eq!(usual.process(), Some(std::process::id()));
        assert_eq!(usual.host(), host());
        assert_eq!(Label::new("a").host("h").record().host(), Some("h"));
        let private = Label::new("a").without_host().without_process().record();
        assert_eq!((private.host(), private.process()), (None, None));
    }
}
