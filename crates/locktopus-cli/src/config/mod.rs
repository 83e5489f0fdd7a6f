//! The configuration: from the command line, else the environment, else a file.

mod file;
mod source;

use std::path::PathBuf;
use std::time::Duration;

use locktopus::url::BackendUrl;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Format;

pub(crate) use source::{Setting, Source};

/// The variable with the URLs of the servers.
pub(crate) const URL_VARIABLE: &str = "LOCKTOPUS_URL";
/// The variable with the format of answers.
pub(crate) const FORMAT_VARIABLE: &str = "LOCKTOPUS_FORMAT";

/// The variable with the label of this holder.
pub(crate) const LABEL_VARIABLE: &str = "LOCKTOPUS_LABEL";
/// The variable with the host shown with the label.
pub(crate) const LABEL_HOST_VARIABLE: &str = "LOCKTOPUS_LABEL_HOST";

/// The library's default lease.
const USUAL_LEASE: Duration = Duration::from_secs(30);

/// The settings, and where each comes from.
#[derive(Debug)]
pub(crate) struct Config {
    urls: Option<Setting<Vec<String>>>,
    pub(crate) format: Setting<Format>,
    /// The label of holders, unless the command line gives one.
    pub(crate) label: Option<Setting<String>>,
    /// The host shown with the label.
    pub(crate) label_host: Option<Setting<String>>,
    /// The configuration file, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// A warning, if others can read the file.
    pub(crate) warning: Option<String>,
}

/// The settings given on the command line.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub(crate) urls: Vec<String>,
    pub(crate) format: Option<Format>,
    pub(crate) file: Option<PathBuf>,
}

/// The environment. Tests substitute their own.
pub(crate) trait Surroundings {
    fn variable(&self, name: &str) -> Option<String>;
}

/// The environment of this process.
#[derive(Debug)]
pub(crate) struct Process;

impl Surroundings for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}

impl Config {
    /// Reads all sources. Does not connect, nor parse the URLs.
    pub(crate) fn load(flags: Flags, around: &impl Surroundings) -> Result<Self, Failure> {
        let file = file::load(flags.file, around)?;
        let (path, said) = match &file {
            Some((path, said)) => (Some(path.clone()), Some(said)),
            None => (None, None),
        };
        let from_file = |path: &Option<PathBuf>| Source::File(path.clone().unwrap_or_default());
        let in_environment = around.variable(URL_VARIABLE).map(|text| {
            let urls = text.split_whitespace().map(str::to_owned);
            Setting::new(urls.collect(), Source::Environment(URL_VARIABLE))
        });
        let urls = if flags.urls.is_empty() {
            in_environment.or_else(|| {
                let urls = said.and_then(|said| said.urls())?;
                Some(Setting::new(urls, from_file(&path)))
            })
        } else {
            Some(Setting::new(flags.urls, Source::Flag("--url")))
        };
        let format = match (flags.format, around.variable(FORMAT_VARIABLE)) {
            (Some(format), _) => Setting::new(format, Source::Flag("--format")),
            (None, Some(text)) => {
                let format = clap::ValueEnum::from_str(&text, true).map_err(|_| {
                    let problem = format!("{FORMAT_VARIABLE} is {text:?}; it must be text or json");
                    Failure::new(Exit::Config, problem)
                })?;
                Setting::new(format, Source::Environment(FORMAT_VARIABLE))
            }
            (None, None) => match said.and_then(|said| said.format) {
                Some(format) => Setting::new(format, from_file(&path)),
                None => Setting::new(Format::default(), Source::Default),
            },
        };
        let text = |variable, in_file: Option<&String>| {
            let value = around.variable(variable);
            let set = value.map(|value| Setting::new(value, Source::Environment(variable)));
            set.or_else(|| Some(Setting::new(in_file?.clone(), from_file(&path))))
        };
        let label = text(LABEL_VARIABLE, said.and_then(|said| said.label.as_ref()));
        let label_host = said.and_then(|said| said.label_host.as_ref());
        let label_host = text(LABEL_HOST_VARIABLE, label_host);
        let warning = path.as_deref().and_then(file::readable_by_others);
        Ok(Self {
            urls: urls.filter(|urls| !urls.value.is_empty()),
            format,
            label,
            label_host,
            file: path,
            warning,
        })
    }

    /// The URLs to connect to. Several are the nodes of a quorum.
    pub(crate) fn urls(&self) -> Result<&Setting<Vec<String>>, Failure> {
        self.urls.as_ref().ok_or_else(|| {
            let problem = format!(
                "no server URL: give --url, set {URL_VARIABLE}, or write url = \"...\" to {}",
                file::places(&Process)
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
                    .join(" or ")
            );
            Failure::new(Exit::Config, problem)
        })
    }

    /// The default lease. A quorum uses the longest one among its URLs.
    pub(crate) fn lease(&self) -> Duration {
        let urls = self.urls.iter().flat_map(|urls| &urls.value);
        let parsed = urls.filter_map(|url| url.parse::<BackendUrl>().ok());
        let longest = parsed.filter_map(|url| url.renewed_lease()).max();
        longest.unwrap_or(USUAL_LEASE)
    }

    /// # Errors
    ///
    /// If a URL is malformed. Hides its secrets.
    pub(crate) fn check_urls(&self) -> Result<(), Failure> {
        let mut urls = self.urls.iter().flat_map(|urls| &urls.value);
        let bad = urls.find_map(|url| url.parse::<BackendUrl>().err());
        bad.map_or(Ok(()), |error| {
            Err(Failure::new(Exit::Config, error.to_string()))
        })
    }

    /// The URLs with their secrets hidden. A malformed URL is replaced by its error, which hides
    /// them too.
    pub(crate) fn shown_urls(&self) -> Option<Setting<Vec<String>>> {
        let urls = self.urls.as_ref()?;
        let shown = urls.value.iter().map(|url| {
            let parsed = url.parse::<BackendUrl>();
            parsed.map_or_else(|error| error.to_string(), |url| url.to_string())
        });
        Some(Setting::new(shown.collect(), urls.source.clone()))
    }
}

#[cfg(test)]
mod tests;
