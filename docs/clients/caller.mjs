// Example for docs/connect.md: an OpenAI-compatible endpoint that answers requests of one portal only,
// with the kind of the caller. Usage: node caller.mjs PORTAL [PUBLIC-URL]
import http from "node:http";
import { createHash, createPublicKey, verify } from "node:crypto";

const [portal, ours] = process.argv.slice(2);
const must = ["@method", "@authority", "@path", "@query", "agentsite-portal", "agentsite-caller"];
const seen = new Map(); // nonces that were used, with the time to forget them
let keys = [];

async function keyOf(id) {
  const find = () => keys.find((k) => k.kid === id);
  if (!find()) keys = (await (await fetch(portal + "/.well-known/http-message-signatures-directory")).json()).keys;
  return createPublicKey({ key: find(), format: "jwk" });
}

// caller verifies the signature of a request (RFC 9421) and returns its Agentsite-Caller field.
async function caller(req, body) {
  const h = req.headers, url = new URL(req.url, ours ?? "http://" + h.host);
  const input = /^sig1=(\((.*?)\);(.*))$/.exec(h["signature-input"] ?? "");
  const signature = /^sig1=:(.*):$/.exec(h.signature ?? "");
  if (!input || !signature) throw new Error("not signed");
  const param = Object.fromEntries([...input[3].matchAll(/(\w+)="?([^";]*)"?/g)].map((m) => [m[1], m[2]]));
  const covered = [...input[2].matchAll(/"([^"]+)"(;key="sig1")?/g)];
  const missing = [...must, ...(body.length ? ["content-digest"] : [])].filter((n) => !covered.some((c) => c[1] === n));
  if (missing.length) throw new Error(missing + " is not signed");
  const now = Date.now() / 1000;
  if (param.tag !== "web-bot-auth" || Math.abs(now - param.created) > 60 || now > Number(param.expires) + 60) throw new Error("not valid now");
  if (h["agentsite-portal"] !== portal) throw new Error("another portal");
  const value = { "@method": req.method, "@authority": url.host, "@path": url.pathname, "@query": url.search || "?" };
  const lines = covered.map(([name, plain, key]) =>
    `${name}: ${value[plain] ?? (key ? /sig1=("[^"]*")/.exec(h[plain])[1] : h[plain])}`);
  const base = [...lines, `"@signature-params": ${input[1]}`].join("\n");
  if (!verify(null, base, await keyOf(param.keyid), Buffer.from(signature[1], "base64"))) throw new Error("the signature does not fit");
  if (body.length && h["content-digest"] !== `sha-256=:${createHash("sha256").update(body).digest("base64")}:`) throw new Error("another body");
  for (const [nonce, end] of seen) if (end < now) seen.delete(nonce);
  if (seen.has(param.nonce)) throw new Error("sent before");
  seen.set(param.nonce, now + 180);
  return h["agentsite-caller"];
}

const server = http.createServer(async (req, res) => {
  const parts = [];
  for await (const part of req) parts.push(part);
  let status = 200, answer;
  try {
    const who = await caller(req, Buffer.concat(parts));
    answer = req.method === "GET" ? { object: "list", data: [{ id: "who", object: "model" }] }
      : { object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: who }, finish_reason: "stop" }] };
  } catch (e) {
    status = 401, answer = { error: { message: e.message } };
  }
  res.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
