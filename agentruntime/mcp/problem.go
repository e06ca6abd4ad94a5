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
	troubleAuth    trouble = "auth"    // the server asks for credentials, or refuses them
	troubleAway    trouble = "away"    // the server cannot be reached, or it failed
	troubleShape   trouble = "shape"   // the answer is not from an MCP server
	troubleRefused trouble = "refused" // the server answered with an error of JSON-RPC
	troubleLimit   trouble = "limit"   // the server exceeded a bound of this portal
)

// problem is the error of a request. text is the predicate of a sentence about the server.
type problem struct {
	kind   trouble
	text   string
	code   int64 // error code of JSON-RPC, for troubleRefused
	err    error
	status int // HTTP status of the answer, 0 for none
	// sent is false when the request cannot have reached the server.
	sent bool
}

// Error implements error, for logs; userSentence is for users.
func (p *problem) Error() string { return p.text }

// Unwrap returns the error of the SDK or of the connection.
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
	p.status = x.status
	if limit := w.limit; limit != nil {
		p.kind, p.text = troubleLimit, limit.Error()
		return p
	}
	rpc, isRPC := errors.AsType[*jsonrpc.Error](err)
	if x.refusal != nil {
		rpc, isRPC, x.err = x.refusal, true, nil
	}
	// The SDK marks requests that were not sent with the same error type.
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

// rejected is the message of the error by which the SDK marks a request that was not sent.
const rejected = "rejected by transport"

// setNetworkError sets kind, text and sent for a request without an answer.
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

// isVersion reports whether err says that the server chose an unsupported version. It compares the text,
// because the SDK has no type for this error.
func isVersion(err error) bool {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if len(e.Error()) < 200 && len(e.Error()) > 29 && e.Error()[:29] == "unsupported protocol version:" {
			return true
		}
	}
	return false
}

// asLiveness returns a problem as the liveness and reason of a probe.
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

// userSentence returns a problem as a sentence for the caller. It refers to the owner, because the
// caller cannot change the key.
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

// missingStop returns "." if a server's sentence has no punctuation at its end, "" otherwise.
func missingStop(s string) string {
	if s != "" && (s[len(s)-1] == '.' || s[len(s)-1] == '!' || s[len(s)-1] == '?') {
		return ""
	}
	return "."
}
