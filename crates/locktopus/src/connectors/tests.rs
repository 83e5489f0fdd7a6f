use std::fmt::Write as _;
use std::sync::Mutex;

use locktopus_core::{BackendErrorKind, Diagnostics, LockBackend};
use proptest::prelude::*;

use super::*;

/// Connects to nothing, and records the URLs it is given.
#[derive(Clone, Default)]
struct Recorder {
    schemes: &'static [&'static str],
    seen: Arc<Mutex<Vec<String>>>,
    fails_with: Option<fn(&CustomUrl) -> ConnectorError>,
}

impl Recorder {
    fn of(schemes: &'static [&'static str]) -> Self {
        Self {
            schemes,
            ..Self::default()
        }
    }

    fn failing(with: fn(&CustomUrl) -> ConnectorError) -> Connectors {
        let failing = Self {
            fails_with: Some(with),
            ..Self::of(&["etcd"])
        };
        Connectors::new().with(failing).unwrap()
    }
}

#[async_trait]
impl Connector for Recorder {
    fn schemes(&self) -> &[&str] {
        self.schemes
    }

    async fn connect(&self, url: &CustomUrl) -> Result<DynBackend, ConnectorError> {
        if let Some(error) = self.fails_with {
            return Err(error(url));
        }
        self.seen.lock().unwrap().push(url.expose().to_owned());
        let inner = connect::connect_backend("memory:").await?;
        Ok(Arc::new(Undiagnosed { inner }))
    }
}

/// A wrapped backend, to tell it from one that the facade opened.
#[derive(Debug)]
struct Undiagnosed {
    inner: DynBackend,
}

#[async_trait]
impl locktopus_core::Layer for Undiagnosed {
    fn inner(&self) -> &dyn LockBackend {
        &*self.inner
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        self.inner.diagnosis().map(|_| self as _)
    }
}

#[async_trait]
impl Diagnostics for Undiagnosed {
    async fn diagnose(
        &self,
        _deadline: tokio::time::Instant,
    ) -> Result<locktopus_core::Diagnosis, locktopus_core::BackendError> {
        Err(locktopus_core::BackendError::new(
            "undiagnosed",
            BackendErrorKind::Unavailable,
            locktopus_core::Executed::No,
            "nobody looks",
        ))
    }
}

fn shown(error: &dyn Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut next = error.source();
    while let Some(cause) = next {
        let _ = write!(text, " {cause} {cause:?} {cause:#?}");
        next = cause.source();
    }
    text
}

#[tokio::test]
async fn a_connector_is_given_the_url_without_the_options_of_the_facade() {
    let recorder = Recorder::of(&["etcd", "etcd+tls"]);
    let connectors = Connectors::new().with(recorder.clone()).unwrap();
    for (url, given) in [
        ("etcd://h?checks=off", "etcd://h"),
        ("etcd+tls:/x?checks=off", "etcd+tls:/x"),
        (
            "etcd://a:1,b:2/p?x=1&namespace=shop:&y=%41&checks=off",
            "etcd://a:1,b:2/p?x=1&y=%41",
        ),
    ] {
        connectors.connect_backend(url).await.unwrap();
        assert_eq!(recorder.seen.lock().unwrap().pop().unwrap(), given);
    }
}

#[tokio::test]
async fn the_options_of_the_facade_hold_for_every_scheme() {
    let connectors = Connectors::new().with(Recorder::of(&["etcd"])).unwrap();
    let locks = connectors
        .connect("etcd://h?namespace=shop:&checks=off&renewed_lease=7s")
        .await
        .unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert_eq!(guard.name().as_str(), "shop:a");
    assert!(guard.remaining() <= std::time::Duration::from_secs(7));
    let error = connectors.connect("etcd://h").await.unwrap_err();
    assert!(shown(&error).contains("nobody looks"), "{error:?}");
    let error = connectors.connect("etcd://h?checks=no").await.unwrap_err();
    assert!(error.to_string().contains("off, warn or refuse"), "{error}");
}

#[tokio::test]
async fn an_unknown_scheme_names_those_that_are_known() {
    let connectors = Connectors::new()
        .with(Recorder::of(&["etcd", "postgres"]))
        .unwrap();
    for url in ["mysql://u:s3cret@h", "mysql:s3cret", "etcds://u:s3cret@h"] {
        let error = connectors.connect(url).await.unwrap_err();
        let text = shown(&error);
        for known in ["memory", "redis", "redis-cluster", "etcd", "postgres"] {
            assert!(error.to_string().contains(known), "{error}");
        }
        assert!(!text.contains("s3c"), "{text}");
    }
    let error = connect::connect("etcd://h").await.unwrap_err();
    assert!(!error.to_string().contains("postgres"), "{error}");
}

#[test]
fn a_scheme_that_is_taken_is_refused() {
    let refused = |connectors: Connectors, scheme: &'static str| {
        let schemes: &'static [&'static str] = Box::leak(Box::new([scheme]));
        connectors
            .with(Recorder::of(schemes))
            .unwrap_err()
            .to_string()
    };
    for own in ["memory"].iter().chain(&SCHEMES) {
        let error = refused(Connectors::new(), own);
        assert!(
            error.contains(own) && error.contains("locktopus itself"),
            "{error}"
        );
        let known = match format!("{own}://h").parse::<BackendUrl>() {
            Ok(_) => true,
            Err(error) => !error.problem.contains("is unknown"),
        };
        assert!(*own == "memory" || known, "{own} is reserved for nothing");
    }
    let etcd = Connectors::new().with(Recorder::of(&["etcd"])).unwrap();
    assert!(refused(etcd, "etcd").contains("two connectors"));
    for bad in ["", "Etcd", "1e", "e:", "e/d", "é"] {
        assert!(
            refused(Connectors::new(), bad).contains("is not a letter"),
            "{bad}"
        );
    }
    let none = Connectors::new().with(Recorder::of(&[])).unwrap_err();
    assert!(none.to_string().contains("offers none"));
    let connectors = Connectors::new().with(Recorder::of(&["etcd"])).unwrap();
    assert_eq!(format!("{connectors:?}"), "Connectors [\"etcd\"]");
}

#[tokio::test]
async fn what_a_connector_says_loses_the_secrets_and_keeps_the_rest() {
    let url = "etcd://app:p%22Xss@h:1/db?token=QZQZ&mode=fast";
    for connectors in [
        Recorder::failing(|url| format!("no route for {}", url.expose()).into()),
        Recorder::failing(|url| std::io::Error::other(url.expose().to_owned()).into()),
        Recorder::failing(|_| "no route for app, p\"Xss, QZQZ".into()),
        Recorder::failing(|url| {
            url.error("no route", &url.expose().replace("%22", "\""))
                .into()
        }),
    ] {
        let error = connectors.connect(url).await.unwrap_err();
        let text = shown(&error);
        for secret in ["Xss", "QZQZ"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("etcd://***@h:1/db"), "{text}");
        assert!(text.contains("***"), "{text}");
    }
    let clean = Recorder::failing(|_| std::io::Error::other("no route").into());
    let error = clean.connect(url).await.unwrap_err();
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>());
    assert!(
        source.is_some(),
        "an error without secrets is passed on as it is"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Like the property of this crate's own URLs; `url::properties` makes the passwords.
    #[test]
    fn no_custom_url_shows_a_piece_of_a_password(
        (text, secrets) in crate::url::properties::url_with_password(),
    ) {
        let text = text.replacen("redis", "etcd", 1);
        let Some(rest) = text.strip_prefix("etcd:") else { return Ok(()) };
        let shown = match CustomUrl::parse(&format!("etcd:{rest}"), "etcd") {
            Ok(url) => {
                let leaky: ConnectorError = url.expose().into();
                let leaked = url.without_secrets(leaky);
                format!("{url} {url:?} {} {leaked} {leaked:?}", url.error(url.expose(), url.expose()))
            }
            Err(error) => format!("{error} {error:?}"),
        };
        for piece in secrets.iter().flat_map(|secret| crate::url::properties::pieces(secret)) {
            prop_assert!(!shown.contains(&piece), "{text:?}: {piece:?} is shown in {shown}");
        }
    }
}
