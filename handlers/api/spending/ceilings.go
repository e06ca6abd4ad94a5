package spending

import (
	"math/big"
	"net/http"
	"strings"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/usage"
)

// CeilingJSON is a ceiling with the amount spent today. Cost and SpentCost are decimal numbers.
type CeilingJSON struct {
	Agent       string `json:"agent,omitempty"`
	Tokens      int64  `json:"tokens,omitempty"`
	Cost        string `json:"cost,omitempty"`
	SpentTokens int64  `json:"spent_tokens"`
	SpentCost   string `json:"spent_cost"`
}

// CeilingBody sets a ceiling about an agent, or without one about all agents of the caller. A ceiling without tokens
// and cost is removed.
type CeilingBody struct {
	Agent  string `json:"agent"`
	Tokens int64  `json:"tokens"`
	Cost   string `json:"cost"`
}

func (a *API) listCeilings(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := a.ceilings.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]CeilingJSON, len(list))
	for i, c := range list {
		out[i] = CeilingJSON{Agent: c.Agent, Tokens: c.Tokens, SpentTokens: c.Spent.Tokens,
			SpentCost: FormatCost(c.Spent.Cost)}
		if c.Cost > 0 {
			out[i].Cost = FormatCost(c.Cost)
		}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"ceilings": out, "next_cursor": ""})
	return nil
}

func (a *API) putCeiling(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in CeilingBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	cost, err := ParseCost(in.Cost)
	if err != nil {
		return err
	}
	if err := a.ceilings.Put(r.Context(), actor, in.Agent, usage.Amount{Tokens: in.Tokens, Cost: cost}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// ParseCost reads a sum of money, such as "2.50", as millionths; "" is 0. The fault is about the field cost.
func ParseCost(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, nil
	}
	v, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > 20 || strings.Trim(s, "0123456789.") != "" {
		return 0, fault.Field("cost", "use a sum such as 2.50")
	}
	v.Mul(v, big.NewRat(1_000_000, 1))
	return new(big.Int).Quo(v.Num(), v.Denom()).Int64(), nil
}
