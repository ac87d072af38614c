//! A page in Chromium, where that is installed.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Holds the page in frames of several sizes and tells of each what a browser makes of it.
const FRAMES: &str = r#"<!doctype html><meta charset="utf-8"><body><script>
const page = document.currentScript.ownerDocument.location.hash.slice(1);
const frames = [];
for (const width of [375, 768, 1280]) for (const theme of ["light", "dark"]) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.src = `PAGE?theme=${theme}`;
  frames.push({ frame, width, theme });
  document.body.append(frame);
}
onload = () => {
  const told = frames.map(({ frame, width, theme }) => {
    const { document: inner, performance, getComputedStyle } = frame.contentWindow;
    return {
      width, theme,
      overflow: inner.documentElement.scrollWidth - frame.contentWindow.innerWidth,
      loaded: performance.getEntriesByType("resource").map((entry) => entry.name),
      background: getComputedStyle(inner.body).backgroundColor,
      charts: [...inner.querySelectorAll("svg")].filter((svg) => svg.getBoundingClientRect().width > 0).length,
    };
  });
  document.body.replaceChildren(Object.assign(document.createElement("pre"), { textContent: `told:${JSON.stringify(told)}:told` }));
};
</script>"#;

/// Opens a page in Chromium. Returns what the page told and Chromium's output, or `None` if it is
/// not installed.
pub(crate) fn browse(page: &Path) -> Option<(Value, String)> {
    let frames = page.with_extension("frames.html");
    let name = page.file_name()?.to_str()?;
    std::fs::write(&frames, FRAMES.replace("PAGE", name)).unwrap();
    let profile = page.with_extension("profile");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .args([
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--window-size=1400,1000", "--dump-dom"])
        .arg(format!("file://{}", frames.display()))
        .output();
    let _ = std::fs::remove_dir_all(profile);
    let Ok(output) = output else {
        test_summary::skip("chromium is not installed: apt-get install chromium");
        return None;
    };
    let dom = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = dom
        .split("told:")
        .nth(1)
        .unwrap_or_else(|| panic!("no answer: {dom} {log}"));
    Some((
        serde_json::from_str(told.split(":told").next()?).unwrap(),
        log,
    ))
}
