//! `doctor`: finds what silently loses locks on these servers, and says how to fix it.

mod answers;
mod rights;

use std::cmp::Reverse;

use clap::Args;
use locktopus::{Diagnosis, SafetyMode, Severity};
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{close, connect_to};
use crate::output::{Style, coloured};
use answers::Answers;
use rights::Rights;

/// Check these servers for what silently loses locks
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Only print the ACL SETUSER line for the user of this URL
    #[arg(long)]
    acl: bool,

    /// With --acl: print what each permission is for, instead of the line
    #[arg(long, requires = "acl")]
    explain: bool,
}

#[derive(Serialize)]
struct Report {
    /// The backend's own description.
    backend: String,
    safety: String,
    namespace: String,
    nodes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<Answers>,
    findings: Vec<ReportedFinding>,
}

#[derive(Serialize)]
struct ReportedFinding {
    severity: &'static str,
    check: String,
    message: String,
}

impl ReportedFinding {
    fn new(severity: Severity, check: &str, message: &str) -> Self {
        Self {
            severity: match severity {
                Severity::Note => "note",
                Severity::Warning => "warning",
                Severity::Danger => "danger",
            },
            check: check.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// 1 if locks can be lost silently here, or none can be taken.
pub(crate) async fn run(args: &DoctorArgs, context: &Context) -> Result<u8, Failure> {
    // `diagnose` below runs the checks. `checks=refuse` must not keep `doctor` from listing all.
    let urls = &context.config.urls()?.value;
    if args.acl {
        let rights = Rights::of(urls)?;
        if args.explain {
            context.out.answer(&rights.page(), String::clone)?;
        } else {
            context.out.say(&rights.advice());
            context.out.answer(&rights.line(), String::clone)?;
        }
        return Ok(Exit::Ok.code());
    }
    let unchecked: Vec<_> = urls.iter().map(|url| unchecked(url)).collect();
    let locks = connect_to(&unchecked).await?;
    let namespace = locks.namespace().to_owned();
    let examined = async {
        let diagnosis = locks.diagnose().await?;
        Ok::<_, Failure>((diagnosis, Answers::measure(&locks).await))
    };
    let examined = examined.await;
    let info = locks.backend();
    // A quorum works without some of its nodes, as long as a majority grants.
    let unusable = match info.safety {
        SafetyMode::Quorum => "majority",
        _ => "probe",
    };
    let (backend, safety) = (info.description.clone(), info.safety.to_string());
    close(locks).await;
    let (mut diagnosis, answers) = examined?;
    // Connecting only warns about this, because a full server may get room again.
    for finding in &mut diagnosis.findings {
        if finding.check == unusable {
            finding.severity = Severity::Danger;
        }
    }
    diagnosis
        .findings
        .sort_by_key(|finding| Reverse(finding.severity));
    let mut findings = findings(&diagnosis);
    let answers = match answers {
        Ok(answers) => {
            findings.extend(answers.finding());
            Some(answers)
        }
        Err(Failure { message, .. }) => {
            let message = format!("response times could not be measured: {message}");
            findings.push(ReportedFinding::new(Severity::Note, "unchecked", &message));
            None
        }
    };
    let danger = diagnosis.worst() == Some(Severity::Danger);
    let report = Report {
        backend,
        safety,
        namespace,
        nodes: diagnosis.nodes,
        answers,
        findings,
    };
    context.out.answer(&report, text)?;
    Ok(if danger { Exit::Failed } else { Exit::Ok }.code())
}

fn findings(diagnosis: &Diagnosis) -> Vec<ReportedFinding> {
    let findings = diagnosis.findings.iter();
    findings
        .map(|finding| ReportedFinding::new(finding.severity, finding.check, &finding.message))
        .collect()
}

/// The URL with `checks=off` instead of its own `checks`.
fn unchecked(url: &str) -> String {
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let kept = options
        .split('&')
        .filter(|option| !option.is_empty() && option.split('=').next() != Some("checks"));
    let options: Vec<_> = kept.chain(["checks=off"]).collect();
    format!("{place}?{}", options.join("&"))
}

fn text(report: &Report) -> String {
    let mut lines = vec![format!("backend    {}", report.backend)];
    lines.push(format!("safety     {}", report.safety));
    if !report.namespace.is_empty() {
        lines.push(format!("namespace  {}", report.namespace));
    }
    for node in &report.nodes {
        lines.push(format!("node       {node}"));
    }
    if let Some(answers) = &report.answers {
        lines.push(format!("answers    {answers}"));
    }
    lines.push(String::new());
    for finding in &report.findings {
        let style = match finding.severity {
            "danger" => Style::Bad,
            "warning" => Style::Doubtful,
            _ => Style::Faint,
        };
        let severity = coloured(style, finding.severity);
        lines.push(format!(
            "{severity} [{}] {}",
            finding.check, finding.message
        ));
    }
    if report
        .findings
        .iter()
        .any(|finding| finding.check == "permission")
    {
        lines.push("to permit what locks need: locktopus doctor --acl".to_owned());
    }
    if report.findings.is_empty() {
        lines.push(coloured(Style::Good, "found nothing that loses locks"));
    }
    lines.join("\n")
}
