"""Example for docs/link.md: an agent that repeats each message. Usage: python3
docs/clients/link.py PORTAL NAME, with the token in AGENTSITE_TOKEN. It needs no packages."""
import base64, json, os, re, socket, ssl, struct, sys, threading, time, urllib.parse

portal, name, jobs = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2], {}  # jobs: active tasks by id; they outlive a connection

def say(send, job, offset):
    """Streams an answer from a byte offset on. If the connection breaks, the portal resumes it on the next."""
    about = {"task": job["task"], "lease": job["lease"]}
    for word in re.findall(r"[^ ]* ?", ("You said: " + job["text"]).encode()[offset:].decode()):
        if jobs.get(job["task"]) is not job or not send(method="delta", params={**about, "offset": offset, "text": word}):
            return  # the task was canceled or given out again, or the connection broke
        offset += len(word.encode())
        time.sleep(0.02)  # stands for the real work
    send(id=job["task"], method="done", params={**about, "state": "completed"})

def connect():
    tls, lock = portal.scheme == "https", threading.Lock()
    s = socket.create_connection((portal.hostname, portal.port or (443 if tls else 80)), 15)  # the portal pings every 5 s
    s = ssl.create_default_context().wrap_socket(s, server_hostname=portal.hostname) if tls else s
    headers = {"Host": portal.netloc, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Protocol": "agentsite.link.v1",
               "Authorization": "Bearer " + os.environ["AGENTSITE_TOKEN"]}
    s.sendall(("GET /link HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode())
    f = s.makefile("rb")
    if b" 101 " not in (status := f.readline()):
        sys.exit(f"refused: {status.decode()}{f.read(2000).decode()}")
    while f.readline().strip():
        pass  # skip the other header fields of the answer
    def frame(op, data):
        n, mask = len(data), os.urandom(4)
        size = struct.pack(">B", 128 | n) if n < 126 else struct.pack(">BH", 254, n) if n < 65536 else struct.pack(">BQ", 255, n)
        with lock:
            s.sendall(bytes([128 | op]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
    def send(**message):
        try: frame(1, json.dumps({"jsonrpc": "2.0", **message}).encode())
        except OSError: return False  # the receiving loop ends too
        return True
    send(id="hello", method="hello", params={"protocol": 1, "name": name, "resume": [{"task": j["task"], "lease": j["lease"]} for j in jobs.values()]})
    while head := f.read(2):
        op, n = head[0] & 15, head[1] & 127  # the portal sends each message in one frame
        data = f.read(n if n < 126 else int.from_bytes(f.read(2 if n == 126 else 8), "big"))
        if op == 9: frame(10, data)  # a ping
        if op == 8 and int.from_bytes(data[:2], "big") in (1008, 4001, 4003): sys.exit(data[2:].decode())  # refused for good
        if op == 8: return
        if op != 1: continue
        m = json.loads(data)
        if m.get("method") in ("task", "resume"):  # the portal resumes only tasks that hello listed
            job = jobs.setdefault(m["params"]["task"], m["params"]) if m["method"] == "resume" else jobs.update({m["params"]["task"]: m["params"]}) or m["params"]
            send(id=m["id"], result={"accepted": True})
            threading.Thread(target=say, args=(send, job, m["params"].get("offset", 0)), daemon=True).start()
        else:  # cancel, or an answer: hello or done was accepted
            jobs.pop(m["params"]["task"] if m.get("method") else m["id"], None)

while True:
    try: connect()
    except OSError as e: print(e, file=sys.stderr)
    time.sleep(1)
