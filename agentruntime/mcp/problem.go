package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"agentsite/internal/a2a"
	"agentsite/internal/egress"
	"agentsite/internal/hub"
)

// trouble classifies the reason why a server did not serve a request.
type trouble string

const (
	troubleAuth    trouble = "auth"    // it asks for credentials, or refuses them
	troubleAway    trouble = "away"    // it cannot be reached, or it failed
	troubleShape   trouble = "shape"   // the answer is not from an MCP server
	troubleRefused trouble = "refused" // it answered with an error
	troubleLimit   trouble = "limit"   // it exceeded a bound of ours
)

// problem is the error of a request. Text is part of a sentence.
type problem struct {
	kind trouble
	text string
	code int64 // of JSON-RPC, when refused
	err  error
	// sent is false when the request cannot have reached the server.
	sent bool
}

// Error implements error, for logs.
func (p *problem) Error() string { return p.text }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.err }

// explainError makes a problem of an error of the SDK. It uses the recorded exchange rather than the
// error's text.
func (w *wire) explainError(err error) *problem {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &problem{err: err, sent: true, kind: troubleShape}
	x := w.last
	if x == nil {
		x = &exchange{}
	}
	if limit := w.limit; limit != nil {
		p.kind, p.text = troubleLimit, limit.Error()
		return p
	}
	rpc, isRPC := errors.AsType[*jsonrpc.Error](err)
	if x.refusal != nil {
		rpc, isRPC, x.err = x.refusal, true, nil
	}
	// The SDK's own mark of requests that were not sent has the same type.
	isRPC = isRPC && rpc.Message != rejected
	strange, isStrange := errors.AsType[*errShape](x.err)
	switch {
	case isStrange:
		p.text = strange.text
	case x.err != nil:
		p.setNetworkError(x.err)
	case x.status == http.StatusUnauthorized || x.status == http.StatusForbidden:
		p.kind, p.text = troubleAuth, "the server asks for credentials"
		if w.value != "" {
			p.text = "the server refused the stored credentials"
		}
	case isRPC && x.method != "initialize" && x.method != "server/discover":
		p.kind, p.code = troubleRefused, rpc.Code
		p.text = a2a.Line(rpc.Message, 300)
		if p.text == "" {
			p.text = fmt.Sprintf("it gave the error %d", rpc.Code)
		}
	case isRPC && rpc.Code == jsonrpc.CodeMethodNotFound:
		p.text = "it speaks JSON-RPC but does not know MCP"
	case isRPC:
		p.text = "it refused to begin: " + a2a.Line(rpc.Message, 200)
	case x.status >= 500 || x.status == http.StatusTooManyRequests:
		p.kind, p.text = troubleAway, fmt.Sprintf("it answered with HTTP %d and %s", x.status, x.describeHead())
	case x.status >= 300:
		p.text = fmt.Sprintf("it answered with HTTP %d and %s", x.status, x.describeHead())
	case x.status != 0 && isVersion(err):
		p.text = "it speaks a version of MCP that this portal does not"
	case x.status != 0:
		p.text = "it answered with " + x.describeHead()
	case errors.Is(err, context.DeadlineExceeded):
		p.kind, p.text = troubleAway, "timed out"
	default:
		p.setNetworkError(err)
	}
	return p
}

// rejected is the message of the SDK's mark.
const rejected = "rejected by transport"

// setNetworkError sets the problem of a request without an answer.
func (p *problem) setNetworkError(err error) {
	if e, ok := errors.AsType[*errLimit](err); ok {
		p.kind, p.text = troubleLimit, e.text
		return
	}
	p.kind, p.text, p.sent = troubleAway, egress.Reason(err), !egress.NeverSent(err)
	switch egress.CodeOf(err) {
	case egress.Redirect, egress.Encoded, egress.Protocol, egress.BadURL:
		p.kind = troubleShape
	case egress.TooLarge:
		p.kind = troubleLimit
	}
}

// isVersion recognizes the SDK's error about the version that a server chose, which has no type.
func isVersion(err error) bool {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if len(e.Error()) < 200 && len(e.Error()) > 29 && e.Error()[:29] == "unsupported protocol version:" {
			return true
		}
	}
	return false
}

// asLiveness returns a problem as the result of a probe.
func (p *problem) asLiveness() (hub.Live, string) {
	switch p.kind {
	case troubleAuth:
		return hub.NeedsAuth, toSentence(p.text)
	case troubleAway:
		return hub.Unreachable, toSentence(p.text)
	case troubleShape:
		if egress.CodeOf(p.err) != "" {
			return hub.WrongProtocol, toSentence(p.text)
		}
	}
	return hub.WrongProtocol, "This is not an MCP server: " + p.text + "."
}

// userSentence returns a problem for the caller. It refers to the owner, because the caller cannot
// change the key.
func (p *problem) userSentence() string {
	switch {
	case p.kind == troubleAuth:
		return toSentence(p.text) + " The agent's owner should give or renew them."
	case p.kind == troubleRefused:
		return "The server refused: " + p.text + missingStop(p.text)
	case p.kind == troubleAway && !p.sent:
		return "The server could not be reached: " + p.text + "."
	}
	return "The server did not answer as it should: " + p.text + "."
}

// missingStop returns the full stop that a server's sentence lacks.
func missingStop(s string) string {
	if s != "" && (s[len(s)-1] == '.' || s[len(s)-1] == '!' || s[len(s)-1] == '?') {
		return ""
	}
	return "."
}
