//! A bare connection to a server, to send and see what another program would, byte for byte.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use locktopus_servers::topology::Node;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for an answer of a healthy server, on a machine that may stop for some seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Nil,
    Int(i64),
    Bytes(Vec<u8>),
    Error(String),
    List(Vec<Self>),
}

impl Value {
    pub fn text(&self) -> String {
        match self {
            Self::Int(number) => number.to_string(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Error(text) => text.clone(),
            Self::Nil => String::new(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::text).collect();
                items.join(" ")
            }
        }
    }

    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("not a number: {other:?}"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            other => panic!("not a string: {other:?}"),
        }
    }

    pub fn list(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            other => panic!("not a list: {other:?}"),
        }
    }
}

/// One connection. Speaks RESP2.
#[derive(Debug)]
pub struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    pub async fn to(node: &Node) -> Self {
        Self::at(node.admin_addr()).await
    }

    pub async fn at(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends a command and returns the answer, error replies included.
    pub async fn ask(&mut self, words: &[&[u8]]) -> Value {
        let mut out = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(word);
            out.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&out).await.unwrap();
        self.hear().await
    }

    /// As [`Raw::ask`], for words that are text.
    pub async fn say(&mut self, words: &[&str]) -> Value {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        self.ask(&words).await
    }

    /// The next message from the server, without a time limit. Not cancel safe.
    pub async fn hear_whenever(&mut self) -> Value {
        read(&mut self.stream).await
    }

    /// The next message from the server.
    pub async fn hear(&mut self) -> Value {
        timeout(ANSWER_WITHIN, read(&mut self.stream))
            .await
            .expect("the server says something in time")
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Pin<Box<dyn Future<Output = Value> + Send + '_>> {
    Box::pin(async move {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let line = line.trim_end();
        assert!(!line.is_empty(), "the server closed the connection");
        let (mark, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        match mark {
            "+" => Value::Bytes(rest.as_bytes().to_vec()),
            "-" => Value::Error(rest.to_owned()),
            ":" => Value::Int(number()),
            "$" | "*" if number() < 0 => Value::Nil,
            "$" => {
                let length = usize::try_from(number()).unwrap();
                let mut bytes = vec![0; length + 2];
                stream.read_exact(&mut bytes).await.unwrap();
                bytes.truncate(length);
                Value::Bytes(bytes)
            }
            "*" => {
                let mut items = Vec::new();
                for _ in 0..number() {
                    items.push(read(stream).await);
                }
                Value::List(items)
            }
            other => panic!("unknown reply type {other:?}"),
        }
    })
}
