package client

import (
	"net/http"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// minClocks is how many portals' clocks must be known before this portal's clock is judged; maxClocks
	// bounds the known ones.
	minClocks = 3
	maxClocks = 1024
	// clockOff is the smallest difference of clocks that is reported.
	clockOff = 10 * time.Second
)

// skewOf returns how far the clock of the answering portal is ahead of this one's, by its Date header. took
// is the duration of the request. ok is false without a valid header; a difference within the precision is
// 0.
func skewOf(h http.Header, took time.Duration) (time.Duration, bool) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	// The header is cut to whole seconds and was set at some time during the request.
	off := at.Add(time.Second / 2).Sub(clock.Now().Add(-took / 2))
	if off.Abs() <= took/2+time.Second {
		off = 0
	}
	return off, true
}

// clockOf records how far a portal's clock is ahead, by its answer.
func (c *Client) clockOf(portal record.PortalID, a *federation.Answer) {
	off, ok := skewOf(a.Header, a.Took)
	if !ok {
		return
	}
	c.mu.Lock()
	if _, known := c.skew[portal]; !known && len(c.skew) >= maxClocks {
		clear(c.skew)
	}
	c.skew[portal] = off
	c.mu.Unlock()
}

// ClockOff returns the median by which this portal's clock is behind those of the others. wrong reports
// whether at least minClocks are known and the median is at least clockOff.
func (c *Client) ClockOff() (off time.Duration, wrong bool) {
	c.mu.Lock()
	list := make([]time.Duration, 0, len(c.skew))
	for _, d := range c.skew {
		list = append(list, d)
	}
	c.mu.Unlock()
	if len(list) < minClocks {
		return 0, false
	}
	slices.Sort(list)
	off = list[len(list)/2]
	return off, off.Abs() >= clockOff
}

// Skew returns how far the clock of a portal is ahead of this portal's, by its last answer; 0 if unknown.
func (c *Client) Skew(portal record.PortalID) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew[portal]
}
