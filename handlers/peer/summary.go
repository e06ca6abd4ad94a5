package peer

import (
	"context"
	"net/http"

	"agentsite/internal/federation/guard"
)

// maxSummaries bounds the summaries that one portal reads at the same time, because each is loaded into
// memory and compared with its head.
const maxSummaries = 4

// serveSummary answers with the signed head of a portal and the summary that the head names by its hash.
func (s *Records) serveSummary(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any, error) {
	out, err := s.archive.Summary(ctx, portalOf(r, "id"))
	if err != nil {
		return nil, err
	}
	return out, nil
}
