package app_test

import "testing"

// peeringCells say what the routes between portals are asked.
func peeringCells() map[string]cell {
	return map[string]cell{
		"GET /.well-known/agentsite":           {},
		"GET /peering/v1/portal":               {},
		"GET /peering/v1/status":               {},
		"POST /peering/v1/heads/diff":          {body: func(*world, object) any { return map[string]any{"have": ""} }},
		"POST /peering/v1/heads/hint":          {body: func(*world, object) any { return map[string]any{"heads": []any{}} }},
		"GET /peering/v1/portals/{id}/head":    {},
		"GET /peering/v1/portals/{id}/summary": {},
		"GET /peering/v1/portals/{id}/log":     {},
		"GET /peering/v1/portals/{id}/leaves":  {},
		"GET /peering/v1/portals/{id}/agents":  {},
		"GET /peering/v1/portals/{id}/proof":   {},
		"GET /peering/v1/agents/{portal}/{id}": {object: func(*testing.T, *world, string) object { return object{id: "x"} }},
		"GET /peering/v1/modules/{hash}":       {object: func(*testing.T, *world, string) object { return object{hash: "x"} }},
		"POST /peering/v1/hello":               {body: func(*world, object) any { return map[string]any{"card": map[string]any{}} }},
		"POST /peering/v1/search":              {body: func(*world, object) any { return map[string]any{"q": "tide"} }},
		"POST /peering/v1/dht/ping":            {body: nothingOfTheDHT},
		"POST /peering/v1/dht/find_node":       {body: nothingOfTheDHT},
		"POST /peering/v1/dht/get":             {body: nothingOfTheDHT},
		"POST /peering/v1/dht/store":           {body: nothingOfTheDHT},
		"POST /peering/v1/gossip":              {body: nothingOfTheDHT},
		"POST /peering/v1/pushpull":            {body: nothingOfTheDHT},
		"GET /peering/v1/attests":              {},
		"POST /peering/v1/attest":              {body: func(*world, object) any { return map[string]any{"records": []any{}} }},
	}
}

// nothingOfTheDHT is no message of it: who is let in is told so.
func nothingOfTheDHT(*world, object) any { return map[string]any{} }
