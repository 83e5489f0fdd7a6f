use crate::url::BackendUrl;

fn parse(text: &str) -> BackendUrl {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_url_is_shown_without_its_secrets() {
    for (text, shown) in [
        (
            "redis://u:s3cret@h:1/2?timeout=2s",
            "redis://***@h:1/2?timeout=2s",
        ),
        (
            "redis-sentinel://a,b:1/m/3?client%5Fname=x%2Cy",
            "redis-sentinel://a,b:1/m/3?client_name=x%2Cy",
        ),
        (
            "redis-sentinel://a/m?sentinel_password=s3cret&timeout=2s",
            "redis-sentinel://a/m?sentinel_password=***&timeout=2s",
        ),
        (
            "rediss-sentinel://h/m?cert=/c.pem&key=s3cret&sentinel_cert=/c.pem&sentinel_key=s3cret",
            "rediss-sentinel://h/m?cert=/c.pem&key=***&sentinel_cert=/c.pem&sentinel_key=***",
        ),
        (
            "rediss://h?ca=-----BEGIN%20KEY-----s3cret&cert=%2d----BEGIN%20X&key=s3cret",
            "rediss://h?ca=***&cert=***&key=***",
        ),
        ("unix://:s3cret@/run/s?&db=3&", "unix://***@/run/s?db=3"),
        ("memory:a:b?namespace=x:", "memory:a:b?namespace=x:"),
    ] {
        assert_eq!(parse(text).to_string(), shown);
    }
}

/// Other libraries write a password after one of these. As part of a name it would appear wherever
/// names are shown.
#[test]
fn signs_of_other_connection_strings_must_be_encoded() {
    for text in [
        "memory:a;KEY",
        "redis-sentinel://h/m;password=KEY",
        "redis-sentinel://h/m#KEY",
        "redis+unix:///run/s,password=KEY",
        "redis://h?namespace=a;password=KEY",
        "redis://h?client_name=a,KEY",
        "redis://h?label=a#KEY",
        "redis://h?namespace=a=KEY",
        "redis://h/KEY",
        "redis://h/0#KEY",
        "redis://h#KEY",
        "redis://h:6380,password=KEY",
        "redis://h?key=KEY",
    ] {
        let error = text.parse::<BackendUrl>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("KEY"), "{error}");
    }
    let name = parse("redis-sentinel://h/a%3Bb%23c?namespace=a%3Db%2Cc");
    assert_eq!(name.options.namespace, "a=b,c");
}

#[test]
fn a_secret_without_its_equals_sign_is_no_name() {
    // Such a sign is part of the secret.
    for url in [
        "redis://h?sentinel_passwordhunter2=&",
        "redis://h?&Sentinel_Passhunter2=x",
        "redis-sentinel://h:1/m?secrethunter2=",
    ] {
        let error = url.parse::<BackendUrl>().unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let error = "redis://h?sentinel_pass=hunter2".parse::<BackendUrl>();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("\"sentinel_password\""), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}
