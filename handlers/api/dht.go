package api

import (
	"net/http"

	"agentsite/handlers/respond"
	"agentsite/internal/ident"
)

// dht answers with the state of this portal in the DHT. Only the operator may read it.
func (p Peers) dht(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	s, err := p.service.DHTStanding(r.Context(), actor)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, s)
	return nil
}

// gossip answers with the state of this portal in the gossip pool. Only the operator may read it.
func (p Peers) gossip(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	s, err := p.service.GossipStanding(r.Context(), actor)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, s)
	return nil
}

// lookup looks up the handle or id in ?q= in the DHT, for the operator.
func (p Peers) lookup(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := p.service.AskDHT(r.Context(), actor, r.URL.Query().Get("q"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, a)
	return nil
}
