package demo

import (
	"fmt"
	"strings"
)

// portalNames are the names of the portals, in the order of their start.
var portalNames = strings.Split("Harbour Lab,Nordlicht,Café Babbage,Old Mill Makers,Riverside Library,Observatory Hill,Tinkers Guild,Quiet Office,Lighthouse Nine,Orchard Works,"+
	"Copper Street,Tidewater,Maple Commons,Signal House,Paper Lantern,Juniper Desk,Kiosk 42,Stonebridge,Atlas Reading Room,Blue Heron,"+
	"Granite Peak,Foundry Row,Saltmarsh,Willow Yard,Northern Post,Clockmaker's,Ferry Landing,Birch & Byte,Corner Shop,Meridian,"+
	"Windmill Park,Cedar Point,Almanac,Hilltop Radio,Print Room,Garden Gate,Sandpiper,Long Table,Marble Arcade,Dockside,"+
	"Fern Hollow,Night Train,Amber Coast,Weavers' Hall,Tin Roof,Seven Bridges,Upland School,Brick Lane Club,Open Shutters,Last Stop", ",")

// MaxPortals is the maximum number of portals. Each name serves two portals.
const MaxPortals = 100

// portalName returns the name of the portal with index i, from 0. The second portal with a name has
// "II" after it.
func portalName(i int) string {
	if i < len(portalNames) {
		return portalNames[i]
	}
	return portalNames[i%len(portalNames)] + " II"
}

// people are the account names that castRoles distributes to the portals, again from the first when
// all are used.
var people = strings.Fields("ada bela chen dana emil fatou goran hana ines jonas kofi lena mira nils olga pavel quinn rosa sami tilda umar vera wim xenia yusuf zora")

const (
	// fewestAgents is the number of A2A agents of a portal. Every second portal has one more. Each
	// portal has one MCP server in addition.
	fewestAgents = 3
	peopleEach   = 3
)

// role describes one portal of the demo before it starts.
type role struct {
	name, folder string
	// people are the names of the accounts; the first is the operator.
	people  []string
	agents  []agent
	benches []server
}

// castRoles returns the roles of n portals. Neighbouring portals share no agent.
func castRoles(n int) []role {
	all, tools := loadAgents()
	next := 0
	out := make([]role, n)
	for i := range out {
		r := role{name: portalName(i), folder: fmt.Sprintf("portal-%02d", i+1)}
		for k := range peopleEach {
			r.people = append(r.people, people[(i*peopleEach+k)%len(people)])
		}
		for range fewestAgents + i%2 {
			r.agents = append(r.agents, all[next%len(all)])
			next++
		}
		r.benches = append(r.benches, tools[i%len(tools)])
		out[i] = r
	}
	return out
}
