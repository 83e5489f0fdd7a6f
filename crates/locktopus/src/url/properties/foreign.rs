//! Connection strings of other libraries and services: no message shows their keys.

use proptest::prelude::*;
use proptest::sample::select;

use super::{config, hides};

/// A key in the form that other services use: base64, or a word.
fn key() -> impl Strategy<Value = String> {
    let letter = select(&['Q', 'X', 'Z', 'J', 'Q', 'X', 'Z', 'J', '0', 'a', '+', '/'][..]);
    let letters = prop::collection::vec(letter, 8..44);
    let padding = select(&["", "", "=", "=="][..]);
    (letters, padding).prop_map(|(letters, end)| letters.into_iter().collect::<String>() + end)
}

/// Connection strings of other libraries and services, with `KEY` for the password.
const FOREIGN: [&str; 33] = [
    // StackExchange.Redis, in the form that Azure shows
    "h:6380,password=KEY,ssl=True,abortConnect=False",
    "h1:6379,h2:6379,allowAdmin=true,user=u,password=KEY",
    "password=KEY,h:6380",
    "h:6380, password = KEY , ssl=True",
    "h,name=app,password=KEY,serviceName=mymaster",
    // Azure
    "Endpoint=https://h.service.signalr.net;AccessKey=KEY;Version=1.0;",
    "Endpoint=sb://h/;SharedAccessKeyName=Root;SharedAccessKey=KEY",
    "AccountEndpoint=https://h:443/;AccountKey=KEY;",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=KEY;EndpointSuffix=core.windows.net",
    // JDBC and ADO
    "jdbc:redis://h:6379/0?user=u&password=KEY",
    "jdbc:redis:cluster://h:6379,h2:6379/0?password=KEY",
    "jdbc:postgresql://h/db?user=u&password=KEY&ssl=true",
    "jdbc:sqlserver://h:1433;databaseName=d;user=u;password=KEY;",
    "jdbc:oracle:thin:u/KEY@//h:1521/s",
    "Server=h;Port=6379;Uid=u;Pwd=KEY;",
    // go-redis, redigo, rueidis
    "redis://u:KEY@h:6379/0?dial_timeout=3s&protocol=3",
    "redis://h:6379?password=KEY&addr=h2:6379",
    "rediss://h:6379/0?username=u&password=KEY&skip_verify=true",
    "redis-sentinel://h:26379?master_name=mymaster&password=KEY",
    // Jedis, Lettuce, Redisson
    "redis://:KEY@h:6379/2",
    "redis://h:6379/0#KEY",
    "redis-sentinel://h:26379,h2:26379/0#mymaster;password=KEY",
    "redis-sentinel://h:26379/mymaster;password=KEY",
    "redis-socket:///run/s?password=KEY",
    "redis-cluster://h:6379,password=KEY",
    // Python, PHP, Node, Ruby, Elixir
    "host=h port=6379 password=KEY db=0",
    "tcp://h:6379?auth=KEY",
    "tls://h:6379?auth[]=u&auth[]=KEY",
    "sentinel://:KEY@h:26379;sentinel://:KEY@h2:26379",
    "redis://h:6379/0?password=KEY&family=4",
    "redis://h:6379,h2:6379;password=KEY",
    "{\"host\":\"h\",\"password\":\"KEY\"}",
    "redis://h?KEY",
];

/// One of these strings, as it is or pasted after the beginning of one of our URLs.
fn foreign() -> impl Strategy<Value = (String, Vec<String>)> {
    let start = select(
        &[
            "",
            "",
            "redis://",
            "rediss://",
            "redis-sentinel://",
            "rediss-cluster://",
            "valkey://",
            "redis+unix:///",
            "unix://",
            "redis:",
            "memory:",
            "REDIS://",
            "redis://h/",
            "redis://h:6379,",
            "redis://u:p@h:6379/0,",
            "redis-sentinel://h/mymaster;",
            "redis-sentinel://h/mymaster/0;",
            "redis-cluster://h;",
            "redis://h?",
            "redis://h?namespace=app;",
            "redis://h?client_name=x,",
            "redis://h?timeout=5s,",
            "redis://h?timeout=1s&",
        ][..],
    );
    (start, select(&FOREIGN[..]), key()).prop_map(|(start, text, key)| {
        let text = format!("{start}{}", text.replace("KEY", &key));
        (text, vec![key])
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_message_shows_a_key_of_a_foreign_connection_string((text, keys) in foreign()) {
        hides(&text, &keys)?;
    }
}
