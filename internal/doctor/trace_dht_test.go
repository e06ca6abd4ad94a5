package doctor_test

import (
	"errors"
	"strings"
	"testing"

	"agentsite/internal/doctor"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// TestExamine_FollowsAnAgentThroughTheDHT has each thing go wrong that keeps portals
// which do not know this one from finding an agent of it.
func TestExamine_FollowsAnAgentThroughTheDHT(t *testing.T) {
	t.Parallel()
	const agent = string(self) + "/01a"
	kept := func(id record.PortalID) federation.DHTAnswer {
		return federation.DHTAnswer{Portals: []federation.DHTPortal{{ID: id}}, Holders: 2, Own: id == self}
	}
	for _, c := range []struct {
		name   string
		change func(s *doctor.Subject, answers map[string]federation.DHTAnswer)
		level  doctor.Level
		says   string
	}{
		{name: "well", level: doctor.OK, says: "Found in the DHT at other portals: the portal by its id, the portal by its host, the agent."},
		{name: "the other takes part", level: doctor.OK, says: "peer1.example takes part"},
		{"stopped", func(s *doctor.Subject, _ map[string]federation.DHTAnswer) { s.DHT = nil }, doctor.Skipped, "while the portal runs"},
		{"alone", func(s *doctor.Subject, answers map[string]federation.DHTAnswer) {
			s.DHT = dht{standing: federation.DHTStanding{}, answers: answers}
		}, doctor.Note, "knows no other"},
		{"signs nothing", func(s *doctor.Subject, answers map[string]federation.DHTAnswer) {
			s.DHT = dht{standing: federation.DHTStanding{Nodes: 4, Sent: 200}, answers: answers}
			clear(answers)
		}, doctor.Fault, "does not publish in the DHT: the portal by its id, the portal by its host, the agent."},
		{"one agent is not published yet", func(_ *doctor.Subject, answers map[string]federation.DHTAnswer) { delete(answers, agent) }, doctor.Note, "does not publish in the DHT: the agent."},
		{"nobody keeps it", func(_ *doctor.Subject, answers map[string]federation.DHTAnswer) {
			answers[agent] = federation.DHTAnswer{Own: true, Portals: []federation.DHTPortal{{ID: self}}}
		}, doctor.Fault, "no other portal returned it in a DHT lookup: the agent."},
		{"others are named instead", func(_ *doctor.Subject, answers map[string]federation.DHTAnswer) {
			answers["https://home.example"] = federation.DHTAnswer{Own: true, Holders: 3, Portals: []federation.DHTPortal{{ID: "p1other"}}}
		}, doctor.Fault, "no other portal returned it in a DHT lookup: the portal by its host."},
		{"nobody keeps it yet", func(s *doctor.Subject, answers map[string]federation.DHTAnswer) {
			s.DHT = dht{standing: federation.DHTStanding{Nodes: 4, Keys: 3, Sent: 20}, answers: answers}
			answers[agent] = federation.DHTAnswer{Own: true}
		}, doctor.Note, "no other portal returned it"},
		{"a lookup fails", func(s *doctor.Subject, _ map[string]federation.DHTAnswer) {
			s.DHT = dht{standing: s.DHT.Standing(), err: errors.New("too slow")}
		}, doctor.Skipped, "The agent was not looked up: too slow"},
		{"the other does not take part", func(_ *doctor.Subject, answers map[string]federation.DHTAnswer) { delete(answers, "p1peer1") }, doctor.Note, "The DHT does not name peer1.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := well(t, 0)
			answers := map[string]federation.DHTAnswer{string(self): kept(self), "https://home.example": kept(self), agent: kept(self), "p1peer1": kept("p1peer1")}
			s.DHT = dht{standing: s.DHT.Standing(), answers: answers}
			if c.change != nil {
				c.change(&s, answers)
			}
			r := doctor.Examine(t.Context(), s, doctor.Question{Agent: "ada", Portal: "https://peer1.example"})
			for _, f := range r.Findings {
				if f.Check == doctor.DHT && f.Level == c.level && strings.Contains(f.Text, c.says) {
					if f.Do == "" && c.level != doctor.OK && c.name != "stopped" {
						t.Error("it does not say what to do")
					}
					return
				}
			}
			t.Errorf("%+v", r.Findings)
		})
	}
}
