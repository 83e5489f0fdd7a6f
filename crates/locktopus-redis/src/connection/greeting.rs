//! Reads the error line that a server sends when it refuses a connection: too many clients, or
//! protected mode.
//!
//! The server writes that line and closes. redis-rs waits for more answers, then reports only that
//! the connection broke.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The first line received on a connection, if it is an error.
#[derive(Debug, Clone, Default)]
pub(crate) struct Greeting(Arc<OnceLock<Option<String>>>);

impl Greeting {
    /// The error line, if the server refused the connection.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.0.get()?.as_deref()
    }

    fn note(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0.get_or_init(|| {
                let line = bytes
                    .strip_prefix(b"-")?
                    .split(|byte| *byte == b'\r')
                    .next()?;
                Some(String::from_utf8_lossy(line).into_owned())
            });
        }
    }
}

/// A stream that records its greeting.
pub(crate) struct Greeted<T> {
    stream: T,
    greeting: Greeting,
}

impl<T: AsyncRead + Unpin> Greeted<T> {
    pub(crate) fn new(stream: T, greeting: Greeting) -> Self {
        Self { stream, greeting }
    }

    /// Reads once after a failed write, because redis-rs does not.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if matches!(polled, Poll::Ready(Err(_))) {
            let mut bytes = [0; 512];
            let mut buffer = ReadBuf::new(&mut bytes);
            let _unread = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            self.greeting.note(buffer.filled());
        }
        polled
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Greeted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.greeting.note(&buffer.filled()[before..]);
        polled
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Greeted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_line_that_is_an_error_is_noted() {
        for (first, noted) in [
            (
                &b"-ERR max number of clients reached\r\n"[..],
                Some("ERR max number of clients reached"),
            ),
            (b"-DENIED Redis is running", Some("DENIED Redis is running")),
            (b"%7\r\n$6\r\nserver", None),
            (b"-\xff\r\n", Some("\u{fffd}")),
        ] {
            let greeting = Greeting::default();
            greeting.note(b"");
            greeting.note(first);
            greeting.note(b"-ERR later\r\n");
            assert_eq!(greeting.refusal(), noted);
        }
    }
}
