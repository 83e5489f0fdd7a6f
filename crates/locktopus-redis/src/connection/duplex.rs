//! The transport of a connection: a plain TCP stream, or TLS over one.

use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

pub(crate) type Stream = Box<dyn Duplex>;
