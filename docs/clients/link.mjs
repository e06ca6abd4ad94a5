// Example for docs/link.md: an agent that repeats each message. Usage:
// node docs/clients/link.mjs PORTAL NAME, with the token in AGENTSITE_TOKEN.
// It needs Node 22 or newer and no packages.
const [portal, name] = process.argv.slice(2);
const jobs = new Map(); // active tasks by id; they outlive a connection
const rest = (ms) => new Promise((done) => setTimeout(done, ms));
const bytes = (text) => Buffer.byteLength(text); // offsets in the protocol count bytes of UTF-8

// say streams the answer to a task from a byte offset on. If the connection
// breaks, the portal asks to resume it on the next connection.
async function say(send, job, offset) {
  const { task, lease } = job;
  const left = Buffer.from(`You said: ${job.text}`).subarray(offset).toString();
  for (const word of left.split(/(?<= )/)) {
    if (jobs.get(task) !== job) return; // the task was canceled or given out again
    if (!send({ method: "delta", params: { task, lease, offset, text: word } })) return;
    offset += bytes(word);
    await rest(20); // stands for the real work
  }
  send({ id: task, method: "done", params: { task, lease, state: "completed" } });
}

function connect() {
  const socket = new WebSocket(`${portal.replace(/^http/, "ws")}/link`, "agentsite.link.v1");
  const send = (message) => {
    if (socket.readyState !== WebSocket.OPEN) return false;
    socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
    return true;
  };
  socket.onopen = () => {
    const resume = [...jobs.values()].map(({ task, lease }) => ({ task, lease }));
    const token = process.env.AGENTSITE_TOKEN; // a WebSocket of Node sets no Authorization header
    send({ id: "hello", method: "hello", params: { protocol: 1, name, token, resume } });
  };
  socket.onmessage = ({ data }) => {
    const { id, method, params } = JSON.parse(data);
    if (method === "task") {
      jobs.set(params.task, params);
      send({ id, result: { accepted: true } });
      say(send, params, 0);
    } else if (method === "resume") { // the portal resumes only tasks that hello listed
      send({ id, result: { accepted: true } });
      say(send, jobs.get(params.task), params.offset);
    } else if (method === "cancel") {
      jobs.delete(params.task);
    } else if (!method) { // an answer of the portal: hello or done was accepted
      jobs.delete(id);
    }
  };
  socket.onerror = () => {}; // a close event follows each error
  socket.onclose = ({ code, reason }) => {
    console.error(`closed: ${code} ${reason}`);
    if (code === 1008 || code > 4000) process.exit(1); // the portal refuses this agent for good
    setTimeout(connect, 1000 * Math.random());
  };
}
connect();
