"""Client of the QUIC interop runner on Firefox of Debian, in the folder `trixie` that interop/peers/install made: a
page of its own fetches the files and hands them over to this program."""

import http.server
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

CASES = {
    "handshake", "transfer", "http3", "retry", "connectionmigration", "postquantum", "postquantum-retry",
}
# It takes no list: what it offers is the server's to choose from, with shares of three groups.
GROUPS = {"", "X25519MLKEM768"}
# Time for all downloads in seconds: beyond that of every case.
LONGEST = 170

PAGE = """<!doctype html><meta charset="utf-8"><title>downloads</title><body><script>
async function get(name) {
  const contents = await (await fetch("/" + name)).arrayBuffer();
  await fetch("http://127.0.0.1:8000/" + name, {method: "POST", mode: "no-cors", body: contents});
}
for (const name of NAMES) get(name);
</script>"""

# It finds HTTP/3 without asking over TCP first, although no known authority signed the certificate.
SETTINGS = """user_pref("network.http.http3.alt-svc-mapping-for-testing", "HOST;h3=:PORT");
user_pref("network.http.http3.disable_when_third_party_roots_found", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("security.mixed_content.block_active_content", false);
user_pref("network.lna.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""

ROOT = Path(os.environ["HYBRIQ_PEERS"]) / "trixie"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes the files that the page sends."""

    def do_POST(self):
        contents = self.rfile.read(int(self.headers["content-length"]))
        name = Path(self.path).name
        (Path(os.environ["DOWNLOADS"]) / name).write_bytes(contents)
        self.send_response(204)
        self.end_headers()
        self.server.missing.discard(name)
        if not self.server.missing:
            self.server.all_there.set()

    def log_message(self, *_):
        pass


def share(folder, at):
    """Shows a folder or file inside. `ip netns exec` gave this process mounts of its own."""
    if Path(folder).is_dir():
        (ROOT / at).mkdir(parents=True, exist_ok=True)
    else:
        (ROOT / at).touch()
    subprocess.run(["mount", "--bind", folder, ROOT / at], check=True)


def unsupported(reason):
    print(f"firefox {reason}", file=sys.stderr)
    sys.exit(127)


def main():
    if sys.argv[1:] == ["--version"]:
        subprocess.run(["chroot", ROOT, "dpkg-query", "-f", "${Version}\\n", "-W", "firefox-esr"], check=True)
        return
    urls = os.environ["REQUESTS"].split()
    case = os.environ["TESTCASE"]
    if os.environ["ROLE"] != "client":
        unsupported("is no server")
    if case == "multiconnect":
        unsupported("keeps its connection to a server, and a page cannot end it")
    if case not in CASES:
        unsupported(f"cannot be made to do {case}")
    if os.environ.get("GROUPS", "") not in GROUPS:
        unsupported("takes no list of groups")
    if len(urls) > 100:
        unsupported("asks for its page too, on a stream of its own")
    names = [Path(urlsplit(url).path).name for url in urls]
    server = urlsplit(urls[0])
    # Matrix and server share the folder.
    (Path(os.environ["WWW"]) / "index.html").write_text(PAGE.replace("NAMES", repr(names)))

    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Receiver)
    receiver.missing = set(names)
    receiver.all_there = threading.Event()
    threading.Thread(target=receiver.serve_forever, daemon=True).start()

    with tempfile.TemporaryDirectory() as own:
        profile, policies = Path(own) / "profile", Path(own) / "policies"
        profile.mkdir()
        policies.mkdir()
        settings = SETTINGS.replace("HOST", server.hostname).replace("PORT", str(server.port))
        (profile / "user.js").write_text(settings)
        root = Path(os.environ["CERTS"]) / "ca.pem"
        (policies / "ca.pem").write_bytes(root.read_bytes())
        inside = "usr/lib/firefox-esr/distribution"
        (policies / "policies.json").write_text(
            '{"policies": {"Certificates": {"Install": ["/%s/ca.pem"]}}}' % inside)
        share(policies, inside)
        share(profile, "mnt")
        share("/etc/hosts", "etc/hosts")
        subprocess.run(["mount", "-t", "proc", "proc", ROOT / "proc"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", ROOT / "dev/shm"], check=True)
        browser = subprocess.Popen([
            "setpriv", "--pdeathsig", "KILL", "chroot", ROOT, "env", "-i", "HOME=/mnt", "PATH=/usr/bin:/bin", "MOZ_HEADLESS=1",
            "firefox-esr", "--no-remote", "--profile", "/mnt",
            f"https://{server.netloc}/index.html",
        ], start_new_session=True, stdout=subprocess.DEVNULL)
        in_time = receiver.all_there.wait(LONGEST)
        os.killpg(browser.pid, 9)
        browser.wait()
        subprocess.run(["umount", "-l", ROOT / "mnt"], check=False)
    if not in_time:
        sys.exit(f"not downloaded: {', '.join(sorted(receiver.missing))}")


main()
