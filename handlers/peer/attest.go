package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
)

// maxAttests bounds the records in one request.
const maxAttests = 64

// Rate limits per portal of the routes for attestations and liveness reports.
var (
	attestLimits  = Limits{Every: 200 * time.Millisecond, Burst: 50, AtOnce: 4}
	attestsLimits = Limits{Every: time.Second, Burst: 40, AtOnce: 2}
)

// Words stores and returns signed statements of portals about other portals and agents.
type Words interface {
	Take(ctx context.Context, from record.PortalID, wires [][]byte) ([]federation.Unfit, error)
	After(ctx context.Context, after int64, limit int) (lines []byte, more bool, err error)
}

// Attest adds the routes by which portals exchange attestations, proofs of equivocation and liveness
// reports.
func (d *Door) Attest(words Words) {
	d.Handle(http.MethodPost, "/attest", func(ctx context.Context, asker guard.Asker, _ *http.Request,
		body []byte) (any, error) {
		var in struct {
			Records []json.RawMessage `json:"records"`
		}
		if err := Decode(body, &in); err != nil {
			return nil, err
		}
		if len(in.Records) > maxAttests {
			return nil, federation.Refuse(federation.ReasonMalformed, "records: send at most %d at once.", maxAttests)
		}
		wires := make([][]byte, len(in.Records))
		for i, r := range in.Records {
			wires[i] = r
		}
		refused, err := words.Take(ctx, asker.Portal, wires)
		return struct {
			Refused []federation.Unfit `json:"refused"`
		}{refused}, err
	}, attestLimits)
	d.Handle(http.MethodGet, "/attests", func(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any,
		error) {
		after, err := queryNumber(r, "after", 0, 0, maxInt)
		if err != nil {
			return nil, err
		}
		limit, err := queryNumber(r, "limit", 1000, 1, 1000)
		if err != nil {
			return nil, err
		}
		lines, more, err := words.After(ctx, after, int(limit))
		if err != nil {
			return nil, err
		}
		var list [][]byte
		if lines = bytes.TrimSuffix(lines, []byte("\n")); len(lines) > 0 {
			list = bytes.Split(lines, []byte("\n"))
		}
		return Lines{List: list, More: more}, nil
	}, attestsLimits)
}
