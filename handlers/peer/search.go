package peer

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/federation"
)

// searchLimits are those of one portal that searches here.
var searchLimits = Limits{Every: time.Second / 5, Burst: 20, AtOnce: 8}

// Answers finds agents of this portal.
type Answers interface {
	Answer(ctx context.Context, q federation.SearchQuestion) (*federation.SearchAnswer, error)
}

// Search adds the route by which others look for agents of this portal that
// they do not hold.
func Search(d Handles, answers Answers) {
	d.Handle(http.MethodPost, "/search", func(ctx context.Context, _ federation.Asker, _ *http.Request, body []byte) (any, error) {
		var q federation.SearchQuestion
		if err := Decode(body, &q); err != nil {
			return nil, err
		}
		a, err := answers.Answer(ctx, q)
		if err != nil {
			return nil, err
		}
		return Plain(a.Append(nil)), nil
	}, searchLimits)
}
