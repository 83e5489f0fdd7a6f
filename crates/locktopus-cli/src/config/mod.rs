//! Where the URL comes from: the command line, else the environment, else a file.

mod file;
mod source;

use std::path::PathBuf;
use std::time::Duration;

use locktopus::url::BackendUrl;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Format;

pub(crate) use source::{Setting, Source};

/// The variable that names the servers.
pub(crate) const URL_VARIABLE: &str = "LOCKTOPUS_URL";
/// The variable that names the format of answers.
pub(crate) const FORMAT_VARIABLE: &str = "LOCKTOPUS_FORMAT";

/// The variable that says what a holder is called.
pub(crate) const LABEL_VARIABLE: &str = "LOCKTOPUS_LABEL";
/// The variable that says which host is shown beside that.
pub(crate) const LABEL_HOST_VARIABLE: &str = "LOCKTOPUS_LABEL_HOST";

/// The default lease of the library.
const USUAL_LEASE: Duration = Duration::from_secs(30);

/// What is set, and where.
#[derive(Debug)]
pub(crate) struct Config {
    urls: Option<Setting<Vec<String>>>,
    pub(crate) format: Setting<Format>,
    /// What a holder is called, unless the command says.
    pub(crate) label: Option<Setting<String>>,
    /// The host that is shown beside it.
    pub(crate) label_host: Option<Setting<String>>,
    /// The file that was read, if any.
    pub(crate) file: Option<PathBuf>,
    /// What its owner should know about the file.
    pub(crate) warning: Option<String>,
}

/// What the command line says.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub(crate) urls: Vec<String>,
    pub(crate) format: Option<Format>,
    pub(crate) file: Option<PathBuf>,
}

/// What the rest of the world says: the environment, and where files may be.
pub(crate) trait Surroundings {
    fn variable(&self, name: &str) -> Option<String>;
}

/// The process's own.
#[derive(Debug)]
pub(crate) struct Process;

impl Surroundings for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}

impl Config {
    /// Reads what there is. Nothing is connected, and no URL is looked at yet.
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
                    let problem = format!("{FORMAT_VARIABLE} is {text:?}; write text or json");
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

    /// The URLs to connect to: several are the nodes of a quorum.
    pub(crate) fn urls(&self) -> Result<&Setting<Vec<String>>, Failure> {
        self.urls.as_ref().ok_or_else(|| {
            let problem = format!(
                "no URL: give --url, set {URL_VARIABLE}, or write url = \"...\" into {}",
                file::places(&Process)
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
                    .join(" or ")
            );
            Failure::new(Exit::Config, problem)
        })
    }

    /// The default lease. A quorum uses the longest one of its URLs.
    pub(crate) fn lease(&self) -> Duration {
        let urls = self.urls.iter().flat_map(|urls| &urls.value);
        let parsed = urls.filter_map(|url| url.parse::<BackendUrl>().ok());
        let longest = parsed.filter_map(|url| url.renewed_lease()).max();
        longest.unwrap_or(USUAL_LEASE)
    }

    /// The URLs without what is secret in them. A wrong one says what is wrong, without it too.
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
