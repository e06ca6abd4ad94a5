// Command recruit measures how well agents are found by what a person needs: 625 needs and 1,500 agents, as
// in the paper of the Internet of Agents (arXiv 2407.07061), in which 41.4 % of its regular tasks found the
// right agent first and 64.9 % among ten; 59.7 % and 81.8 % of its nested ones. An agent is right if it has
// the capability that the need asks for.
package main

import "fmt"

// agentSeed makes the agents. Another seed gives other figures.
const agentSeed = 7

func main() {
	list, err := readCapabilities()
	if err != nil {
		fmt.Println("recruit:", err)
		return
	}
	agents, _ := buildAgents(list, agentSeed)
	for _, a := range agents {
		fmt.Printf("%s\t%s\t%s", a.Name, a.Title, a.Description)
		for _, s := range a.Skills {
			fmt.Printf("\t%s: %s", s.Name, s.Description)
		}
		fmt.Println()
	}
}
