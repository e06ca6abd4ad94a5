package peer

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
)

// searchLimits are those of one portal that searches here.
var searchLimits = Limits{Every: time.Second / 5, Burst: 20, AtOnce: 8}

// Answers finds agents of this portal, of an index portal those of others too,
// for another portal.
type Answers interface {
	Answer(ctx context.Context, asker record.PortalID, q federation.SearchQuestion) (*federation.SearchAnswer, error)
}

// Search adds the route by which others look for agents that they do not hold.
func Search(d Handles, answers Answers) {
	d.Handle(http.MethodPost, "/search", func(ctx context.Context, by guard.Asker, _ *http.Request, body []byte) (any, error) {
		var q federation.SearchQuestion
		if err := Decode(body, &q); err != nil {
			return nil, err
		}
		a, err := answers.Answer(ctx, by.Portal, q)
		if err != nil {
			return nil, err
		}
		return Plain(a.Append(nil)), nil
	}, searchLimits)
}
