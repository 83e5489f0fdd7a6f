//! The page of examples to copy. Every block is checked, and every command in it runs on a server.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use tokio::process::Command;
use yaml_rust2::{Yaml, YamlLoader};

use crate::machine::Machine;
use crate::usual::{TestBed, ended, eventually, finished, signal, words};

const PAGE: &str = include_str!("../../../../docs/book/in-production.md");

/// Every block, by the file that its first line names.
const FILES: &str = "/etc/locktopus.env /etc/systemd/system/report.service \
    /etc/systemd/system/report.timer ~report/.config/locktopus/config.toml /etc/cron.d/report \
    secret.yaml cronjob.yaml leader.yaml sidecar.yaml leads.sh .github/workflows/deploy.yml";

/// Every key of the units and of the YAML. Their readers may ignore a key that is misspelled, so
/// look a new one up before you add it.
const KEYS: &str = "AccuracySec After Description EnvironmentFile ExecStart KillMode \
    LOCKTOPUS_URL OnCalendar Type User WantedBy Wants action apiVersion app args backoffLimit \
    branches command concurrencyPolicy containers deploy emptyDir env image initContainers \
    jobTemplate jobs key kind labels matchLabels metadata mountPath name on onExitCodes operator \
    podFailurePolicy push readOnly replicas restartPolicy rules run runs-on schedule secretKeyRef \
    selector spec steps stringData template timeZone url uses valueFrom values volumeMounts volumes";

const NOWHERE: &str = "redis://127.0.0.1:1?connect_timeout=100ms";

/// The language of a block, the file that its first line names, and its text.
fn blocks() -> impl Iterator<Item = [&'static str; 3]> {
    PAGE.split("\n```").skip(1).step_by(2).map(|block| {
        let (language, text) = block.split_once('\n').unwrap();
        let file = text.lines().next().unwrap().strip_prefix("# ");
        [language, file.expect("the name of a file"), text]
    })
}

fn block(file: &str) -> &'static str {
    let found = blocks().find(|[_, name, _]| *name == file);
    found.unwrap_or_else(|| panic!("no {file} on the page"))[2]
}

fn yaml(file: &str) -> Yaml {
    YamlLoader::load_from_str(block(file)).unwrap().remove(0)
}

/// The pod of a Deployment, which selects its own pods.
fn pod(file: &str) -> Yaml {
    let spec = &yaml(file)["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    assert_eq!(&spec["selector"]["matchLabels"], labels);
    spec["template"]["spec"].clone()
}

fn text(value: &Yaml) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value:?}"))
}

fn list(value: &Yaml) -> &[Yaml] {
    value.as_vec().map_or(&[], Vec::as_slice)
}

/// A container as a process: its command, and the variables that it takes from the secret.
fn container(machine: &Machine, container: &Yaml) -> Command {
    let secret = yaml("secret.yaml");
    let variables = list(&container["env"]).iter().map(|variable| {
        let from = &variable["valueFrom"]["secretKeyRef"];
        assert_eq!(from["name"], secret["metadata"]["name"]);
        let value = &secret["stringData"][text(&from["key"])];
        (text(&variable["name"]), text(value))
    });
    let variables: Vec<_> = variables.collect();
    let command = list(&container["command"]).iter();
    let command: Vec<_> = command.chain(list(&container["args"])).map(text).collect();
    machine.command(&variables, &command)
}

/// The value of a key in a unit or in a file of variables.
fn value<'a>(file: &'a str, key: &str) -> &'a str {
    let mut values = file.lines().filter_map(|line| line.strip_prefix(key));
    values.find_map(|value| value.strip_prefix('=')).unwrap()
}

#[test]
fn every_block_and_key_is_known() {
    fn keys(value: &Yaml, found: &mut BTreeSet<String>) {
        for (key, value) in value.as_hash().into_iter().flatten() {
            found.insert(text(key).to_owned());
            keys(value, found);
        }
        list(value).iter().for_each(|value| keys(value, found));
    }
    let mut found = BTreeSet::new();
    for [language, file, block] in blocks() {
        if language == "yaml" {
            keys(&yaml(file), &mut found);
        } else if language == "ini" {
            let lines = block.lines().filter(|line| !line.starts_with('#'));
            let pairs = lines.filter_map(|line| line.split_once('='));
            found.extend(pairs.map(|(key, _)| key.to_owned()));
        }
    }
    let known = KEYS.split_whitespace().map(str::to_owned);
    assert_eq!(found, known.collect());
    let files = blocks().map(|[_, file, _]| file);
    assert!(files.eq(FILES.split_whitespace()), "not {FILES}");
}

#[tokio::test]
async fn systemd_runs_the_job_once() {
    let machine = Machine::new().await;
    let unit = |sort: &str| block(&format!("/etc/systemd/system/report.{sort}"));
    let service = unit("service");
    let url = value(block(value(service, "EnvironmentFile")), "LOCKTOPUS_URL");
    let line = words(value(service, "ExecStart"));
    let start = || machine.command(&[("LOCKTOPUS_URL", url)], &line);
    machine.once("make-report report", start).await;

    let found = format!("ExecStart={}/bin/", machine.0.room().display());
    machine.write("report.service", &service.replace("ExecStart=", &found));
    machine.write("report.timer", unit("timer"));
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "./report.service", "./report.timer"]);
    match verify.current_dir(machine.0.room()).output().await {
        Err(error) if error.kind() == ErrorKind::NotFound => eprintln!("no systemd-analyze here"),
        verified => {
            let verified = verified.unwrap();
            let said = String::from_utf8_lossy(&verified.stderr);
            assert!(verified.status.success(), "{said}");
            // It only warns of an unknown key.
            assert!(!said.contains("report."), "{said}");
        }
    }
}

#[tokio::test]
async fn cron_runs_each_job_once_and_sends_no_mail() {
    let machine = Machine::new().await;
    let config = machine.here(block("~report/.config/locktopus/config.toml"));
    machine.write("config", &config);
    let script =
        "mkdir -p .config/locktopus && install -m 600 config .config/locktopus/config.toml";
    ended(machine.command(&[], &["sh", "-c", script]))
        .await
        .ok();

    let home = machine.0.room().to_str().unwrap();
    let lines = block("/etc/cron.d/report").lines().skip(2);
    let mut jobs = 0;
    for (line, program) in lines.zip(["make-report report", "import-prices prices"]) {
        // Five fields and the user. `%` would end the command.
        let words: Vec<&str> = line.split_whitespace().skip(6).collect();
        let job = words.join(" ");
        assert!(!job.contains('%'), "{line}");
        let start = || machine.command(&[("HOME", home)], &["sh", "-c", &job]);
        for ran in machine.once(program, start).await {
            assert_eq!(ran.out + &ran.err, "", "{line}");
        }
        jobs += 1;
    }
    assert_eq!(jobs, 2);
}

#[tokio::test]
async fn a_cron_job_runs_once_and_is_retried_only_without_a_server() {
    let machine = Machine::new().await;
    let job = &yaml("cronjob.yaml")["spec"]["jobTemplate"]["spec"];
    let report = &job["template"]["spec"]["containers"][0];
    let start = || container(&machine, report);
    machine.once("make-report report", start).await;

    let rule = &job["podFailurePolicy"]["rules"][0];
    let codes = &rule["onExitCodes"];
    // The policy needs pods that are never restarted.
    let policy = [&job["template"]["spec"]["restartPolicy"], &rule["action"]];
    assert_eq!(policy.map(text), ["Never", "FailJob"]);
    assert_eq!(text(&codes["operator"]), "NotIn");
    let mut away = start();
    away.env("LOCKTOPUS_URL", NOWHERE);
    let code = ended(away).await.code.into();
    assert_eq!(list(&codes["values"]), [Yaml::Integer(code)]);
    machine.0.does("-q break report --reason test").await;
    machine.write("fail", "");
    assert_eq!(ended(start()).await.code, 3);
    // A retry would hide the failure, as the page says.
    ended(start()).await.ok();
}

#[tokio::test]
async fn one_pod_leads_and_the_next_takes_over() {
    let machine = Machine::new().await;
    let pod = pod("leader.yaml");
    let start = || container(&machine, &pod["containers"][0]).spawn().unwrap();
    machine.write("stay", "");
    let first = start();
    machine.started("billing-worker billing\n").await;
    let second = start();
    let seen = machine.waiter("billing").await;
    assert_eq!(seen.matches("billing-worker on ").count(), 2, "{seen}");
    signal("TERM", first.id().unwrap()).await;
    assert_eq!(finished(first).await.code, 143);
    machine.started(&"billing-worker billing\n".repeat(2)).await;
    std::fs::remove_file(machine.0.room().join("stay")).unwrap();
    finished(second).await.ok();
}

#[tokio::test]
async fn a_sidecar_says_who_leads() {
    let machine = Machine::new().await;
    let pod = pod("sidecar.yaml");
    let sidecar = &pod["initContainers"][0];
    assert_eq!(text(&sidecar["restartPolicy"]), "Always");
    for container in [sidecar, &pod["containers"][0]] {
        let mount = &container["volumeMounts"][0];
        assert_eq!(mount["name"], pod["volumes"][0]["name"]);
        assert_eq!(text(&mount["mountPath"]), "/leader");
    }
    let script = format!("{}\nleads", block("leads.sh"));
    let leads = async |expected: bool| {
        eventually("the sidecar", async || {
            let ran = ended(machine.command(&[], &["sh", "-c", &script])).await;
            ((ran.code == 0) == expected).then_some(())
        })
        .await;
        let token = std::fs::read_to_string(machine.0.room().join("leader/token"));
        token.map_or(0, |token| token.trim().parse::<u64>().unwrap())
    };
    assert_eq!(leads(false).await, 0);
    let leader = container(&machine, sidecar).spawn().unwrap();
    let first = leads(true).await;
    // A leader that loses the lock campaigns again, under a greater token.
    machine.0.does("-q break shop --reason test").await;
    eventually("another token", async || {
        (leads(true).await > first).then_some(())
    })
    .await;
    signal("TERM", leader.id().unwrap()).await;
    assert_eq!(finished(leader).await.code, 143);
    leads(false).await;
}

#[tokio::test]
async fn a_deployment_waits_its_turn_and_can_be_cancelled() {
    let machine = Machine::new().await;
    let steps = &yaml(".github/workflows/deploy.yml")["jobs"]["deploy"]["steps"];
    let step = list(steps).last().unwrap();
    let secret = text(&step["env"]["LOCKTOPUS_URL"]);
    assert_eq!(secret, "${{ secrets.LOCKTOPUS_URL }}");
    let url = value(block("/etc/locktopus.env"), "LOCKTOPUS_URL");
    // GitHub writes the lines to a file, which it gives to a shell with `-e`.
    machine.write("step", text(&step["run"]));
    let start = |id| {
        let variables = [("LOCKTOPUS_URL", url), ("GITHUB_RUN_ID", id)];
        let mut command = machine.command(&variables, &["sh", "-e", "step"]);
        command.spawn().unwrap()
    };
    machine.write("stay", "");
    let first = start("41");
    machine.started("deploy.sh deploy\n").await;
    let second = start("42");
    let seen = machine.waiter("deploy").await;
    assert!(seen.contains("run 41"), "{seen}");
    for cancelled in [second, first] {
        signal("INT", cancelled.id().unwrap()).await;
        assert_eq!(finished(cancelled).await.code, 130);
    }
    machine.0.free("deploy").await;
    assert_eq!(machine.ran(), "deploy.sh deploy\n");
}

/// It fails with 69 where no server is, and with 2 if it cannot be understood.
#[tokio::test]
async fn the_job_without_a_scheduler_is_understood() {
    let machine = Machine::new().await;
    let found = PAGE
        .split('`')
        .find(|code| code.starts_with("locktopus job"));
    let variables = [("LOCKTOPUS_URL", NOWHERE)];
    let job = machine.command(&variables, &["sh", "-c", found.unwrap()]);
    assert_eq!(ended(job).await.code, 69);
}

#[tokio::test]
async fn the_exit_codes_are_those_of_the_command() {
    let help = TestBed::without_servers().does("--help").await.out;
    let cells = PAGE.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = cells.filter_map(|line| line.split(" | ").next());
    let codes = cells.flat_map(|cell| cell.split(", "));
    let codes: Vec<u8> = codes.filter_map(|code| code.parse().ok()).collect();
    assert_eq!(codes.len(), 8, "{codes:?}");
    for code in codes {
        assert!(help.contains(&format!("\n{code:>5}  ")), "{code}: {help}");
    }
}
