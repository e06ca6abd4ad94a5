package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

const (
	// chain is the number of agents that ask each other.
	chain = 5
	// maxHop is the most that the portal may add to an agent's work.
	maxHop = 15 * time.Millisecond
)

// measureHops measures questions that go through a chain of agents, one after the other.
func (b *bench) measureHops() error {
	p, err := b.startPortal(1)
	if err != nil {
		return err
	}
	defer p.stopAll()
	for i := range chain {
		name, instructions, tools := fmt.Sprintf("link-%d", i), "Answer.", []string(nil)
		if i < chain-1 {
			instructions, tools = fmt.Sprintf("%slink-%d;", askNext, i+1), []string{"ask"}
		}
		if err := p.registerAgent(name, instructions, tools...); err != nil {
			return err
		}
		if err := p.allowAsking(name); err != nil {
			return err
		}
	}
	type asked struct {
		times []time.Duration
		cpu   float64
	}
	rounds, err := proc.Measure(b.Rounds, func() (a asked, err error) {
		before, err := p.CPU()
		if err != nil {
			return a, err
		}
		for end := time.Now().Add(b.Round); time.Now().Before(end); {
			took, err := p.askChain()
			if err != nil {
				return a, err
			}
			a.times = append(a.times, took/chain)
		}
		after, err := p.Rest()
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
	b.Add(report.Line{What: fmt.Sprintf("a chain of %d agents: time a hop", chain), Portal: report.Micros(report.Median(cpu)) + " CPU",
		P50: report.Millis(report.Percentile(times, 0.5)), P99: report.Millis(p99), Others: rounds.Share(), Doubt: rounds.Doubt,
		Bar: "p99 ≤ " + report.Millis(maxHop), Absolute: true, Judged: true, Met: p99 <= maxHop})
	return nil
}

// askChain asks the first agent and returns the time until the answer, which has come from the last one.
func (p *portal) askChain() (time.Duration, error) {
	at := time.Now()
	res, err := sendJSON(p.client, http.MethodPost, "http://"+p.Addr+"/v1/chat/completions", p.tokens[0], map[string]any{"model": "link-0",
		"messages": []any{map[string]string{"role": "user", "content": "go on"}}})
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && !strings.Contains(string(text), "done") {
		err = fmt.Errorf("the chain answered %.300s", text)
	}
	return time.Since(at), err
}
