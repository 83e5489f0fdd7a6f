//! TLS settings in fred's terms.

use fred::types::config::{TlsConfig, TlsConnector};
use locktopus_protocol::TlsOptions;

use crate::connection::error::ConnectError;

pub(crate) async fn config(options: &TlsOptions) -> Result<TlsConfig, ConnectError> {
    let config = locktopus_protocol::tls::client_config(options)
        .await
        .map_err(|failure| ConnectError::Tls(failure.to_string()))?;
    Ok(TlsConfig::from(TlsConnector::from(config)))
}
