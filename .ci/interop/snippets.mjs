// Runs what docs/connect.md says to programs, as it stands there, and looks at
// what comes out. Usage: node snippets.mjs PORTAL-URL DOCS-FOLDER, with a token
// in AGENTSITE_TOKEN. It needs bash, curl, node and go.
//
// Fences marked sh, js and go are run, in the order of the page, sh in one
// shell; those marked json are examples and must be JSON. Each fence that is
// run has its line in want, by its heading and place there.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [portal, docs] = process.argv.slice(2);
const fortyTwo = /\*\*42\*\*/;

// want is what the output of each snippet must hold.
const want = {
  "Protocol: OpenAI": [/\*\*4\*\*/, /calc/i],
  "Protocol: OpenAI, how a conversation goes on": [/\*\*12\*\*/],
  "Protocol: A2A": [fortyTwo, fortyTwo, fortyTwo, fortyTwo, fortyTwo],
  "Protocol: ARD, search": [/urn:air:127\.0\.0\.1:agents:calc/],
  "Protocol: ARD, counting, listing and looking up": [/"facets".*"items".*urn:air:127\.0\.0\.1:agents:calc/s],
};

// around is what a snippet in Go needs around it to be a program.
const around = {
  "Protocol: A2A": ["context fmt log github.com/a2aproject/a2a-go/v2/a2a github.com/a2aproject/a2a-go/v2/a2aclient github.com/a2aproject/a2a-go/v2/a2aclient/agentcard",
    `if err != nil { log.Fatal(err) }; task := answer.(*a2a.Task); fmt.Println(task.Artifacts[0].Parts[0].Text())`],
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

const problems = [];
const real = (text) => text.replaceAll("http://127.0.0.1:8080", portal).replaceAll("ags_paste-your-token-here", process.env.AGENTSITE_TOKEN);
const all = fences(readFileSync(join(docs, "connect.md"), "utf8")).filter((f) => {
  if (f.language === "json") try { JSON.parse(f.text); } catch (e) { problems.push(`line ${f.line}: no JSON: ${e.message}`); }
  return f.language !== "json" && f.language !== "text";
});
const script = ["set -euo pipefail", `export TOKEN="$AGENTSITE_TOKEN"`];
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
      problems.push(`line ${f.line}: a fence is sh, js, go, json or text, not ${JSON.stringify(f.language)}`);
  }
});

let out = "";
try {
  out = execFileSync("bash", ["-c", script.join("\n")], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 16 << 20 });
} catch (e) {
  out = e.stdout ?? "";
  problems.push(`a snippet ended the shell: ${e.stderr}`);
}
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
