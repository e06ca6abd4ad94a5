package main

import (
	"fmt"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

const (
	// chain is the number of agents that ask each other.
	chain = 5
	// maxRounds keeps the questions within the limits of portals for each other, see people.
	maxRounds = 4
	// maxHop is the most that the portal may add to an agent's work.
	maxHop = 15 * time.Millisecond
)

// measureHops measures questions that go through a chain of agents, one after the other.
func (b *bench) measureHops() error {
	model, err := b.startModel()
	if err != nil {
		return err
	}
	defer model.Stop()
	n, err := b.startNetwork(model)
	defer n.stop()
	if err != nil {
		return err
	}
	writes, err := n.countWrites()
	if err != nil {
		return err
	}
	type asked struct {
		times []time.Duration
		cpu   float64
	}
	rounds, err := proc.Measure(min(b.Rounds, maxRounds), func() (a asked, err error) {
		before, err := n.sumCPU((*proc.Process).CPU)
		if err != nil {
			return a, err
		}
		for person := range people {
			took, err := n.askChain(person)
			if err != nil {
				return a, err
			}
			a.times = append(a.times, took/chain)
		}
		after, err := n.sumCPU((*proc.Process).Rest)
		a.cpu = float64((after - before).Nanoseconds()) / 1e3 / float64(len(a.times)*chain)
		return a, err
	})
	if err != nil {
		return err
	}
	var times []time.Duration
	var cpu []float64
	for _, r := range rounds.List {
		times, cpu = append(times, r.times...), append(cpu, r.cpu)
	}
	p99 := report.Percentile(times, 0.99)
	what := fmt.Sprintf("a chain of %d agents over %d portals: ", chain, portals)
	b.Add(report.Line{What: what + "time a hop", Portal: report.Micros(report.Median(cpu)) + " CPU",
		P50: report.Millis(report.Percentile(times, 0.5)), P99: report.Millis(p99), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: "p99 ≤ " + report.Millis(maxHop), Absolute: true, Judged: true, Met: p99 <= maxHop})
	b.Add(report.Line{What: what + "durable writes a hop", Portal: fmt.Sprintf("%.1f", float64(writes)/chain)})
	return nil
}
