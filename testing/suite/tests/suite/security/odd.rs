//! Passwords of special characters, and servers that echo what they receive.

use std::net::SocketAddr;

use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{CLIENTS, chain, close, connect, servers, unique, url};

/// Typical passwords: generated ones, sentences, and parts of URLs. Each starts and ends with text
/// that no message contains.
const PASSWORDS: [&str; 8] = [
    "Qz7/Qz7?Qz7#Qz7@Qz7",
    "Zq8:Zq8&pass=Zq8",
    "Xj9+Xj9 Xj9%41Xj9",
    "Qy1://Qy1@Qy1/0?timeout=Qy1",
    "Jx2\"Jx2'Jx2\\Jx2`Jx2",
    "Zw3\u{6f22}\u{5b57}Zw3\u{416}Zw3",
    "Xq4***Xq4%FFXq4",
    "Qj5;Qj5,Qj5|Qj5[Qj5]Qj5",
];

/// Checks that the text contains no four characters of the password that include a digit and two
/// letters.
pub(crate) fn hides_pieces(text: &str, password: &str) {
    let chars: Vec<_> = password.chars().collect();
    for piece in chars.windows(4) {
        let letters = piece.iter().filter(|c| c.is_alphanumeric()).count();
        let own = letters >= 3 && piece.iter().any(char::is_ascii_digit);
        let piece: String = piece.iter().collect();
        assert!(
            !own || !text.contains(&piece),
            "{piece:?} of {password:?} is shown: {text}"
        );
    }
}

fn encoded(password: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    password.bytes().map(byte).collect()
}

async fn refusal(url: &str) -> String {
    match locktopus::connect(url).await {
        Ok(_) => panic!("connected"),
        Err(error) => format!("{} {error:?} {error:#?}", chain(&error)),
    }
}

/// Logs in with each password, once correctly escaped and once as people write it, through every
/// client. `log` returns the log since the last call.
pub(crate) async fn log_in(log: impl Fn() -> String) {
    let place = servers(TopologyKind::Standalone).await;
    for (number, password) in PASSWORDS.into_iter().enumerate() {
        let user = format!("odd{number}");
        let rule = format!(">{password}");
        let words = ["ACL", "SETUSER", &user, "on", &rule, "~*", "&*", "+@all"];
        place.nodes()[0].command(&words).await.unwrap();
        for client in CLIENTS {
            let patient = format!("client={client}&connect_timeout=5s");
            let base = |login: &str| {
                url(
                    &place.url().replace("://", &format!("://{login}@")),
                    &patient,
                )
            };
            let locks = connect(&base(&format!("{user}:{}", encoded(password)))).await;
            let guard = locks.lock(unique("odd")).acquire().await.unwrap();
            hides_pieces(&format!("{locks:?} {guard:?}"), password);
            guard.release().await.unwrap();
            close(locks).await;

            let said = malformed(&place, &user, password).await;
            hides_pieces(&said, password);
            let wrong = refusal(&base(&format!("{user}:{}x", encoded(password)))).await;
            hides_pieces(&wrong, password);
            hides_pieces(&log(), password);
        }
    }
}

/// The errors of URLs that the unescaped password makes invalid.
async fn malformed(place: &Deployment, user: &str, password: &str) -> String {
    let server = place.nodes()[0].addr();
    let mut said = String::new();
    for url in [
        format!("redis://{user}:{password}@{server}/x"),
        format!("redis-sentinel://{user}:1/{password}@{server}"),
        format!("redis-sentinel://{server}/m?sentinel_pass={password}"),
        format!("redis-sentinel://{server}/m/x?sentinel_password={password}"),
        format!("redis:{user}:{password}@{server}"),
    ] {
        said.push_str(&refusal(&url).await);
    }
    said
}

/// A server that echoes every request in an error.
async fn parrot(how: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = vec![0; 4096];
                while let Ok(bytes @ 1..) = client.read(&mut heard).await {
                    let heard = String::from_utf8_lossy(&heard[..bytes]);
                    let commands = heard.matches('*').count().max(1);
                    let answer = format!("-ERR {how}: {}\r\n", heard.replace(['\r', '\n'], " "));
                    if client
                        .write_all(answer.repeat(commands).as_bytes())
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    addr
}

pub(crate) async fn are_not_repeated(log: impl Fn() -> String) {
    for how in [
        "unknown command 'HELLO', with args beginning with",
        "what is",
    ] {
        let server = parrot(how).await;
        for (client, password) in CLIENTS.into_iter().zip(["Vq6Vq6Vq6Vq6", "Kz8Kz8Kz8Kz8"]) {
            for url in [
                format!("redis://app:{password}@{server}?client={client}"),
                format!("redis-cluster://app:{password}@{server}?client={client}"),
                format!(
                    "redis-sentinel://app:{password}@{server}/m?client={client}&sentinel_password={password}"
                ),
            ] {
                let said = refusal(&url).await;
                hides_pieces(&said, password);
                // fred itself logs what it receives, at debug level; this crate cannot prevent
                // that.
                let logged = log();
                let ours = logged.lines().filter(|line| !line.starts_with("fred::"));
                hides_pieces(&ours.collect::<String>(), password);
            }
        }
    }
}
