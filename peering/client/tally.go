package client

import (
	"net/http"

	"agentsite/internal/egress"
)

// Tally counts the results of requests to other portals since the start.
type Tally struct {
	// Asked is by outcome: ok, refused, limited, error of the other side, or how
	// the way there failed.
	Asked map[string]int64
	// Received is how many bytes of answers were read, decompressed.
	Received int64
}

// Tally returns the counts of results. Streams of calls are not included.
func (c *Client) Tally() Tally { return Tally{c.asked.All(), c.received.Load()} }

func outcomeOf(err error) string {
	if code := egress.CodeOf(err); code != "" {
		return string(code)
	}
	return "failed"
}

func statusOf(status int, err error) string {
	switch {
	case err != nil:
		return "cut"
	case status < 300:
		return "ok"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "limited"
	case status == http.StatusNotFound:
		return "absent"
	case status < 500:
		return "refused"
	}
	return "broken"
}
