//! Writes to PostgreSQL that reject a holder that is too late: the statement checks the token.

use std::time::Duration;

use locktopus::FencingToken;
use tokio_postgres::{Client, NoTls};

const SCHEMA: &str = "create table if not exists balance (
    id text primary key, amount bigint not null, fence bigint not null)";
/// Writes unless a holder with a greater token has written. A token is below 2^53, so it fits.
const WRITE: &str = "insert into balance (id, amount, fence) values ($1, $2, $3)
    on conflict (id) do update set amount = excluded.amount, fence = excluded.fence
    where balance.fence <= excluded.fence";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKTOPUS_URL").unwrap_or_else(|_| "memory:".to_owned());
    let database = std::env::var("DATABASE_URL")
        .map_err(|_| "DATABASE_URL is not set, say to host=127.0.0.1 user=postgres")?;
    let locks = locktopus::connect(&url).await?;
    let (client, connection) = tokio_postgres::connect(&database, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(SCHEMA).await?;
    // A holder that stops under its lock (a pause of its machine, say), while its lease ends.
    let lock = locks
        .lock("balance:7")
        .fixed_lease(Duration::from_millis(200));
    let late = lock.clone().acquire().await?;
    let late_token = late.token().ok_or("a lock has a token")?;
    tokio::time::sleep(Duration::from_millis(250)).await;
    let next = lock.acquire().await?;
    let token = next.token().ok_or("a lock has a token")?;
    println!(
        "the next holder wrote: {}",
        write(&client, 50, token).await?
    );
    // It continues where it stopped, without checking its lease.
    println!(
        "the late holder wrote: {}",
        write(&client, 100, late_token).await?
    );
    let row = client.query_one("select amount from balance", &[]).await?;
    println!("the balance is {}", row.get::<_, i64>(0));

    next.release().await?;
    let _ = locks.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// True if the row was written, false if a later holder has been here.
async fn write(
    client: &Client,
    amount: i64,
    token: FencingToken,
) -> Result<bool, Box<dyn std::error::Error>> {
    let fence = i64::try_from(token.get())?;
    Ok(client.execute(WRITE, &[&"seven", &amount, &fence]).await? == 1)
}
