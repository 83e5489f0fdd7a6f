//! The label of this holder, shown to people who inspect locks.

use clap::Args;
use locktopus::Label;

use crate::config::{Config, Source};
use crate::exit::Exit;
use crate::failure::Failure;

/// Hides the host.
const OFF: &str = "off";

/// How this holder appears to others.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LabelArgs {
    /// Show this text, the host and the process to anyone who inspects the lock; also
    /// LOCKTOPUS_LABEL
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Host to show with the label, or off for none; also LOCKTOPUS_LABEL_HOST. Default: the
    /// system's
    #[arg(long, value_name = "NAME")]
    label_host: Option<String>,
}

impl LabelArgs {
    /// The label, if there is one. Checks it.
    pub(crate) fn label(&self, config: &Config) -> Result<Option<Label>, Failure> {
        let configured = config.label.as_ref();
        let text = self
            .label
            .as_deref()
            .or_else(|| configured.map(|label| label.value.as_str()));
        let host = config.label_host.as_ref();
        let host = self
            .label_host
            .as_deref()
            .or_else(|| host.map(|host| host.value.as_str()));
        let Some(text) = text else {
            if self.label_host.is_some() {
                return Err(Failure::usage("--label-host needs --label"));
            }
            return Ok(None);
        };
        let label = match host {
            None => Label::new(text),
            Some(OFF) => Label::new(text).without_host(),
            Some(host) => Label::new(text).host(host),
        };
        label.check().map_err(|error| {
            let said = if error.option == "label" {
                (&self.label, configured)
            } else {
                (&self.label_host, config.label_host.as_ref())
            };
            let (exit, source) = match said {
                (None, Some(setting)) => (Exit::Config, setting.source.clone()),
                _ => (Exit::Usage, Source::Flag("command line")),
            };
            Failure::new(exit, format!("{error} ({source})"))
        })?;
        Ok(Some(label))
    }
}
