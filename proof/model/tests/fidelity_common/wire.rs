//! A connection to a real server that returns replies in the model's types.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use locktopus_model::redis::Reply;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            out: Vec::new(),
        }
    }

    pub(crate) fn ask(&mut self, words: &[Vec<u8>]) -> Reply {
        self.put(words);
        self.flush();
        self.reply()
    }

    /// Buffers a command for [`flush`](Self::flush), which sends many at once.
    pub(crate) fn put(&mut self, words: &[Vec<u8>]) {
        let out = &mut self.out;
        out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(word);
            out.extend_from_slice(b"\r\n");
        }
    }

    pub(crate) fn flush(&mut self) {
        self.stream.get_mut().write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// Reads and discards until the connection ends.
    #[allow(dead_code, reason = "not every test has listeners")]
    pub(crate) fn drain(&mut self) {
        let mut nowhere = [0; 4096];
        while self.stream.read(&mut nowhere).is_ok_and(|count| count > 0) {}
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        let line = String::from_utf8(line).unwrap();
        let (mark, rest) = line.trim_end_matches("\r\n").split_at(1);
        let number = || rest.parse::<i64>().unwrap();
        match mark {
            "+" => Reply::Status(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Int(number()),
            "$" if number() < 0 => Reply::Nil,
            "*" if number() < 0 => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; usize::try_from(number()).unwrap() + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(bytes)
            }
            "*" => Reply::Array((0..number()).map(|_| self.reply()).collect()),
            other => panic!("unknown reply type {other:?}"),
        }
    }
}
