//! TLS settings in fred's terms.

use fred::types::config::TlsConfig;
use locktopus_protocol::TlsOptions;

use crate::connection::error::ConnectError;

pub(crate) async fn config(options: &TlsOptions) -> Result<TlsConfig, ConnectError> {
    let connector = locktopus_protocol::tls::connector(options)
        .await
        .map_err(|failure| ConnectError::Tls(failure.to_string()))?;
    Ok(TlsConfig::from(connector))
}
