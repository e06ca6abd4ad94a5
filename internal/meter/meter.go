// Package meter makes the counters that client_golang serves as metrics, all in one form: one label
// with known values.
package meter

import "github.com/prometheus/client_golang/prometheus"

// NewCounters returns counters by the values of one label. The given values are served from the start with 0. Values
// must be constants of the program, never texts of a caller or another portal, because each takes memory.
func NewCounters(name, help, label string, values ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, value := range values {
		v.WithLabelValues(value)
	}
	return v
}
