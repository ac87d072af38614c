"""Client of the QUIC interop runner on Chromium without a window: a page of its own fetches the files."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

CASES = {
    "handshake", "transfer", "http3", "retry", "connectionmigration", "postquantum", "postquantum-retry",
}
# It takes no list: what it offers is the server's to choose from, with a share of the first two.
GROUPS = {"", "X25519MLKEM768", "X25519MLKEM768,secp256r1"}

PAGE = """<!doctype html><meta charset="utf-8"><title>downloads</title><body><script>
async function get(name) {
  const bytes = new Uint8Array(await (await fetch("/" + name)).arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  const file = document.createElement("pre");
  file.id = name;
  file.textContent = btoa(text);
  document.body.append(file);
}
for (const name of NAMES) get(name);
</script>"""


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
    if os.environ["TESTCASE"] not in CASES or os.environ.get("GROUPS", "") not in GROUPS:
        sys.exit(127)
    urls = os.environ["REQUESTS"].split()
    if os.environ["ROLE"] != "client" or len(urls) > 100:
        sys.exit(127)
    names = [Path(urlsplit(url).path).name for url in urls]
    host = urlsplit(urls[0]).netloc
    # Matrix and server share the folder.
    (Path(os.environ["WWW"]) / "index.html").write_text(PAGE.replace("NAMES", repr(names)))
    key = public_key_hash(Path(os.environ["CERTS"]) / "cert.pem")
    with tempfile.TemporaryDirectory() as profile:
        dom = subprocess.run([
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--no-first-run",
            f"--user-data-dir={profile}", f"--origin-to-force-quic-on={host}",
            f"--ignore-certificate-errors-spki-list={key}",
            f"--ssl-key-log-file={os.environ['SSLKEYLOGFILE']}",
            "--virtual-time-budget=50000", "--dump-dom", f"https://{host}/index.html",
        ], check=True, stdout=subprocess.PIPE, text=True).stdout
    for name in names:
        found = re.search(f'<pre id="{re.escape(name)}">([^<]*)</pre>', dom)
        if found is None:
            sys.exit(f"{name} was not downloaded")
        (Path(os.environ["DOWNLOADS"]) / name).write_bytes(base64.b64decode(found[1]))


main()
