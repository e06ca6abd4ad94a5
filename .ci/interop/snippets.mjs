// Runs what docs/connect.md says to programs, as it stands there, and looks at
// what comes out. Usage: node snippets.mjs PORTAL-URL DOCS-FOLDER, in a folder
// with the packages, with a token in AGENTSITE_TOKEN, an operator's in
// OPERATOR_TOKEN, and the Python of the packages in PYTHON. It needs bash, curl, jq,
// node, npx, go, python3, openssl, and the commands a2a and mcp-publisher.
//
// Fences marked sh, js, python and go are run, in the order of the page, sh in one
// shell; those marked json are examples and must be JSON. Each fence that is
// run has its line in want, by its heading and place there.
import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";

const [portal, docs] = process.argv.slice(2);
// The answer of a task that ended before its stream began stands in the task itself, before its number.
const numberedFortyTwo = /"seq":.*\*\*42\*\*|\*\*42\*\*.*"seq":/s;
const fortyTwo = /\*\*42\*\*/;

// want is what the output of each snippet must hold.
const want = {
  "Protocol: OpenAI": [/\*\*4\*\*/, /calc/i, fortyTwo],
  "Protocol: OpenAI, how a conversation goes on": [/\*\*12\*\*/],
  "Protocol: A2A": [fortyTwo, fortyTwo, fortyTwo, fortyTwo, fortyTwo, fortyTwo, numberedFortyTwo, /"TASK_STATE_(SUBMITTED|WORKING|COMPLETED)"/],
  "Protocol: MCP": [/"name": "arithmetic"/, fortyTwo, fortyTwo, fortyTwo],
  "Protocol: ARD, search": [/urn:air:127\.0\.0\.1:agents:calc/],
  "Protocol: ARD, counting, listing and looking up": [/"facets".*"items".*urn:air:127\.0\.0\.1:agents:calc/s],
  "Protocol: MCP registry": [/"servers":\[/],
  "Protocol: MCP registry, publishing": [/v=MCPv1; k=ed25519; p=/, /Successfully published.*"name":"localhost\/weather".*"isLatest":true/s],
  "Protocol: MCP registry, servers and agents": [/"status":"deleted"/],
  "Protocol: Signed requests": [/kind=person, id=/],
};

// elsewhere are snippets that another part of CI runs, and what they must say
// to be what it runs.
const { modern } = JSON.parse(readFileSync(join(docs, "../.ci/conformance/package.json"))).dependencies;
const elsewhere = { "Protocol: conformance suites": `npx ${modern.slice("npm:".length)} server --suite all --url http://127.0.0.1:8080/agents/conformance/mcp\n` };

// around is what a snippet in Go needs around it to be a program.
const around = {
  "Protocol: A2A": ["context fmt log github.com/a2aproject/a2a-go/v2/a2a github.com/a2aproject/a2a-go/v2/a2aclient github.com/a2aproject/a2a-go/v2/a2aclient/agentcard",
    `if err != nil { log.Fatal(err) }; task := answer.(*a2a.Task); fmt.Println(task.Artifacts[0].Parts[0].Text())`],
  "Protocol: MCP": ["context fmt log github.com/modelcontextprotocol/go-sdk/mcp",
    `if err != nil { log.Fatal(err) }; fmt.Println(answer.StructuredContent)`],
};

// fences reads the fenced code of a page.
function fences(page) {
  const out = [];
  let heading = "", open = null;
  page.split("\n").forEach((line, i) => {
    if (open) {
      if (line.startsWith("```")) { out.push(open); open = null; } else open.text += line + "\n";
    } else if (line.startsWith("```")) {
      open = { heading, language: line.slice(3).trim(), line: i + 1, text: "" };
    } else if (line.startsWith("## ")) heading = line.slice(3).trim();
  });
  return out;
}

// server listens at a free port of this machine.
async function server(handle) {
  const s = createServer(handle);
  await new Promise((done) => s.listen(0, "127.0.0.1", done));
  return { port: s.address().port, close: () => new Promise((done) => { s.close(done); s.closeAllConnections(); }) };
}

// receiver stands at the address that is told how a task goes on; told is the
// end of the task, by who knows the secrets.
let tell;
const told = new Promise((done) => { tell = done; });
const receiver = await server(async (req, res) => {
  let body = "";
  for await (const piece of req) body += piece;
  res.end();
  const { authorization, "x-a2a-notification-token": token } = req.headers;
  if (authorization === "Bearer secret" && token === "mine" && body.includes("TASK_STATE_COMPLETED")) tell(true);
});
const free = await server();
await free.close();

const problems = [];
const real = (text) => text.replaceAll("http://127.0.0.1:8080", portal).replaceAll("ags_paste-your-token-here", process.env.AGENTSITE_TOKEN)
  .replaceAll("127.0.0.1:9000", `127.0.0.1:${receiver.port}`).replace(/\b8000\b/g, free.port);
const all = fences(readFileSync(join(docs, "connect.md"), "utf8")).filter((f) => {
  if (f.language === "json") try { JSON.parse(f.text); } catch (e) { problems.push(`line ${f.line}: no JSON: ${e.message}`); }
  if (elsewhere[f.heading] && f.text !== elsewhere[f.heading]) problems.push(`line ${f.line}: is not ${elsewhere[f.heading]}`);
  return f.language !== "json" && f.language !== "text" && !elsewhere[f.heading];
});
const script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"];
const seen = {};
all.forEach((f, i) => {
  f.nth = seen[f.heading] = (seen[f.heading] ?? -1) + 1;
  script.push(`echo; echo "@@ ${i}"`);
  switch (f.language) {
    case "sh":
      script.push(real(f.text));
      break;
    case "js":
      writeFileSync(`snippet${i}.mjs`, real(f.text));
      script.push(`node snippet${i}.mjs`);
      break;
    case "python":
      writeFileSync(`snippet${i}.py`, real(f.text));
      script.push(`"$PYTHON" snippet${i}.py`);
      break;
    case "go": {
      const [imports, after] = around[f.heading] ?? [];
      if (!imports) { problems.push(`line ${f.line}: nothing says what is around this Go`); break; }
      mkdirSync(`snippet${i}`);
      for (const name of ["go.mod", "go.sum"]) copyFileSync(join(docs, "..", name), join(`snippet${i}`, name));
      writeFileSync(join(`snippet${i}`, "main.go"), `package main\n\nimport (\n${imports.split(" ").map((p) => `\t"${p}"\n`).join("")})\n\nfunc main() {\n\tctx := context.Background()\n${real(f.text)}\n${after}\n}\n`);
      script.push(`(cd snippet${i} && GOFLAGS=-mod=mod go run .)`);
      break;
    }
    default:
      problems.push(`line ${f.line}: a fence is sh, js, python, go, json or text, not ${JSON.stringify(f.language)}`);
  }
});

// Programs of others leave their files in this folder, and npx takes what is
// here: nothing that is not in the lock file is run.
const home = Object.fromEntries(["GOENV", "GOPATH", "GOCACHE"].map((name) => [name, execFileSync("go", ["env", name], { encoding: "utf8" }).trim()]));
const env = { ...process.env, ...home, HOME: process.cwd(), npm_config_offline: "true" };
let out = "";
try {
  out = (await promisify(execFile)("bash", ["-c", script.join("\n")], { encoding: "utf8", env, maxBuffer: 16 << 20 })).stdout;
} catch (e) {
  out = e.stdout ?? "";
  problems.push(`a snippet ended the shell: ${e.stderr}`);
}
const patience = AbortSignal.timeout(30_000);
if (!(await Promise.race([told, new Promise((done) => patience.addEventListener("abort", () => done(false)))]))) {
  problems.push("nobody was told that the task has ended");
}
await receiver.close();
const got = Object.fromEntries(out.split(/^@@ /m).slice(1).map((part) => [parseInt(part), part.slice(part.indexOf("\n") + 1)]));
all.forEach((f, i) => {
  const pattern = want[f.heading]?.[f.nth];
  if (!pattern) problems.push(`line ${f.line}: nothing says what snippet ${f.nth + 1} of ${JSON.stringify(f.heading)} must print`);
  else if (got[i] === undefined) problems.push(`line ${f.line}: was not reached`);
  else if (!pattern.test(got[i])) problems.push(`line ${f.line}: printed\n${got[i].slice(0, 2000)}\nwithout ${pattern}`);
  else console.log(`ok   connect.md:${f.line} ${f.heading}`);
});
for (const [heading, list] of Object.entries(want)) {
  if ((seen[heading] ?? -1) + 1 !== list.length) problems.push(`${heading} has ${(seen[heading] ?? -1) + 1} snippets, not ${list.length}`);
}
for (const p of problems) console.log(`FAIL ${p}`);
process.exit(problems.length ? 1 : 0);
