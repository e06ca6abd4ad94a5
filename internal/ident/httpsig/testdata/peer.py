#!/usr/bin/env python3
"""Writes peer.json: requests between portals, signed by another implementation.

The bases are spelled out by hand from RFC 9421, sections 2.2, 2.3 and 2.5, and
docs/design/peering.md. The key is that of recordtest.NewPortal("vectors"). It
needs the package cryptography:

    python3 peer.py > peer.json
"""
import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

seed = hashlib.sha256(b"agentsite test key vectors op").digest()
key = Ed25519PrivateKey.from_private_bytes(seed)
keyid = "p1m25yiuraq4xiznxizuha3ym3hh5x7qbvtxlcfgoor3w6zzukracq/rifzazwebewahm3y"
tail = ';keyid="' + keyid + '";tag="agentsite-peer"'

vectors = []


def vector(name, method, url, headers, body, base):
    params = base.rsplit('"@signature-params": ', 1)[1]
    sig = base64.b64encode(key.sign(base.encode("ascii"))).decode()
    vectors.append({
        "name": name, "method": method, "url": url, "headers": {k: v if isinstance(v, list) else [v] for k, v in headers.items()}, "body": body, "base": base,
        "signature_input": "sig1=" + params, "signature": "sig1=:" + sig + ":",
    })


vector("without a body", "GET", "https://b.example/peering/v1/echo/x?from=1&to=%20z", {
    "Agentsite-Network": "agentsite-test",
}, "", '''"@method": GET
"@authority": b.example
"@path": /peering/v1/echo/x
"@query": ?from=1&to=%20z
"agentsite-network": agentsite-test
"@signature-params": ("@method" "@authority" "@path" "@query" "agentsite-network");created=946684800;expires=946684860;nonce="AAECAwQFBgcICQoLDA0ODw"''' + tail)

# An empty query is a question mark (RFC 9421, section 2.2.7). The digest is
# SHA-256 of the body, RFC 9530.
body = '{"hello":"world"}'
vector("with a body and a call", "POST", "https://b.example/peering/v1/echo", {
    "Agentsite-Network": "agentsite-test",
    "Content-Digest": "sha-256=:k6I5cakU5erL8KjSUVTNownDwccvu5kU1Hxg88toFYg=:",
    "Agentsite-For": 'kind=person, id="x", handle="ada@vectors.example"',
    "Agentsite-Hops": '"one"',
    "Agentsite-Budget": "calls=1, seconds=2, bytes=3",
}, body, '''"@method": POST
"@authority": b.example
"@path": /peering/v1/echo
"@query": ?
"agentsite-network": agentsite-test
"content-digest": sha-256=:k6I5cakU5erL8KjSUVTNownDwccvu5kU1Hxg88toFYg=:
"agentsite-for": kind=person, id="x", handle="ada@vectors.example"
"agentsite-hops": "one"
"agentsite-budget": calls=1, seconds=2, bytes=3
"@signature-params": ("@method" "@authority" "@path" "@query" "agentsite-network" "content-digest" "agentsite-for" "agentsite-hops" "agentsite-budget");created=946684800;expires=946684860;nonce="EBESExQVFhcYGRobHB0eHw"''' + tail)

# Fields that come in several lines are joined by a comma and a space (RFC 9421,
# section 2.1), and the order of components is the signer's. Escapes in the path
# stay as they were sent (section 2.2.6).
vector("in another order", "GET", "https://b.example/peering/v1/echo/a%2Fb", {
    "Agentsite-Network": "agentsite-test",
    "Agentsite-Hops": ['"one"', '"two"'],
}, "", '''"agentsite-hops": "one", "two"
"agentsite-network": agentsite-test
"@query": ?
"@path": /peering/v1/echo/a%2Fb
"@authority": b.example
"@method": GET
"@signature-params": ("agentsite-hops" "agentsite-network" "@query" "@path" "@authority" "@method");created=946684800;expires=946684860;nonce="ICEiIyQlJicoKSorLC0uLw"''' + tail)

for v in vectors:
    if v["body"]:
        want = "sha-256=:" + base64.b64encode(hashlib.sha256(v["body"].encode()).digest()).decode() + ":"
        assert v["headers"]["Content-Digest"] == [want], want
print(json.dumps(vectors, indent=1))
