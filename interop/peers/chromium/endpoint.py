"""Client of the QUIC interop runner on Chromium without a window: a page of its own fetches the files."""

import base64
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

CASES = {
    "handshake", "transfer", "http3", "webtransport", "retry", "multiconnect", "connectionmigration",
    "postquantum", "postquantum-retry",
}
# It takes no list: what it offers is the server's to choose from, with a share of the first two.
GROUPS = {"", "X25519MLKEM768", "X25519MLKEM768,secp256r1"}

# A page of this machine, so that nothing but the files comes from the server.
PAGE = """<!doctype html><meta charset="utf-8"><title>downloads</title><body><script>
let session;
async function ask(url) {
  if (!BY_SESSION) return fetch(url);
  const { host, pathname } = new URL(url);
  session ??= new WebTransport(`https://${host}/webtransport`);
  await session.ready;
  const { readable, writable } = await session.createBidirectionalStream();
  const writer = writable.getWriter();
  await writer.write(new TextEncoder().encode(`GET ${pathname}\\r\\n`));
  await writer.close();
  return new Response(readable);
}
async function get([name, url]) {
  const bytes = new Uint8Array(await (await ask(url)).arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  const file = document.createElement("pre");
  file.id = name;
  file.textContent = btoa(text);
  document.body.append(file);
}
async function all() {
  for (const file of FILES) {
    const got = get(file);
    if (ONE_BY_ONE || BY_SESSION) await got;
  }
}
// Virtual time does not wait for sessions: an image that is not there yet keeps the page from being complete.
if (BY_SESSION) {
  document.body.append(Object.assign(new Image(), { src: HOLD + "/wait" }));
  all().finally(() => fetch(HOLD + "/done"));
} else all();
</script>"""


class Hold(http.server.BaseHTTPRequestHandler):
    """Answers once the page has done its work."""

    done = threading.Event()

    def do_GET(self):
        if self.path == "/done":
            self.done.set()
        self.done.wait(50)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def hold():
    """Starts a server on this host alone, and returns its URL."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hold)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def unsupported(reason):
    print(f"chromium {reason}", file=sys.stderr)
    sys.exit(127)


def public_key_hash(certificate):
    """Returns the hash by which Chromium is told to trust the server."""
    key = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"],
                         check=True, capture_output=True).stdout
    der = base64.b64decode(re.sub(rb"-----.*?-----|\s", b"", key))
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def main():
    if sys.argv[1:] == ["--version"]:
        version = subprocess.run(["chromium", "--version", "--no-sandbox"], check=True,
                                 capture_output=True, text=True).stdout
        print(version.split()[1])
        return
    case, groups = os.environ["TESTCASE"], os.environ.get("GROUPS", "")
    if os.environ["ROLE"] != "client":
        unsupported("is no server")
    if case not in CASES:
        unsupported(f"cannot be made to do {case}")
    if groups not in GROUPS:
        unsupported("takes no list of groups")
    one_by_one = case == "multiconnect"
    files, hosts = [], set()
    for number, url in enumerate(os.environ["REQUESTS"].split()):
        parts = urlsplit(url)
        # It keeps a connection for each name: another name is another connection.
        host = f"{number}.{parts.hostname}.test:{parts.port}" if one_by_one else parts.netloc
        hosts.add(host)
        files.append((Path(parts.path).name, f"https://{host}{parts.path}"))
    page = PAGE.replace("FILES", json.dumps(files)).replace("ONE_BY_ONE", json.dumps(one_by_one))
    by_session = case == "webtransport"
    page = page.replace("BY_SESSION", json.dumps(by_session))
    page = page.replace("HOLD", json.dumps(hold() if by_session else ""))
    key = public_key_hash(Path(os.environ["CERTS"]) / "cert.pem")
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "page.html").write_text(page)
        dom = subprocess.run([
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
            f"--user-data-dir={own}/profile", f"--origin-to-force-quic-on={','.join(sorted(hosts))}",
            f"--host-resolver-rules=MAP *.test {parts.hostname}", "--disable-web-security",
            f"--ignore-certificate-errors-spki-list={key}",
            f"--ssl-key-log-file={os.environ['SSLKEYLOGFILE']}",
            *([] if by_session else ["--virtual-time-budget=280000"]), "--dump-dom",
            f"file://{own}/page.html",
        ], check=True, stdout=subprocess.PIPE, text=True).stdout
    for name, _ in files:
        found = re.search(f'<pre id="{re.escape(name)}">([^<]*)</pre>', dom)
        if found is None:
            sys.exit(f"{name} was not downloaded")
        (Path(os.environ["DOWNLOADS"]) / name).write_bytes(base64.b64decode(found[1]))


main()
