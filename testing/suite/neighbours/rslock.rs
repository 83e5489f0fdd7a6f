//! Executes commands for rslock, line by line; `neighbour_libraries/worker.rs` describes the
//! protocol.

use std::time::Duration;

use rslock::{Lock, LockError, LockManager};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, stdin, stdout};

type Answer = Result<String, String>;

/// Its values are not text.
fn hex(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lease(millis: &str) -> Result<Duration, String> {
    let millis = millis.parse::<u64>();
    millis
        .map(Duration::from_millis)
        .map_err(|error| error.to_string())
}

fn taken(lock: Result<Lock, LockError>, held: &mut Option<Lock>) -> Answer {
    let lock = lock.map_err(|error| error.to_string())?;
    let value = hex(&lock.val);
    *held = Some(lock);
    Ok(value)
}

async fn does(manager: &LockManager, held: &mut Option<Lock>, line: &str) -> Answer {
    let words: Vec<_> = line.split(' ').collect();
    match words[..] {
        ["acquire", name, millis] => {
            let guard = manager.acquire(name, lease(millis)?).await;
            taken(guard.map(|guard| guard.lock), held)
        }
        ["try", name, millis] => {
            let mut once = manager.clone();
            once.set_retry(1, Duration::ZERO);
            taken(once.lock(name, lease(millis)?).await, held)
        }
        ["extend", millis] => {
            let lock = held.as_ref().ok_or("nothing was taken")?;
            let extended = manager.extend(lock, lease(millis)?).await;
            extended
                .map(|lock| hex(&lock.val))
                .map_err(|error| error.to_string())
        }
        // A release returns nothing, so first check whether there is something to release.
        ["release"] => {
            let lock = held.as_ref().ok_or("nothing was taken")?;
            let own = manager.extend(lock, Duration::from_secs(60)).await;
            manager.unlock(lock).await;
            own.map(|_| String::new())
                .map_err(|error| error.to_string())
        }
        _ => Err(format!("not known: {line}")),
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut lines = BufReader::new(stdin()).lines();
    let mut output = stdout();
    let Some(urls) = lines.next_line().await? else {
        return Ok(());
    };
    let manager = LockManager::new(urls.split(' ').map(str::to_owned).collect::<Vec<_>>());
    output.write_all(b"ok rslock\n").await?;
    output.flush().await?;
    let mut held = None;
    // Drops a pending wait when the other side is gone.
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let reading = async {
        while let Ok(Some(line)) = lines.next_line().await {
            let _ = tell.send(line);
        }
    };
    let doing = async {
        while let Some(line) = told.recv().await {
            let answer = match does(&manager, &mut held, &line).await {
                Ok(value) => format!("ok {value}\n"),
                Err(why) => format!("no {why}\n"),
            };
            output.write_all(answer.as_bytes()).await?;
            output.flush().await?;
        }
        Ok(())
    };
    tokio::select! {
        () = reading => Ok(()),
        done = doing => done,
    }
}
