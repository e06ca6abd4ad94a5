package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// The bars: the time that the portal adds before the first token and for each chunk, beyond the proxy's, and the
// processor time of all chunks of a second.
const (
	maxFirst = 2 * time.Millisecond
	maxChunk = 500 * time.Microsecond
	maxCores = 1.0
)

// streamed is the result of one measurement of a side.
type streamed struct {
	first, chunk []time.Duration
	cpu          float64 // µs of processor time a chunk
	cores        float64 // used meanwhile
}

// measureStreams compares streams through a prompt agent with those through a proxy.
func (b *bench) measureStreams() error {
	const people = 25
	model, err := b.startModel()
	if err != nil {
		return err
	}
	defer model.Stop()
	p, err := b.startPortal(model, people, "--network", "off")
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := p.registerAgent("writer", "Write."); err != nil {
		return err
	}
	proxy, err := startChild("proxy", model.Addr)
	if err != nil {
		return err
	}
	defer proxy.Stop()
	n := b.Pick(20, b.streams)
	rounds, err := proc.Measure(b.Rounds, func() (list [2]streamed, err error) {
		for i, side := range []struct {
			*proc.Process
			model string
		}{{proxy, "m"}, {p.Process, "writer"}} {
			if list[i], err = b.readStreams(side.Process, p, side.model, n); err != nil {
				return list, fmt.Errorf("%s: %w", side.Name, err)
			}
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	var first, chunk [2][]time.Duration
	var cpu, cores [2][]float64
	for _, r := range rounds.List {
		for i, s := range r {
			first[i], chunk[i] = append(first[i], s.first...), append(chunk[i], s.chunk...)
			cpu[i], cores[i] = append(cpu[i], s.cpu), append(cores[i], s.cores)
		}
	}
	add := func(what string, t [2][]time.Duration, most time.Duration) {
		added := report.Percentile(t[1], 0.99) - report.Percentile(t[0], 0.99)
		both := func(share float64) string {
			return report.Join(report.Millis(report.Percentile(t[0], share)), report.Millis(report.Percentile(t[1], share)))
		}
		b.Add(report.Line{What: fmt.Sprintf("%d streams of %d chunks/s: %s, added p99", n, b.rate, what), Portal: report.Millis(added),
			P50: both(0.5), P99: both(0.99), Others: rounds.Share(), Doubt: rounds.Doubt, Bar: "≤ " + report.Millis(most), Absolute: true,
			Judged: true, Met: added <= most})
	}
	add("first token", first, maxFirst)
	add("a chunk", chunk, maxChunk)
	used := report.Median(cores[1])
	b.Add(report.Line{What: "the same: CPU a chunk", Floor: report.Micros(report.Median(cpu[0])), Portal: report.Micros(report.Median(cpu[1])),
		Ratio: report.Spread(report.Ratios(cpu[1], cpu[0])), Others: rounds.Share(), Doubt: rounds.Doubt})
	b.Add(report.Line{What: "the same: cores in use", Floor: fmt.Sprintf("%.2f", report.Median(cores[0])), Portal: fmt.Sprintf("%.2f", used),
		Bar: fmt.Sprintf("≤ %.0f", maxCores), Absolute: true, Judged: true, Met: used <= maxCores, Doubt: rounds.Doubt})
	return nil
}

// window is the time of a round in which its slots are measured, and streamLength that of one stream.
type window struct {
	begin, end   time.Time
	streamLength time.Duration
}

func (w window) contains(t time.Time) bool { return !t.Before(w.begin) && t.Before(w.end) }

// readStreams keeps n streams of a side open, each slot with another account in turn: a slot begins its next stream
// when one has ended, and the slots begin one after the other, so that streams begin evenly. It measures for a
// round, after all slots have begun.
func (b *bench) readStreams(side *proc.Process, p *portal, model string, n int) (s streamed, err error) {
	length := 2 * b.Round
	now := time.Now()
	measured := window{begin: now.Add(length), end: now.Add(length + b.Round), streamLength: length}
	var wg sync.WaitGroup
	slots, fails := make([]slot, n), make([]error, n)
	for i := range n {
		wg.Go(func() {
			time.Sleep(length * time.Duration(i) / time.Duration(n))
			for fails[i] == nil && time.Now().Before(measured.end) {
				fails[i] = slots[i].readStream(p.client, side.Addr, p.tokens[i%len(p.tokens)], model, measured)
			}
		})
	}
	time.Sleep(time.Until(measured.begin))
	before, err := side.CPU()
	if err != nil {
		return s, err
	}
	time.Sleep(time.Until(measured.end))
	after, err := side.CPU()
	wg.Wait()
	for _, fail := range append(fails, err) {
		if fail != nil {
			return s, fail
		}
	}
	for _, one := range slots {
		s.first, s.chunk = append(s.first, one.first...), append(s.chunk, one.chunks...)
	}
	used := after - before
	s.cpu, s.cores = float64(used.Nanoseconds())/1e3/float64(len(s.chunk)), used.Seconds()/b.Round.Seconds()
	time.Sleep(time.Second) // the streams that were left end
	return s, nil
}

// slot holds the times of the streams that one reader read in turn: until the first token of each, and of each
// further chunk on the way.
type slot struct{ first, chunks []time.Duration }

// readStream reads one stream to its end, or to the end of the window.
func (s *slot) readStream(c *http.Client, addr, token, model string, measured window) error {
	at := time.Now()
	res, err := sendJSON(c, http.MethodPost, "http://"+addr+"/v1/chat/completions", token, map[string]any{"model": model, "stream": true,
		"messages": []any{map[string]string{"role": "user", "content": streamFor + measured.streamLength.String() + ";"}}})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	chunks := 0
	in := bufio.NewScanner(res.Body)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		now := time.Now()
		if !now.Before(measured.end) {
			return nil
		}
		var event struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return fmt.Errorf("%.200s: %w", data, err)
		}
		for _, choice := range event.Choices {
			for stamp := range strings.SplitSeq(choice.Delta.Content, "|") {
				ns, err := strconv.ParseInt(strings.TrimSpace(stamp), 10, 64)
				if err != nil {
					continue
				}
				if chunks++; !measured.contains(at) && chunks == 1 || !measured.contains(now) {
					continue
				}
				if chunks == 1 {
					s.first = append(s.first, now.Sub(at))
				} else {
					s.chunks = append(s.chunks, now.Sub(time.Unix(0, ns)))
				}
			}
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	if chunks == 0 {
		return fmt.Errorf("a stream had no chunks")
	}
	return nil
}
