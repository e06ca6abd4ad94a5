package peer

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/record"
)

// searchLimits are the limits of each portal on remote searches.
var searchLimits = Limits{Every: time.Second / 5, Burst: 20, AtOnce: 8}

// Answers searches the agents of this portal for another portal. A portal that indexes others searches
// their agents, too.
type Answers interface {
	Answer(ctx context.Context, asker record.PortalID, q federation.SearchQuestion) (*federation.SearchAnswer, error)
}

// Search adds the route for remote searches of other portals. Answers are sent uncompressed, because a
// person waits for them.
func Search(d Handles, answers Answers) {
	d.Handle(http.MethodPost, "/search", func(ctx context.Context, by guard.Asker, _ *http.Request, body []byte) (any,
		error) {
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
